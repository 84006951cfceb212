"""Faults of nodes, pods and parts of a cluster."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from karmada.kube.objects.gvrs import DEPLOYMENTS, PODS
from karmada.kube.sim.behaviours import Outcome, Rule
from karmada.kube.sim.faults import kinds
from tests.kube.sim.faults.reaching import A_MOMENT, jump
from tests.kube.sim.whole_cluster import Whole, condition, deployment
from tests.support.cases import cases
from tests.support.eventually import eventually

# --- nodes


def taints(whole: Whole, node: str) -> set[tuple[str, str]]:
    return {(taint["key"], taint["effect"]) for taint in whole.node(node)["spec"].get("taints") or ()}


UNREACHABLE = "node.kubernetes.io/unreachable"


async def test_a_lost_node_is_noticed_tainted_and_emptied_and_comes_back(whole: Whole) -> None:
    await whole.deploy(4)
    lost = "small-node-1"
    there = {pod["metadata"]["name"] for pod in whole.pods() if pod["spec"]["nodeName"] == lost}
    assert there
    await whole.sim.faults.inject(kinds.NodeLost(nodes=(lost,)))
    assert condition(whole.node(lost), "Ready") == "True"  # nobody knows yet
    await jump(whole, 55)
    await eventually(lambda: condition(whole.node(lost), "Ready") == "Unknown")
    await eventually(lambda: {(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")} <= taints(whole, lost))
    assert there <= {pod["metadata"]["name"] for pod in whole.pods()}
    await jump(whole, 310)
    await eventually(lambda: whole.ready() == 4 and len(_elsewhere(whole, lost)) == 4, show=whole.states)
    stuck = [pod for pod in whole.pods() if pod["metadata"]["name"] in there]
    assert all(pod["metadata"].get("deletionTimestamp") for pod in stuck)
    await whole.sim.faults.heal("node")
    await eventually(lambda: condition(whole.node(lost), "Ready") == "True")
    await eventually(lambda: not taints(whole, lost))
    await eventually(lambda: len(whole.pods()) == 4, show=whole.states)  # its kubelet has let go of the old ones


def _elsewhere(whole: Whole, node: str) -> list[str]:
    return [pod["metadata"]["name"] for pod in whole.pods() if pod["spec"].get("nodeName") not in (None, node)]


async def test_pods_that_tolerate_for_a_while_are_evicted_after_it_on_a_fast_clock(whole: Whole) -> None:
    toleration = {"key": UNREACHABLE, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}
    await whole.deploy(2, tolerations=[toleration])
    await whole.sim.faults.inject(kinds.NodeLost(nodes=("small-node-1",)))
    await whole.sim.faults.inject(kinds.Clock(rate=100))
    await eventually(lambda: len(_elsewhere(whole, "small-node-1")) == 2 and whole.ready() == 2, show=whole.states)


async def test_a_node_that_comes_back_in_time_keeps_its_pods(whole: Whole) -> None:
    await whole.deploy(4)
    before = sorted(pod["metadata"]["uid"] for pod in whole.pods())
    await whole.sim.faults.inject(kinds.NodeLost(nodes=("small-node-1",)))
    await jump(whole, 55)
    await eventually(lambda: condition(whole.node("small-node-1"), "Ready") == "Unknown")
    await eventually(lambda: whole.ready() == 2)
    await whole.sim.faults.heal("node")
    await eventually(lambda: whole.ready() == 4, show=whole.states)
    assert sorted(pod["metadata"]["uid"] for pod in whole.pods()) == before
    assert all(
        container["restartCount"] == 0 for pod in whole.pods() for container in pod["status"]["containerStatuses"]
    )


async def test_a_node_that_two_faults_have_works_only_after_both_are_healed(whole: Whole) -> None:
    heartbeats = whole.sim.heartbeats
    await whole.sim.faults.inject(kinds.NodeLost(nodes=("small-node-1",)), name="one")
    await whole.sim.faults.inject(kinds.NodeLost(pool="node"), name="pool")
    assert heartbeats.failed("small-node-1")
    assert heartbeats.failed("small-node-2")
    await whole.sim.faults.heal("pool")
    assert heartbeats.failed("small-node-1")
    assert not heartbeats.failed("small-node-2")
    await whole.sim.faults.heal("one")
    assert not heartbeats.failed("small-node-1")


@cases(("MemoryPressure", "memory-pressure"), ("DiskPressure", "disk-pressure"), ("PIDPressure", "pid-pressure"))
async def test_a_node_under_pressure_takes_no_more_pods(kind: Any, key: str, whole: Whole) -> None:
    await whole.sim.faults.inject(kinds.Pressure(nodes=("small-node-1",), condition=kind))
    taint = (f"node.kubernetes.io/{key}", "NoSchedule")
    await eventually(lambda: taint in taints(whole, "small-node-1"))
    assert condition(whole.node("small-node-1"), kind) == "True"
    await whole.deploy(2)
    assert len(_elsewhere(whole, "small-node-1")) == 2
    await whole.sim.faults.heal()
    await eventually(lambda: not taints(whole, "small-node-1"))
    assert condition(whole.node("small-node-1"), kind) == "False"


# --- pods


async def test_images_that_cannot_be_pulled_keep_pods_waiting_until_they_can(whole: Whole) -> None:
    rule = Rule(Outcome("image-pull-error"), image="nginx")
    await whole.sim.faults.inject(kinds.Pods(rule=rule), name="registry")
    await whole.admin.create(DEPLOYMENTS, deployment("web", 2))
    await eventually(lambda: whole.states() == ["ErrImagePull"] * 2, show=whole.states)
    await jump(whole, 2)
    await eventually(lambda: whole.states() == ["ImagePullBackOff"] * 2, show=whole.states)
    assert whole.ready() == 0
    await whole.sim.faults.heal("registry")
    await eventually(lambda: whole.ready() == 2, show=whole.states)


async def test_pods_that_crash_are_restarted_ever_later_and_recover(whole: Whole) -> None:
    await whole.deploy(1)
    await whole.sim.faults.inject(kinds.Pods(rule=Rule(Outcome("crash-loop"), labels={"app": "web"})), name="bug")

    def container() -> dict[str, Any]:
        [pod] = whole.pods()
        found: dict[str, Any] = pod["status"]["containerStatuses"][0]
        return found

    async def backing_off() -> bool:
        await jump(whole, 0.5)  # moved by the test, time cannot run past the state that it looks for
        return container()["restartCount"] == 3 and whole.states() == ["CrashLoopBackOff"]

    async def recovered() -> bool:
        await jump(whole, 0.5)
        return whole.ready() == 1

    await eventually(backing_off, show=container)
    assert container()["state"]["waiting"]["message"].startswith("back-off 40s restarting failed container=main")
    assert container()["lastState"]["terminated"]["exitCode"] == 1
    assert whole.ready() == 0
    await whole.sim.faults.heal("bug")
    await eventually(recovered, show=whole.states)


# --- parts of the cluster


async def test_a_paused_controller_catches_up_when_it_goes_on(whole: Whole) -> None:
    await whole.sim.faults.inject(kinds.Paused(component="deployment"))
    await whole.admin.create(DEPLOYMENTS, deployment("web", 2))
    await asyncio.sleep(A_MOMENT)
    assert not whole.pods()
    await whole.sim.faults.heal()
    await eventually(lambda: whole.ready() == 2)


async def test_without_a_scheduler_pods_stay_pending(whole: Whole) -> None:
    await whole.deploy(2)
    await whole.sim.faults.inject(kinds.Paused(component="scheduler"))
    await whole.admin.patch(DEPLOYMENTS, "web", "default", {"spec": {"replicas": 4}})
    await eventually(lambda: whole.states() == ["Pending", "Pending", "Running", "Running"], show=whole.states)
    await whole.admin.delete(
        PODS, next(p for p in whole.pods() if p["spec"].get("nodeName"))["metadata"]["name"], "default"
    )
    await eventually(lambda: whole.states() == ["Pending"] * 3 + ["Running"], show=whole.states)
    await whole.sim.faults.heal()
    await eventually(lambda: whole.ready() == 4, show=whole.states)


async def test_without_kubelets_pods_are_placed_and_do_not_start(whole: Whole) -> None:
    await whole.sim.faults.inject(kinds.Paused(component="kubelet"))
    await whole.admin.create(DEPLOYMENTS, deployment("web", 2))
    await eventually(lambda: len([p for p in whole.pods() if p["spec"].get("nodeName")]) == 2)
    assert whole.states() == ["Pending", "Pending"]
    await whole.sim.faults.heal()
    await eventually(lambda: whole.ready() == 2)


async def test_a_component_that_two_faults_pause_goes_on_after_both(whole: Whole) -> None:
    await whole.sim.faults.inject(kinds.Paused(component="deployment"), name="one")
    await whole.sim.faults.inject(kinds.Paused(component="deployment"), name="two")
    await whole.sim.faults.heal("one")
    await whole.admin.create(DEPLOYMENTS, deployment("web", 1))
    await asyncio.sleep(A_MOMENT)
    assert not whole.pods()
    await whole.sim.faults.heal("two")
    await eventually(lambda: whole.ready() == 1)


async def test_a_skewed_clock_shows_in_what_is_written_and_is_set_right_again(whole: Whole) -> None:
    await whole.sim.faults.inject(kinds.Clock(skip=-7200), name="behind")
    await whole.sim.faults.inject(kinds.Clock(skip=3600), name="ahead")
    assert whole.sim.clock.now() == pytest.approx(time.time() - 3600, abs=1)
    await whole.sim.faults.heal("ahead")
    assert whole.sim.clock.now() == pytest.approx(time.time() - 7200, abs=1)
    await whole.sim.faults.heal()
    assert whole.sim.clock.now() == pytest.approx(time.time(), abs=1)
