"""CronFederatedHPAs at work: rules run when they are due, on a control plane whose clock the test moves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

from karmada.api.autoscaling import CronFederatedHPA, FederatedHPA
from karmada.controllers.cron_federated_hpa.controller import CronFederatedHPAs
from karmada.kube.kinds.cron import next_time
from karmada.kube.kinds.schedule import parse_schedule
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import Forbidden
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import CRDS, DEPLOYMENTS
from karmada.kube.objects.times import parse_time
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Controller
from tests.support.cases import cases
from tests.support.control_plane import ControlPlane, running
from tests.support.custom_kinds import definition, version
from tests.support.objects import kube_object
from tests.support.propagation import deployment

CREATED = parse_time("2024-01-01T00:30:00Z")
CRONS = CronFederatedHPA.gvr


@pytest.fixture
async def plane(folder: Path) -> AsyncIterator[ControlPlane]:
    async with started(folder) as control_plane:
        await control_plane.client.create(DEPLOYMENTS, deployment("web", replicas=1))
        yield control_plane


def started(folder: Path) -> AbstractAsyncContextManager[ControlPlane]:
    return running(folder, lambda context: [CronFederatedHPAs(context, zone=UTC)], clock=FakeClock(CREATED))


def rule(name: str = "morning", **fields: Any) -> Obj:
    return {"name": name, "schedule": "0 8 * * *", "timeZone": "Asia/Shanghai", "targetReplicas": 5, **fields}


def cron(*rules: Obj, kind: str = "Deployment", api_version: str = "apps/v1", target: str = "web") -> Obj:
    return kube_object(CronFederatedHPA.gvk.api_version, "CronFederatedHPA", "cron", "default") | {
        "spec": {
            "scaleTargetRef": {"apiVersion": api_version, "kind": kind, "name": target},
            "rules": list(rules) or [rule()],
        },
    }


def federated(low: int = 1, high: int = 10) -> Obj:
    return kube_object(FederatedHPA.gvk.api_version, "FederatedHPA", "fhpa", "default") | {
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": low,
            "maxReplicas": high,
        },
    }


async def change(plane: ControlPlane, *rules: Obj, **spec: object) -> None:
    patch = {"spec": {"rules": list(rules), **spec}}
    await plane.client.patch(CRONS, "cron", "default", patch)
    await rest(plane)


async def create(plane: ControlPlane, obj: Obj) -> None:
    await plane.client.create(CRONS, obj)
    await rest(plane)


async def rest(plane: ControlPlane, seconds: float = 0.1) -> None:
    assert isinstance(plane.clock, FakeClock)
    await plane.clock.advance(seconds)


async def until(plane: ControlPlane, time: str) -> None:
    await rest(plane, parse_time(time) - plane.clock.now() + 0.1)


async def entries(plane: ControlPlane) -> list[Obj]:
    status = (await plane.client.get(CRONS, "cron", "default")).get("status") or {}
    found: list[Obj] = status.get("executionHistories") or []
    return found


async def replicas(plane: ControlPlane, name: str = "web") -> int:
    return int((await plane.client.get(DEPLOYMENTS, name, "default"))["spec"].get("replicas", 1))


async def test_a_rule_runs_at_its_time_in_its_zone(plane: ControlPlane) -> None:
    await create(plane, cron())
    assert await entries(plane) == [{"ruleName": "morning", "nextExecutionTime": "2024-01-02T00:00:00Z"}]
    await until(plane, "2024-01-01T23:59:59Z")
    assert await replicas(plane) == 1
    await until(plane, "2024-01-02T00:00:00Z")
    assert await replicas(plane) == 5
    (entry,) = await entries(plane)
    assert entry["nextExecutionTime"] == "2024-01-03T00:00:00Z"
    (execution,) = entry["successfulExecutions"]
    assert execution == {
        "scheduleTime": "2024-01-02T00:00:00Z",
        "executionTime": "2024-01-02T00:00:00Z",
        "appliedReplicas": 5,
    }


async def test_the_fourth_success_drops_the_oldest(plane: ControlPlane) -> None:
    await create(plane, cron(rule(schedule="@hourly")))
    for _ in range(4):
        await rest(plane, 3600)
    (entry,) = await entries(plane)
    hours = [execution["scheduleTime"][11:16] for execution in entry["successfulExecutions"]]
    assert hours == ["04:00", "03:00", "02:00"]


async def test_a_workload_is_scaled_to_zero_and_up_again(plane: ControlPlane) -> None:
    night, day = rule("night", schedule="0 1 * * *", targetReplicas=0), rule("day", schedule="0 2 * * *")
    await create(plane, cron({**night, "timeZone": "UTC"}, {**day, "timeZone": "UTC"}))
    await until(plane, "2024-01-01T01:00:00Z")
    assert await replicas(plane) == 0
    await until(plane, "2024-01-01T02:00:00Z")
    assert await replicas(plane) == 5


async def test_bounds_of_a_federated_hpa_are_set(plane: ControlPlane) -> None:
    await plane.client.create(FederatedHPA.gvr, federated())
    wide = rule(targetReplicas=None, targetMinReplicas=3, targetMaxReplicas=20)
    target = {"kind": "FederatedHPA", "api_version": FederatedHPA.gvk.api_version, "target": "fhpa"}
    await create(plane, cron(wide, **target))
    await until(plane, "2024-01-02T00:00:00Z")
    spec = (await plane.client.get(FederatedHPA.gvr, "fhpa", "default"))["spec"]
    assert (spec["minReplicas"], spec["maxReplicas"]) == (3, 20)


async def test_bounds_that_admission_refuses_are_a_failed_execution(plane: ControlPlane) -> None:
    await plane.client.create(FederatedHPA.gvr, federated())
    narrow = rule(targetReplicas=None, targetMinReplicas=12)
    target = {"kind": "FederatedHPA", "api_version": FederatedHPA.gvk.api_version, "target": "fhpa"}
    await create(plane, cron(narrow, **target))
    await until(plane, "2024-01-02T00:00:00Z")
    (entry,) = await entries(plane)
    (execution,) = entry["failedExecutions"]
    assert "must be greater than or equal to `minReplicas`" in execution["message"]
    assert ("Warning", "ScaleFailed", execution["message"]) in await plane.events("cron")
    assert "successfulExecutions" not in entry


@cases(
    ({"target": "gone"}, 'deployments.apps "gone" not found'),
    ({"kind": "ConfigMap", "api_version": "v1"}, "the server could not find the requested resource"),
    (
        {"kind": "Gone", "api_version": "example.io/v1"},
        'the server doesn\'t have a resource type "example.io/v1, Kind=Gone"',
    ),
)
async def test_a_target_that_cannot_be_scaled_is_a_failed_execution(
    target: dict[str, str], message: str, plane: ControlPlane
) -> None:
    await create(plane, cron(**target))
    await until(plane, "2024-01-02T00:00:00Z")
    (entry,) = await entries(plane)
    (execution,) = entry["failedExecutions"]
    assert execution["message"] == message
    assert entry["nextExecutionTime"] == "2024-01-03T00:00:00Z"


async def test_nothing_outside_the_namespace_is_scaled(plane: ControlPlane) -> None:
    """Not even a kind that has no namespaces."""
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    crd = definition("example.io", "Farm", version(subresources={"scale": scale}), scope="Cluster")
    farms = GVR("example.io", "v1", "farms")
    await plane.client.create(CRDS, crd)
    await rest(plane)
    farm = kube_object("example.io/v1", "Farm", "web", spec={"replicas": 1})
    await plane.client.create(farms, farm)
    await create(plane, cron(kind="Farm", api_version="example.io/v1"))
    await until(plane, "2024-01-02T00:00:00Z")
    assert (await entries(plane))[0]["failedExecutions"]
    assert (await plane.client.get(farms, "web"))["spec"]["replicas"] == 1


async def test_suspending_stops_the_timer_and_resuming_counts_from_then(plane: ControlPlane) -> None:
    hourly = rule(schedule="@hourly")
    await create(plane, cron(hourly))
    await rest(plane, 3600)
    await change(plane, {**hourly, "suspend": True})
    (entry,) = await entries(plane)
    assert "nextExecutionTime" not in entry
    assert len(entry["successfulExecutions"]) == 1
    await rest(plane, 7200)
    await change(plane, hourly)
    (entry,) = await entries(plane)
    assert entry["nextExecutionTime"] == "2024-01-01T04:00:00Z"
    assert len(entry["successfulExecutions"]) == 1


async def test_renaming_a_rule_starts_a_history_anew_and_editing_keeps_it(plane: ControlPlane) -> None:
    await create(plane, cron(rule(schedule="@hourly")))
    await rest(plane, 3600)
    await change(plane, rule(schedule="0 */2 * * *"))
    (entry,) = await entries(plane)
    assert len(entry["successfulExecutions"]) == 1
    await change(plane, rule("other"))
    assert [set(entry) for entry in await entries(plane)] == [{"ruleName", "nextExecutionTime"}]


async def test_a_rule_that_cannot_start_does_not_hold_up_the_others(plane: ControlPlane) -> None:
    """Six fields are accepted by admission, as in Karmada, and have no executor."""
    await create(plane, cron(rule("bad", schedule="0 0 8 * * *"), rule()))
    assert [entry["ruleName"] for entry in await entries(plane)] == ["morning"]
    message = "rule bad: expected exactly 5 fields, found 6: [0 0 8 * * *]"
    assert ("Warning", "StartRuleFailed", message) in await plane.events("cron")
    await until(plane, "2024-01-02T00:00:00Z")
    assert await replicas(plane) == 5


async def test_what_was_due_while_nothing_ran_is_not_made_up_for(tmp_path: Path) -> None:
    async with running(tmp_path, clock=FakeClock(CREATED)) as plane:
        await plane.client.create(DEPLOYMENTS, deployment("web", replicas=1))
        await plane.client.create(CRONS, cron())
        missed = {"executionHistories": [{"ruleName": "morning", "nextExecutionTime": "2023-12-31T00:00:00Z"}]}
        await plane.client.patch(CRONS, "cron", "default", {"status": missed}, subresource="status")
        controller = Controller(CronFederatedHPAs(plane.context, zone=UTC), plane.context.informers)
        await controller.start()
        await rest(plane)
        assert await replicas(plane) == 1
        assert await entries(plane) == [{"ruleName": "morning", "nextExecutionTime": "2024-01-02T00:00:00Z"}]
        await controller.stop()


async def test_a_deleted_autoscaler_runs_no_more(plane: ControlPlane) -> None:
    await create(plane, cron())
    await plane.client.delete(CRONS, "cron", "default")
    await until(plane, "2024-01-03T00:00:00Z")
    assert await replicas(plane) == 1


async def test_nothing_is_written_between_runs(plane: ControlPlane) -> None:
    await create(plane, cron())
    before = (await plane.client.get(CRONS, "cron", "default"))["metadata"]["resourceVersion"]
    await rest(plane, 3 * 3600)
    assert (await plane.client.get(CRONS, "cron", "default"))["metadata"]["resourceVersion"] == before


@cases(3600.0, 365 * 86400.0, -3600.0, -365 * 86400.0)
async def test_a_rule_runs_by_the_time_of_day_also_after_it_was_set(jump: float, plane: ControlPlane) -> None:
    assert isinstance(plane.clock, FakeClock)
    await create(plane, cron(rule(schedule="0 */6 * * *", timeZone="UTC")))
    await rest(plane, 120)
    plane.clock.jump(jump)
    before = await replicas(plane)
    await rest(plane, 61)
    due = next_time(parse_schedule("0 */6 * * *"), plane.clock.now())
    assert before == 1
    assert due is not None
    await rest(plane, due - plane.clock.now() + 60)
    assert await replicas(plane) == 5


@cases(
    ({"schedule": "often"}, "invalid cron format"),
    ({"timeZone": "Moon/Base"}, "unknown time zone Moon/Base"),
    ({"targetReplicas": -1}, "targetReplicas should be larger than or equal to 0"),
    ({"targetReplicas": None}, "targetReplicas cannot be nil if you want to scale Deployment"),
)
async def test_bad_rules_are_refused(fields: dict[str, Any], message: str, plane: ControlPlane) -> None:
    with pytest.raises(Forbidden) as refused:
        await plane.client.create(CRONS, cron(rule(**fields)))
    assert message in refused.value.message
