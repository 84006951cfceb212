"""Clusters fail and workloads move, on the fake clock."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from karmada.controllers.failover.taint_manager import TaintManager
from tests.controllers.failover.failing import KEY, Failing, failing
from tests.support.cases import cases

TOLERATES = {"clusterTolerations": [{"key": KEY, "operator": "Exists", "tolerationSeconds": 30}]}
MOVED = {
    "fromCluster": "m1",
    "purgeMode": "Gracefully",
    "replicas": 2,
    "reason": "TaintUntolerated",
    "producer": "TaintManager",
}


async def on_m1(fleet: Failing, **spec: Any) -> None:
    """A workload that is healthy in m1 and may go to m2."""
    await fleet.taint("m2", effect="NoSchedule")
    await fleet.bind("web", "m1", "m2", **spec)
    await fleet.taint("m2", effect="")
    await fleet.health(m1="Healthy")
    assert await fleet.targets() == {"m1": 2}


async def test_a_dead_cluster_is_left_after_the_toleration_and_the_copy_goes_once_the_next_is_healthy(
    fleet: Failing,
) -> None:
    await fleet.taint_policy()
    await on_m1(fleet, placement=TOLERATES)
    await fleet.ready("m1", "False")
    assert await fleet.taints("m1") == [(KEY, "NoSchedule"), (KEY, "NoExecute")]
    await fleet.plane.wait(27)
    assert await fleet.targets() == {"m1": 2}, "tolerated for 30 s"
    await fleet.plane.wait(3)
    assert await fleet.targets() == {"m2": 2}
    (task,) = await fleet.tasks()
    assert {key: value for key, value in task.items() if key != "creationTimestamp"} == MOVED
    assert task["creationTimestamp"]
    await fleet.health(m1="Healthy", m2="Unknown")
    assert await fleet.leaving() == ["m1"]
    await fleet.health(m1="Healthy", m2="Healthy")
    assert await fleet.leaving() == []
    message = "Evict from cluster m1 succeed."
    found = [event for event in await fleet.plane.events("web") if event[1] == "EvictWorkloadFromClusterSucceed"]
    assert found == [("Normal", "EvictWorkloadFromClusterSucceed", message)] * 2, "on the binding and on the template"
    await fleet.ready("m1")
    assert await fleet.taints("m1") == []
    assert await fleet.targets() == {"m2": 2}, "it does not move back by itself"


async def test_a_taint_that_is_tolerated_for_good_evicts_nothing(fleet: Failing) -> None:
    await on_m1(fleet, placement={"clusterTolerations": [{"key": "down", "operator": "Exists"}]})
    await fleet.taint("m1")
    await fleet.plane.wait(3600)
    assert await fleet.targets() == {"m1": 2}


async def test_a_taint_that_is_removed_in_time_evicts_nothing(fleet: Failing) -> None:
    tolerations = [{"key": "down", "operator": "Exists", "tolerationSeconds": 60}]
    await on_m1(fleet, placement={"clusterTolerations": tolerations})
    await fleet.taint("m1")
    await fleet.plane.wait(50)
    await fleet.taint("m1", effect="")
    await fleet.plane.wait(600)
    assert await fleet.targets() == {"m1": 2}
    assert await fleet.tasks() == []


@cases(
    (None, "Gracefully", "Gracefully"),
    (None, "Directly", "Directly"),
    ({"cluster": {"purgeMode": "Directly"}}, "Gracefully", "Directly"),
    ({"cluster": {}}, "Directly", "Gracefully"),
)
async def test_the_purge_mode_comes_from_the_policy_or_the_flag(
    failover: dict[str, Any] | None, default: str, mode: str, folder: Path
) -> None:
    async with failing(folder, "m1", "m2", no_execute_taint_eviction_purge_mode=default) as fleet:
        await on_m1(fleet, **({} if failover is None else {"failover": failover}))
        await fleet.taint("m1")
        assert [task["purgeMode"] for task in await fleet.tasks()] == [mode]


@cases(
    ("Failover=false", {}),
    ("Failover=true", {"enable_taint_manager": False}),
    ("Failover=true", {"enable_no_execute_taint_eviction": False}),
)
async def test_nothing_moves_unless_gate_and_flags_say_so(gates: str, settings: dict[str, Any], folder: Path) -> None:
    async with failing(folder, "m1", "m2", gates=gates, **settings) as fleet:
        await on_m1(fleet)
        await fleet.taint("m1")
        await fleet.plane.wait(600)
        assert await fleet.targets() == {"m1": 2}


async def test_evictions_are_paced(folder: Path) -> None:
    async with failing(folder, "m1", "m2", resource_eviction_rate=0.5) as fleet:
        await fleet.taint("m2", effect="NoSchedule")
        names = [f"web{number}" for number in range(12)]
        for name in names:
            await fleet.bind(name, "m1", "m2")
        await fleet.taint("m2", effect="")

        async def moved() -> int:
            return sum([bool(await fleet.tasks(name)) for name in names])

        await fleet.taint("m1")
        assert await moved() == 3
        (manager,) = {
            controller.reconciler
            for controller in fleet.plane.plane.manager.controllers.values()
            if isinstance(controller.reconciler, TaintManager) and "cluster" not in controller.name.split("-")[-1]
        }
        registry = CollectorRegistry()
        assert manager.metrics is not None
        registry.register(manager.metrics)
        assert registry.get_sample_value("eviction_queue_depth", {"name": "binding-eviction"}) == 9
        await fleet.plane.wait(2.1)
        assert await moved() == 6
        await fleet.plane.wait(4.1)
        assert await moved() == 12
        kinds = {"member_cluster": "m1", "resource_kind": "Deployment"}
        assert registry.get_sample_value("eviction_kind_total", kinds) == 12
        done = {"name": "binding-eviction", "result": "success"}
        assert registry.get_sample_value("eviction_processing_total", done) == 12


async def test_a_cluster_wide_binding_moves_as_well(fleet: Failing) -> None:
    placement = {"clusterAffinity": {"clusterNames": ["m1", "m2"]}}
    resource = {"apiVersion": "v1", "kind": "ConfigMap", "name": "role"}
    await fleet.plane.bind("role", {"resource": resource, "placement": placement}, namespace="")
    await fleet.taint("m1")
    await fleet.plane.wait(1)
    found = await fleet.plane.get("role", "")
    assert [target["name"] for target in found["spec"]["clusters"]] == ["m2"]
    assert [task["fromCluster"] for task in found["spec"]["gracefulEvictionTasks"]] == ["m1"]


# histories in which the original loses something


async def test_the_last_copy_stays_when_no_other_cluster_fits(fleet: Failing) -> None:
    """Nothing else matches the affinity: the copy in the tainted cluster serves on, whatever its grace period."""
    await fleet.bind("web", "m1")
    await fleet.health(m1="Healthy")
    await fleet.taint("m1")
    assert await fleet.targets() == {}
    await fleet.plane.wait(3600)
    assert await fleet.leaving() == ["m1"], "the task keeps the Work"
    text = "The copy in cluster m1 stays past its grace period until the resource is placed in another cluster."
    found = [event for event in await fleet.plane.events("web") if event[1] == "EvictionHeld"]
    assert found == [("Warning", "EvictionHeld", text)] * 2, "once on each"


async def test_configuration_in_a_named_cluster_survives_hours_of_silence(fleet: Failing) -> None:
    await fleet.taint_policy()
    resource = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "web"}
    placement = {"clusterAffinity": {"clusterNames": ["m1"]}}
    await fleet.plane.bind("web", {"resource": resource, "placement": placement})
    await fleet.health(m1="Healthy")
    await fleet.ready("m1", "Unknown")
    await fleet.plane.wait(4 * 3600)
    assert await fleet.leaving() == ["m1"], "cut off, not evicted for good"
    await fleet.ready("m1")
    await fleet.plane.wait(60)
    assert await fleet.targets() == {"m1": 0}
    assert await fleet.tasks() == []


async def test_a_task_does_not_survive_the_recovery_of_the_only_cluster(fleet: Failing) -> None:
    await fleet.taint_policy()
    await fleet.bind("web", "m1")
    await fleet.health(m1="Healthy")
    await fleet.ready("m1", "False")
    assert await fleet.leaving() == ["m1"]
    await fleet.ready("m1")
    await fleet.plane.wait(5)
    assert (await fleet.targets(), await fleet.tasks()) == ({"m1": 2}, [])
    assert "EvictionCancelled" in await fleet.reasons()
    await fleet.plane.change("web", {"replicas": 5})
    assert await fleet.targets() == {"m1": 5}, "and it is scheduled again"


async def test_the_flag_gives_karmadas_rule(folder: Path) -> None:
    async with failing(folder, "m1", evict_last_copy=True, graceful_eviction_timeout=60.0) as fleet:
        await fleet.bind("web", "m1")
        await fleet.health(m1="Healthy")
        await fleet.taint("m1")
        await fleet.plane.wait(61)
        assert await fleet.leaving() == []


async def test_a_copy_that_serves_waits_for_a_replacement_that_is_healthy(fleet: Failing) -> None:
    await on_m1(fleet)
    await fleet.taint("m1")
    await fleet.health(m1="Healthy", m2="Unhealthy")
    await fleet.plane.wait(3600)
    assert await fleet.leaving() == ["m1"]
    await fleet.health(m1="Healthy", m2="Healthy")
    assert await fleet.leaving() == []


async def test_a_copy_in_a_dead_cluster_goes_with_its_grace_period(fleet: Failing) -> None:
    await on_m1(fleet)
    await fleet.taint("m1")
    await fleet.health(m1="Healthy", m2="Unhealthy")
    await fleet.ready("m1", "False")
    await fleet.plane.wait(590)
    assert await fleet.leaving() == ["m1"]
    await fleet.plane.wait(15)
    assert await fleet.leaving() == []
