"""The scheduler at work: what it leaves alone, when it tries again, in which order, and how it starts anew."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import orjson
import pytest

from karmada.estimator.terms import EstimateError
from karmada.kube.objects import meta
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.scheduler.estimators.protocol import EstimateRequest
from karmada.scheduler.service.core import Options
from karmada.scheduler.service.pauses import Limits
from tests.support.eventually import eventually
from tests.support.scheduling_cases import AGGREGATED, DUPLICATED, DYNAMIC, config_map, deployment, placement, spread
from tests.support.scheduling_plane import BINDINGS, MARKED, Scheduling, incoming, scheduling, targets

FAILED = ("Warning", "ScheduleBindingFailed")


def attempts(plane: Scheduling, result: str, schedule_type: str = "ReconcileSchedule") -> float:
    return plane.sample("karmada_scheduler_schedule_attempts_total", result=result, schedule_type=schedule_type)


# what it leaves alone


async def test_what_is_being_deleted_is_not_scheduled(plane: Scheduling) -> None:
    await plane.clusters("m1", pods=9)
    await plane.bind("web-deployment", deployment(2, placement(DYNAMIC), suspension={"scheduling": True}))
    hold = {"metadata": {"finalizers": ["test/stay"]}}
    await plane.client.patch(BINDINGS, "web-deployment", "default", hold)
    await plane.client.delete(BINDINGS, "web-deployment", "default")
    await plane.change("web-deployment", {"suspension": None})
    assert await plane.targets("web-deployment") == {}
    assert await plane.events("web-deployment") == []
    assert plane.delays("web-deployment") is None


async def test_without_a_placement_it_is_tried_again(plane: Scheduling, caplog: pytest.LogCaptureFixture) -> None:
    await plane.clusters("m1", pods=9)
    spec = {key: value for key, value in deployment(2, {}).items() if key != "placement"}
    made = await plane.bind("web-deployment", spec)
    assert "status" not in made
    assert plane.delays("web-deployment")
    assert "failed to get placement from resourceBinding(default/web-deployment)" in caplog.text
    assert incoming(plane, "ScheduleAttemptFailure") == 1
    await plane.bind("wide", {"resource": {"apiVersion": "v1", "kind": "ConfigMap", "name": "x"}}, namespace="")
    assert "failed to get placement from clusterResourceBinding(wide)" in caplog.text


@pytest.mark.parametrize("change", [{"suspension": {"scheduling": True}}, {"schedulerName": "other"}])
async def test_what_was_taken_away_while_it_waited_is_left_alone(plane: Scheduling, change: Obj) -> None:
    await plane.clusters("m1", pods=1)
    await plane.bind("web-deployment", deployment(2, placement(DYNAMIC)))
    await plane.wait(1)
    await plane.change("web-deployment", change)
    await plane.report("m1", 9)
    await plane.wait(2000)
    assert await plane.targets("web-deployment") == {}
    assert plane.delays("web-deployment") is None


# trying again


async def test_pauses_grow_and_start_anew_after_success(plane: Scheduling) -> None:
    await plane.clusters("m1", pods=1)
    await plane.bind("web-deployment", deployment(2, placement(DYNAMIC)))
    pauses = [plane.delays("web-deployment")]
    for _ in range(4):
        await plane.wait(pauses[-1] or 0)
        pauses.append(plane.delays("web-deployment"))
    assert pauses == [0.005, 0.01, 0.02, 0.04, 0.08]
    assert attempts(plane, "error") == incoming(plane, "ScheduleAttemptFailure") == 5
    await plane.report("m1", 9)
    await plane.change("web-deployment", {"replicas": 3})
    assert await plane.targets("web-deployment") == {"m1": 3}
    assert attempts(plane, "scheduled") == 1
    await plane.wait(10)
    await plane.change("web-deployment", {"replicas": 30})
    assert plane.delays("web-deployment") == 0.005


async def test_a_failure_is_reported_every_time_and_written_once(plane: Scheduling) -> None:
    await plane.clusters("m1", pods=1)
    made = await plane.bind("web-deployment", deployment(2, placement(DYNAMIC)))
    await plane.wait(1)
    assert incoming(plane, "ScheduleAttemptFailure") > 3
    assert await plane.version("web-deployment") == meta.resource_version(made)
    assert len(await plane.events("web-deployment")) == 1, "of which there are as many as its count says"


async def test_many_failures_together_are_slowed_down(folder: Path) -> None:
    async with scheduling(folder, options=Options(limits=Limits(rate=1.0, burst=2))) as plane:
        await plane.clusters("m1", pods=1)
        for number in range(4):
            await plane.bind(f"w{number}-deployment", deployment(2, placement(DYNAMIC)))
        assert [plane.delays(f"w{number}-deployment") for number in range(4)] == [0.005, 0.005, 1.0, 2.0]


# by priority


@pytest.fixture
async def ranked(folder: Path) -> AsyncIterator[Scheduling]:
    async with scheduling(folder, gates="PriorityBasedScheduling=true") as plane:
        yield plane


def prior(priority: int) -> Obj:
    return {"schedulePriority": {"priority": priority}}


async def test_higher_priorities_go_first(folder: Path) -> None:
    async with scheduling(folder, gates="PriorityBasedScheduling=true", scheduler=False) as plane:
        await plane.clusters("m1", pods=9)
        for name, priority in (("a", 0), ("b", 10), ("c", 10), ("d", -5)):
            await plane.bind(f"{name}-deployment", deployment(1, placement(DYNAMIC), **prior(priority)))
        async with plane.another():
            found = {name: await plane.get(f"{name}-deployment") for name in "abcd"}
        order = sorted(found, key=lambda name: int(meta.resource_version(found[name])))
        assert order == ["b", "c", "a", "d"]


async def test_what_failed_keeps_its_priority_and_its_pauses_are_short(ranked: Scheduling) -> None:
    plane = ranked
    await plane.clusters("m1", pods=9)
    await plane.bind("web-deployment", deployment(2, placement(DYNAMIC, spread("cluster", 2, 2)), **prior(7)))
    queue = plane.plane.manager.controllers["default-scheduler-resourcebindings"].queue
    assert [entry[4] for entry in queue._delayed] == [7]
    pauses = [plane.delays("web-deployment")]
    for _ in range(5):
        await plane.wait(pauses[-1] or 0)
        pauses.append(plane.delays("web-deployment"))
    assert pauses == [1, 2, 4, 8, 10, 10]


async def test_what_has_no_room_waits_for_five_minutes_or_for_a_change(ranked: Scheduling) -> None:
    plane = ranked
    await plane.clusters("m1", pods=1)
    await plane.bind("web-deployment", deployment(2, placement(DYNAMIC)))
    assert plane.delays("web-deployment") == 300
    await plane.report("m1", 9)
    await plane.wait(299)
    assert await plane.targets("web-deployment") == {}
    await plane.wait(1)
    assert await plane.targets("web-deployment") == {"m1": 2}
    await plane.change("web-deployment", {"replicas": 20})
    await plane.change("web-deployment", {"replicas": 3})
    assert await plane.targets("web-deployment") == {"m1": 3}


async def test_a_change_resets_the_back_off(ranked: Scheduling) -> None:
    plane = ranked
    await plane.clusters("m1", pods=9)
    await plane.bind("web-deployment", deployment(2, placement(DYNAMIC, spread("cluster", 2, 2))))
    await plane.wait(1)
    assert plane.delays("web-deployment") == 2
    await plane.label("m1", some="thing")
    assert plane.delays("web-deployment") == 1
    await plane.wait(1)
    assert plane.delays("web-deployment") == 2
    await plane.change("web-deployment", {"replicas": 3})
    assert plane.delays("web-deployment") == 1


async def test_without_a_placement_the_pauses_are_short_too(ranked: Scheduling) -> None:
    spec = {key: value for key, value in deployment(2, {}).items() if key != "placement"}
    await ranked.bind("web-deployment", spec)
    assert ranked.delays("web-deployment") == 1


# not more often than needed


async def test_its_own_writing_is_no_reason_to_decide_again(plane: Scheduling) -> None:
    await plane.clusters("m1", pods=9)
    await plane.bind("web-deployment", deployment(2, placement(DUPLICATED)))
    await plane.wait(60)
    assert attempts(plane, "scheduled") == 1
    await plane.label("m1", some="thing")
    assert attempts(plane, "scheduled") == 2


async def test_a_fresh_start_requested_ahead_of_time_ends_once_that_time_has_come(plane: Scheduling) -> None:
    await plane.clusters("m1", pods=9)
    await plane.bind("web-deployment", deployment(2, placement(DYNAMIC)))
    await plane.change("web-deployment", {"rescheduleTriggeredAt": rfc3339(plane.clock.now() + 60)})
    await plane.wait(100)
    await plane.label("m1", some="thing")
    found = await plane.get("web-deployment")
    assert found["status"]["lastScheduledTime"] == rfc3339(plane.clock.now())
    await plane.wait(100)
    await plane.label("m1", some="other")
    assert await plane.get("web-deployment") == found


# starting anew


async def test_a_new_scheduler_finds_nothing_to_do(plane: Scheduling) -> None:
    await plane.clusters("m1", "m2", pods=9)
    terms = [{"affinityName": f"g{n}", "clusterNames": [f"m{n}"]} for n in (9, 2)]
    specs = {
        "a-deployment": deployment(2, placement(DYNAMIC)),
        "b-deployment": deployment(2, placement(DUPLICATED)),
        "c-configmap": config_map({}),
        "d-deployment": deployment(2, placement(DYNAMIC, clusterAffinities=terms)),
        "e-deployment": deployment(2, placement(DUPLICATED, clusterAffinity={"clusterNames": ["m9"]})),
    }
    for name, spec in specs.items():
        await plane.bind(name, spec)
    before = {name: await plane.get(name) for name in specs}
    await plane.wait(60)
    async with plane.another():
        assert {name: await plane.get(name) for name in specs} == before


async def test_a_scheduler_goes_on_where_another_broke_off(folder: Path) -> None:
    """The clusters are written, the status is not."""
    async with scheduling(folder, scheduler=False) as plane:
        await plane.clusters("m1", pods=9)
        spec = deployment(2, placement(DYNAMIC), previous={"m1": 2})
        await plane.bind("web-deployment", spec)
        text = '{"replicaScheduling":' + _compact(DYNAMIC) + "}"
        annotations = {"metadata": {"annotations": {"policy.karmada.io/applied-placement": text}}}
        await plane.client.patch(BINDINGS, "web-deployment", "default", annotations)
        async with plane.another():
            found = await plane.get("web-deployment")
        assert targets(found) == {"m1": 2}
        assert await plane.condition("web-deployment") == (
            "True",
            "Success",
            "Binding has been scheduled successfully.",
        )
        assert found["status"]["schedulerObservedGeneration"] == meta.generation(found)
        assert found["status"]["lastScheduledTime"]


async def test_what_nobody_has_decided_on_goes_before_what_failed_the_last_time(folder: Path) -> None:
    condition = {"type": "Scheduled", "status": "False", "reason": "NoClusterFit", "message": "none fits"}
    failed = {"status": {"conditions": meta.set_condition(None, condition, 0.0)}}
    async with scheduling(folder, scheduler=False) as plane:
        await plane.clusters("m1", pods=9)
        for name in "abcd":
            await plane.bind(f"{name}-deployment", deployment(1, placement(DYNAMIC)))
        for name in "ab":
            await plane.client.patch(BINDINGS, f"{name}-deployment", "default", failed, subresource="status")
        async with plane.another():
            found = {name: await plane.get(f"{name}-deployment") for name in "abcd"}
        order = sorted(found, key=lambda name: int(meta.resource_version(found[name])))
        assert order == ["c", "d", "a", "b"]


def _compact(value: Obj) -> str:
    return orjson.dumps(value).decode()


async def test_two_schedulers_of_different_names_share_the_bindings(plane: Scheduling) -> None:
    await plane.clusters("m1", pods=9)
    async with plane.another(Options(name="other", plugins=("*", "-ClusterAffinity"))):
        where = placement(DUPLICATED, clusterAffinity={"clusterNames": ["nowhere"]})
        await plane.bind("a-deployment", deployment(1, where))
        await plane.bind("b-deployment", deployment(1, where, schedulerName="other"))
        assert await plane.targets("a-deployment") == {}
        assert await plane.targets("b-deployment") == {"m1": 1}
        await plane.change("a-deployment", {"schedulerName": "other"})
        assert await plane.targets("a-deployment") == {"m1": 1}


# together and apart


@pytest.fixture
async def social(folder: Path) -> AsyncIterator[Scheduling]:
    async with scheduling(folder, gates="WorkloadAffinity=true") as plane:
        yield plane


def member(name: str, **groups: str) -> Obj:
    spec = deployment(1, placement(AGGREGATED, spread("cluster", 1, 1)), workloadAffinityGroups=groups)
    return {**spec, "resource": {**spec["resource"], "name": name}}


async def test_those_who_belong_together_go_together(social: Scheduling) -> None:
    await social.clusters("m1", pods=5)
    await social.clusters("m2", pods=9)
    await social.bind("a-deployment", member("a", affinityGroup="app=x"))
    assert await social.targets("a-deployment") == {"m2": 1}
    await social.report("m1", 50)
    await social.bind("b-deployment", member("b", affinityGroup="app=x"))
    await social.bind("c-deployment", member("c"))
    assert await social.targets("b-deployment") == {"m2": 1}
    assert await social.targets("c-deployment") == {"m1": 1}


async def test_those_who_keep_apart_know_of_each_other_even_when_they_come_at_once(folder: Path) -> None:
    async with scheduling(folder, gates="WorkloadAffinity=true", scheduler=False) as plane:
        await plane.clusters("m1", "m2", pods=9)
        for name in "abc":
            await plane.bind(f"{name}-deployment", member(name, antiAffinityGroup="app=x"))
        async with plane.another():
            found = [await plane.targets(f"{name}-deployment") for name in "abc"]
            assert sorted(map(sorted, found)) == [[], ["m1"], ["m2"]]
            lost = "abc"[found.index({})]
            text = "0/2 clusters are available: 2 cluster already has workload with the same anti-affinity group."
            assert await plane.condition(f"{lost}-deployment") == ("False", "NoClusterFit", text)


async def test_who_is_deleted_is_in_nobodys_way(social: Scheduling) -> None:
    await social.clusters("m1", pods=9)
    await social.bind("a-deployment", member("a", antiAffinityGroup="app=x"))
    await social.client.delete(BINDINGS, "a-deployment", "default")
    await social.rest()
    await social.bind("b-deployment", member("b", antiAffinityGroup="app=x"))
    assert await social.targets("b-deployment") == {"m1": 1}


@pytest.mark.parametrize("gates", ["WorkloadAffinity=true", "SchedulingOvercommitProtection=true"])
async def test_a_decision_counts_before_it_is_written(folder: Path, gates: str) -> None:
    async with scheduling(folder, gates=gates) as plane:
        await plane.clusters("m1", "m2", pods=1)
        gate = asyncio.Event()
        held: list[str] = []

        async def wait(path: str) -> None:
            held.append(path)
            await gate.wait()

        plane.intercept_writes(lambda request: wait(request.path))
        for name in "ab":
            head = {"apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding"}
            metadata = {"name": f"{name}-deployment", "namespace": "default", "labels": MARKED}
            spec = member(name, antiAffinityGroup="app=x")
            await plane.client.create(BINDINGS, {**head, "metadata": metadata, "spec": spec})
        await eventually(lambda: len(held) == 2)
        gate.set()
        await plane.rest()
        assert {*await plane.targets("a-deployment"), *await plane.targets("b-deployment")} == {"m1", "m2"}


# estimators that are far away


class Far:
    name = "far"

    def __init__(self) -> None:
        self.answers: Mapping[str, int] | None = {"m1": 1, "m2": 5}

    async def estimate(self, request: EstimateRequest) -> Mapping[str, int]:
        if self.answers is None:
            raise EstimateError("no answer")
        return {name: self.answers[name] for name in request.names()}


async def test_estimators_far_away_take_part_and_are_done_without_when_they_fail(folder: Path) -> None:
    far = Far()
    async with scheduling(folder, estimators=[far]) as plane:
        await plane.clusters("m1", "m2", pods=9)
        await plane.bind("a-deployment", deployment(6, placement(DYNAMIC)))
        assert await plane.targets("a-deployment") == {"m1": 1, "m2": 5}
        far.answers = None
        await plane.bind("b-deployment", deployment(6, placement(DYNAMIC)))
        assert await plane.targets("b-deployment") == {"m1": 3, "m2": 3}
