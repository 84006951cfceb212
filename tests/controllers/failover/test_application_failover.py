"""Applications that stay unhealthy in a cluster that works, on the fake clock."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.controllers.failover.failing import Failing, failing
from tests.controllers.failover.test_cluster_failover import on_m1
from tests.support.cases import cases

PRODUCER = "resource-binding-application-failover-controller"


def policy(seconds: int | None = 60, **fields: Any) -> dict[str, Any]:
    conditions = {} if seconds is None else {"tolerationSeconds": seconds}
    application = {"decisionConditions": conditions, "purgeMode": "Gracefully", **fields}
    return {"failover": {"application": application}, "propagateDeps": True}


async def test_it_moves_when_it_was_unhealthy_for_the_toleration(fleet: Failing) -> None:
    await on_m1(fleet, **policy(gracePeriodSeconds=120))
    await fleet.health(m1="Unhealthy")
    await fleet.plane.wait(59)
    assert await fleet.targets() == {"m1": 2}
    await fleet.plane.wait(1.1)
    assert await fleet.targets() == {"m2": 2}
    (task,) = await fleet.tasks()
    assert {key: value for key, value in task.items() if key != "creationTimestamp"} == {
        "fromCluster": "m1",
        "replicas": 2,
        "purgeMode": "Gracefully",
        "reason": "ApplicationFailure",
        "producer": PRODUCER,
        "gracePeriodSeconds": 120,
    }
    await fleet.plane.wait(121)
    assert await fleet.tasks() == [], "an unhealthy copy goes with its grace period"


async def test_the_default_toleration_is_five_minutes(fleet: Failing) -> None:
    await on_m1(fleet, **policy(None))
    await fleet.health(m1="Unhealthy")
    await fleet.plane.wait(299)
    assert await fleet.targets() == {"m1": 2}
    await fleet.plane.wait(2)
    assert await fleet.targets() == {"m2": 2}


@cases("Healthy", "Unknown")
async def test_any_other_report_begins_anew(health: str, fleet: Failing) -> None:
    await on_m1(fleet, **policy())
    await fleet.health(m1="Unhealthy")
    await fleet.plane.wait(50)
    await fleet.health(m1=health)
    await fleet.health(m1="Unhealthy")
    await fleet.plane.wait(50)
    assert await fleet.targets() == {"m1": 2}
    await fleet.plane.wait(11)
    assert await fleet.targets() == {"m2": 2}


async def test_without_toleration_it_moves_at_once(fleet: Failing) -> None:
    await on_m1(fleet, **policy(0))
    await fleet.health(m1="Unhealthy")
    assert await fleet.targets() == {"m2": 2}


async def test_never_keeps_both_copies_until_somebody_decides(fleet: Failing) -> None:
    await on_m1(fleet, **policy(purgeMode="Never"))
    await fleet.health(m1="Unhealthy")
    await fleet.plane.wait(61)
    assert [task["suppressDeletion"] for task in await fleet.tasks()] == [True]
    await fleet.health(m1="Unhealthy", m2="Healthy")
    await fleet.plane.wait(3600)
    (task,) = await fleet.tasks()
    await fleet.plane.change("web", {"gracefulEvictionTasks": [{**task, "suppressDeletion": False}]})
    await fleet.plane.wait(1)
    assert await fleet.tasks() == []


async def test_a_binding_that_does_not_propagate_its_dependencies_stays(fleet: Failing) -> None:
    await on_m1(fleet, **{**policy(), "propagateDeps": False})
    await fleet.health(m1="Unhealthy")
    await fleet.plane.wait(3600)
    assert await fleet.targets() == {"m1": 2}


async def test_a_kind_whose_health_nobody_can_interpret_stays(fleet: Failing) -> None:
    resource = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "web"}
    placement = {"clusterAffinity": {"clusterNames": ["m1"]}}
    await fleet.plane.bind("web", {"resource": resource, "placement": placement, **policy()})
    await fleet.health(m1="Unhealthy")
    await fleet.plane.wait(3600)
    assert await fleet.tasks() == []


async def test_graceful_modes_need_their_gate(folder: Path) -> None:
    async with failing(folder, "m1", "m2", gates="GracefulEviction=false") as fleet:
        await on_m1(fleet, **policy())
        await fleet.health(m1="Unhealthy")
        await fleet.plane.wait(100)
        assert await fleet.targets() == {"m1": 2}
        failed = ("Warning", "EvictWorkloadFromClusterFailed", "Evict from cluster m1 failed.")
        assert failed in await fleet.plane.events("web")


RULES: dict[str, Any] = {
    "statePreservation": {"rules": [{"aliasLabelName": "job.example.io/ready", "jsonPath": "{.readyReplicas}"}]}
}


async def test_state_is_taken_along(folder: Path) -> None:
    async with failing(folder, "m1", "m2", gates="StatefulFailoverInjection=true") as fleet:
        await on_m1(fleet, **policy(purgeMode="Directly", **RULES))
        await fleet.health(m1="Unhealthy")
        await fleet.plane.wait(61)
        (task,) = await fleet.tasks()
        assert task["preservedLabelState"] == {"job.example.io/ready": "2"}
        assert task["clustersBeforeFailover"] == ["m1"]


async def test_a_cluster_whose_state_is_not_known_is_not_left(folder: Path) -> None:
    async with failing(folder, "m1", "m2", gates="Failover=true,StatefulFailoverInjection=true") as fleet:
        await on_m1(fleet, failover={"cluster": {"purgeMode": "Directly", **RULES}})
        await fleet.plane.set_status("web", {"aggregatedStatus": [{"clusterName": "m1", "health": "Unknown"}]})
        await fleet.taint("m1")
        await fleet.plane.wait(30)
        assert await fleet.targets() == {"m1": 2}
        await fleet.health(m1="Healthy")
        await fleet.plane.wait(60)
        assert await fleet.targets() == {"m2": 2}
        assert (await fleet.tasks())[0]["preservedLabelState"] == {"job.example.io/ready": "2"}
