"""The descheduler over a control plane with a scheduler: rounds, calls of estimators, writes and events."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from karmada.api.work import ResourceBinding
from karmada.descheduler.controller import Options, descheduler_parts
from karmada.estimator.terms import EstimateError
from karmada.kube.objects.errors import Forbidden
from karmada.kube.objects.types import Obj
from tests.support.control_plane import ControlPlane, assemble
from tests.support.scheduling_cases import AGGREGATED, DUPLICATED, DYNAMIC, deployment, placement
from tests.support.scheduling_plane import Scheduling, scheduling


class FakeEstimators:
    """`counts` by workload and cluster; `calls` are what was requested."""

    def __init__(self) -> None:
        self.counts: dict[str, dict[str, int]] = {}
        self.failing: set[str] = set()
        self.calls: list[tuple[str, list[str], float]] = []

    async def unschedulable_replicas(self, clusters: Iterable[str], resource: Obj, threshold: float) -> dict[str, int]:
        names = list(clusters)
        self.calls.append((f"{resource['namespace']}/{resource['name']}", names, threshold))
        for name in names:
            if name in self.failing:
                raise EstimateError(f"cluster {name} does not exist in estimator cache")
        found = self.counts.get(resource["name"], {})
        return {name: found.get(name, 0) for name in names}


class Descheduling:
    """A process with the descheduler beside that of the scheduler."""

    def __init__(self, plane: Scheduling, estimators: FakeEstimators, other: ControlPlane) -> None:
        self.plane = plane
        self.estimators = estimators
        self.other = other
        self.writes: list[str] = []

    async def round(self) -> None:
        await self.plane.wait(120)

    async def place(self, name: str, scheduling_type: Obj = DYNAMIC, *, replicas: int = 6, **ready: int) -> Obj:
        """A workload that is scheduled, with this many ready replicas by cluster."""
        reference = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": name}
        await self.plane.bind(
            f"{name}-deployment", deployment(replicas, placement(scheduling_type), resource=reference)
        )
        await self.report(name, **ready)
        return await self.plane.get(f"{name}-deployment")

    async def report(self, name: str, **ready: int) -> None:
        items = [{"clusterName": cluster, "status": {"readyReplicas": count}} for cluster, count in ready.items()]
        await self.plane.set_status(f"{name}-deployment", {"aggregatedStatus": items})

    async def targets(self, name: str) -> dict[str, int]:
        return await self.plane.targets(f"{name}-deployment")

    async def events(self, name: str) -> list[tuple[str, str, str]]:
        found = await self.other.events(name)
        return [event for event in found if event[1].startswith("Deschedule")]


@asynccontextmanager
async def descheduling(folder: Path, options: Options | None = None, **pods: int) -> AsyncIterator[Descheduling]:
    async with scheduling(folder) as plane:
        for name, count in (pods or {"m1": 9, "m2": 9}).items():
            await plane.cluster(name, pods=count)
        estimators = FakeEstimators()
        assembly = assemble(plane.plane.server, lambda context: descheduler_parts(context, estimators, options))
        server, clock = plane.plane.server, plane.plane.clock
        other = ControlPlane(server, clock, assembly.context, assembly.manager, plane.client)
        found = Descheduling(plane, estimators, other)
        transport: Any = assembly.manager.controllers["descheduler"].reconciler._client.transport  # type: ignore[attr-defined]
        call = transport.call

        async def noted(request: Any) -> Any:
            if request.method != "GET" and "/events" not in request.path:
                found.writes.append(f"{request.method} {request.path.rpartition('/')[2]}")
            return await call(request)

        transport.call = noted
        async with assembly.manager as manager:
            plane.managers.append(manager)
            yield found


@pytest.fixture
async def two(folder: Path) -> AsyncIterator[Descheduling]:
    async with descheduling(folder) as found:
        yield found


async def test_replicas_that_found_no_node_are_placed_elsewhere(two: Descheduling) -> None:
    await two.place("web", m1=1, m2=3)
    assert await two.targets("web") == {"m1": 3, "m2": 3}
    await two.plane.report("m1", 0)
    two.estimators.counts["web"] = {"m1": 2, "m2": 3}
    await two.round()
    assert await two.targets("web") == {"m1": 1, "m2": 5}
    text = "Binding has been descheduled, 2 replica(s) in cluster(m1), 2 total descheduled replica(s)"
    assert await two.events("web-deployment") == [("Normal", "DescheduleBindingSucceed", text)]
    assert await two.events("web") == [("Normal", "DescheduleBindingSucceed", text)]
    assert two.writes == ["PUT web-deployment"]
    assert two.estimators.calls == [("default/web", ["m1"], 300.0)]


async def test_only_what_is_short_and_divided_by_room_is_looked_at(two: Descheduling) -> None:
    await two.place("fine", m1=3, m2=3)
    await two.place("same", DUPLICATED, m1=1, m2=1)
    await two.place("packed", AGGREGATED, m1=1)
    packed = (await two.plane.get("packed-deployment"))["spec"]["clusters"]
    await two.round()
    assert {name for name, _, _ in two.estimators.calls} == {"default/packed"}
    assert (await two.plane.get("packed-deployment"))["spec"]["clusters"] == packed
    assert two.writes == []


async def test_a_round_is_held_at_the_start_and_after_each_interval(folder: Path) -> None:
    async with scheduling(folder) as plane:
        await plane.clusters("m1", pods=9)
        await plane.bind("web-deployment", deployment(2, placement(DYNAMIC)))
        estimators = FakeEstimators()
        options = Options(interval=30, threshold=7)
        assembly = assemble(plane.plane.server, lambda context: descheduler_parts(context, estimators, options))
        async with assembly.manager:
            await plane.rest()
            assert estimators.calls == [("default/web", ["m1"], 7)]
            await plane.wait(29)
            assert len(estimators.calls) == 1
            await plane.wait(1)
            assert len(estimators.calls) == 2
            await plane.wait(30)
            assert len(estimators.calls) == 3


async def test_one_estimator_that_fails_leaves_the_binding_to_the_next_round(two: Descheduling) -> None:
    await two.place("web", m1=1, m2=1)
    two.estimators.counts["web"] = {"m1": 2}
    two.estimators.failing = {"m2"}
    await two.round()
    assert await two.targets("web") == {"m1": 3, "m2": 3}
    two.estimators.failing = set()
    await two.plane.report("m1", 0)
    await two.round()
    assert await two.targets("web") == {"m1": 1, "m2": 5}


async def test_a_binding_that_changes_meanwhile_is_decided_on_again(two: Descheduling) -> None:
    await two.place("web", m1=1, m2=3)
    await two.plane.report("m1", 0)
    estimate = two.estimators.unschedulable_replicas

    async def changed_meanwhile(clusters: Iterable[str], resource: Obj, threshold: float) -> dict[str, int]:
        found = await estimate(clusters, resource, threshold)
        if len(two.estimators.calls) == 1:
            await two.plane.client.patch(
                ResourceBinding.gvr, "web-deployment", "default", {"metadata": {"labels": {"changed": "yes"}}}
            )
            two.estimators.counts["web"] = {"m1": 1}
        return found

    two.estimators.unschedulable_replicas = changed_meanwhile  # type: ignore[method-assign]
    two.estimators.counts["web"] = {"m1": 2}
    await two.round()
    await two.plane.wait(1)
    assert await two.targets("web") == {"m1": 2, "m2": 4}
    assert [reason for _, reason, _ in await two.events("web")] == ["DescheduleBindingSucceed"]


async def test_an_update_that_is_refused_is_an_event_and_retried(two: Descheduling) -> None:
    await two.place("web", m1=1, m2=3)
    await two.plane.report("m1", 0)
    two.estimators.counts["web"] = {"m1": 2}
    client: Any = two.other.manager.controllers["descheduler"].reconciler._client  # type: ignore[attr-defined]
    update, refusals = client.update, 1

    async def refused_first(*given: Any, **more: Any) -> Any:
        nonlocal refusals
        if refusals:
            refusals -= 1
            raise Forbidden("no")
        return await update(*given, **more)

    client.update = refused_first
    await two.round()
    await two.plane.wait(1)
    assert await two.targets("web") == {"m1": 1, "m2": 5}
    found = await two.events("web-deployment")
    assert ("Warning", "DescheduleBindingFailed", "no") in found
    assert [reason for _, reason, _ in found].count("DescheduleBindingSucceed") == 1


async def test_a_second_round_takes_no_more_while_reports_are_old(two: Descheduling) -> None:
    await two.place("web", m1=1, m2=3)
    await two.plane.report("m1", 0)
    two.estimators.counts["web"] = {"m1": 2}
    await two.round()
    await two.round()
    assert await two.targets("web") == {"m1": 1, "m2": 5}
    assert two.writes == ["PUT web-deployment"]
