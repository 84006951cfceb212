from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from karmada.kube.objects.gvrs import LEASES, NODES
from karmada.kube.objects.times import micro_time, parse_time, rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key
from karmada.kube.sim.context import Context
from karmada.kube.sim.controllers.nodelifecycle import (
    NodeLifecycle,
    lost_conditions,
    retainted,
    wanted_taints,
)
from karmada.kube.sim.controllers.tainteviction import evicted_at
from karmada.kube.sim.kubelet.heartbeats import NAMESPACE, LeaseLiveness
from karmada.kube.sim.profile import INSTANT, NodePool, Profile
from tests.kube.sim.harness import running
from tests.kube.sim.node_parts import NODE, Parts, condition, node_parts
from tests.support.cases import cases
from tests.support.eventually import eventually

NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"


def taints(node: Obj | None) -> set[tuple[str, str]]:
    return {(taint["key"], taint["effect"]) for taint in ((node or {}).get("spec") or {}).get("taints") or ()}


async def test_a_new_node_loses_its_taint_once_it_is_ready(tmp_path: Path) -> None:
    async with node_parts(tmp_path) as parts:
        await eventually(lambda: not taints(parts.node()))
        emitted = [(reason, message) for _, reason, message in await parts.cluster.events(NODE)]
        assert ("RegisteredNode", f"Node {NODE} event: Registered Node {NODE} in Controller") in emitted


@cases(("1.36", 50), ("1.30", 40))
async def test_a_silent_node_is_lost_after_the_grace_period(version: str, grace: int, tmp_path: Path) -> None:
    async with node_parts(tmp_path, version=version) as parts:
        await parts.create()
        await parts.until_ready()
        await parts.pass_time(100, 10)
        last = parts.heartbeats.renewed(NODE)
        parts.heartbeats.fail([NODE])
        await parts.pass_time(last + grace - 1 - parts.cluster.clock.now())
        assert condition(parts.node(), "Ready") == "True"
        await parts.pass_time(2)
        await eventually(lambda: condition(parts.node(), "Ready") == "Unknown", show=parts.node)
        node = parts.node()
        assert node is not None
        for posted in node["status"]["conditions"]:
            assert posted["status"] == "Unknown"
            assert posted["reason"] == "NodeStatusUnknown"
            assert posted["message"] == "Kubelet stopped posting node status."
        await eventually(lambda: taints(parts.node()) == {(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")})
        await parts.until_ready(status="False")
        pod = parts.pod()
        assert pod is not None
        assert pod["status"]["phase"] == "Running"
        assert ("Warning", "NodeNotReady", "Node is not ready") in await parts.cluster.events("p")
        emitted = await parts.cluster.events(NODE)
        assert ("Normal", "NodeNotReady", f"Node {NODE} status is now: NodeNotReady") in emitted


async def test_a_node_that_returns_is_as_before(tmp_path: Path) -> None:
    async with node_parts(tmp_path) as parts:
        await parts.create()
        await parts.until_ready()
        parts.heartbeats.fail([NODE])
        await parts.pass_time(100, 5)
        await parts.until_ready(status="False")
        parts.heartbeats.heal([NODE])
        await parts.until_ready()
        await eventually(lambda: not taints(parts.node()))
        assert condition(parts.node(), "Ready") == "True"
        await parts.pass_time(600, 30)
        pod = parts.pod()
        assert pod is not None
        assert "deletionTimestamp" not in pod["metadata"]
        assert ("Normal", "TaintManagerEviction", "Cancelling deletion of Pod default/p") in await parts.cluster.events(
            "p"
        )


async def test_pods_of_a_lost_node_are_marked_for_deletion_after_their_toleration(tmp_path: Path) -> None:
    forever = [{"key": UNREACHABLE, "operator": "Exists", "effect": "NoExecute"}]
    async with node_parts(tmp_path) as parts:
        await parts.create("default-toleration")
        await parts.create("daemon", tolerations=forever)
        await parts.create("hasty", tolerations=[{**forever[0], "tolerationSeconds": 20}])
        for name in ("default-toleration", "daemon", "hasty"):
            await parts.until_ready(name)
        parts.heartbeats.fail([NODE])
        await parts.pass_time(60, 1)
        await eventually(lambda: (UNREACHABLE, "NoExecute") in taints(parts.node()))
        added = _added(parts)

        def deleted(name: str) -> bool:
            return "deletionTimestamp" in (parts.pod(name) or {})["metadata"]

        await parts.pass_time(added + 21 - parts.cluster.clock.now())
        await eventually(lambda: deleted("hasty"), show=lambda: parts.pod("hasty"))
        await parts.pass_time(added + 298 - parts.cluster.clock.now(), 10)
        assert not deleted("default-toleration")
        await parts.pass_time(4)
        await eventually(lambda: deleted("default-toleration"))
        pod = parts.pod("default-toleration")
        assert pod is not None
        [target] = [c for c in pod["status"]["conditions"] if c["type"] == "DisruptionTarget"]
        assert (target["status"], target["reason"]) == ("True", "DeletionByTaintManager")
        emitted = await parts.cluster.events("default-toleration")
        assert ("Normal", "TaintManagerEviction", "Marking for deletion Pod default/default-toleration") in emitted
        await parts.pass_time(600, 60)
        assert parts.pod("default-toleration") is not None
        assert not deleted("daemon")
        parts.heartbeats.heal([NODE])
        await parts.until_gone("default-toleration")
        await parts.until_gone("hasty")
        await parts.until_ready("daemon")


def _added(parts: Parts) -> float:
    node = parts.node()
    assert node is not None
    return max(parse_time(taint["timeAdded"]) for taint in node["spec"]["taints"])


async def test_a_pod_without_toleration_leaves_at_once(tmp_path: Path) -> None:
    async with node_parts(tmp_path) as parts:
        await parts.create()
        await parts.until_ready()
        patch = {"spec": {"taints": [{"key": "maintenance", "effect": "NoExecute"}]}}
        await parts.cluster.client.patch(NODES, NODE, "", patch)
        await parts.until_gone()
        node = parts.node()
        assert ("maintenance", "NoExecute") in taints(node)


async def test_a_cordoned_node_is_tainted_and_an_uncordoned_one_is_not(tmp_path: Path) -> None:
    async with node_parts(tmp_path) as parts:
        await parts.cluster.client.patch(NODES, NODE, "", {"spec": {"unschedulable": True}})
        await eventually(lambda: taints(parts.node()) == {("node.kubernetes.io/unschedulable", "NoSchedule")})
        await parts.cluster.client.patch(NODES, NODE, "", {"spec": {"unschedulable": None}})
        await eventually(lambda: not taints(parts.node()))


async def test_a_node_nobody_speaks_for_never_becomes_ready(tmp_path: Path) -> None:
    async with node_parts(tmp_path, pools=[NodePool(count=1)]) as parts:
        await parts.cluster.client.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "ghost"}})
        await eventually(lambda: parts.node("ghost"))
        await parts.pass_time(59, 5)
        assert condition(parts.node("ghost"), "Ready") == ""
        await parts.pass_time(5)
        await eventually(lambda: condition(parts.node("ghost"), "Ready") == "Unknown")
        node = parts.node("ghost")
        assert node is not None
        assert {c["reason"] for c in node["status"]["conditions"]} == {"NodeStatusNeverUpdated"}
        await eventually(lambda: (UNREACHABLE, "NoExecute") in taints(parts.node("ghost")))


async def test_nodes_of_real_kubelets_are_judged_by_their_leases(tmp_path: Path) -> None:
    def parts(context: Context) -> Sequence[Any]:
        return [NodeLifecycle(context, LeaseLiveness(context))]

    async with running(tmp_path, parts, profile=Profile("t", latencies=INSTANT)) as cluster:
        nodes = cluster.context.informers.of(NODES)

        def ready() -> str:
            return condition(nodes.get(Key("", "real")), "Ready")

        posted = [{"type": "Ready", "status": "True", "lastHeartbeatTime": rfc3339(cluster.clock.now())}]
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "real"}, "status": {"conditions": posted}}
        await cluster.client.create(NODES, node)
        lease: Obj = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "real"}}
        await cluster.client.create(LEASES, {**lease, "spec": {"renewTime": micro_time(1)}}, NAMESPACE)
        for second in range(20):
            await cluster.clock.advance(10)
            await cluster.client.patch(LEASES, "real", NAMESPACE, {"spec": {"renewTime": micro_time(second + 2)}})
        await cluster.clock.advance(5)
        assert ready() == "True"
        for _ in range(50):
            await cluster.clock.advance(1)
        await eventually(lambda: ready() == "Unknown", show=lambda: nodes.list())


# --- rules


def node_with(ready: str | None, *, unschedulable: bool = False, **others: str) -> Obj:
    conditions = [{"type": kind, "status": status} for kind, status in others.items()]
    if ready is not None:
        conditions.append({"type": "Ready", "status": ready})
    return {"spec": {"unschedulable": unschedulable}, "status": {"conditions": conditions}}


@cases(
    (node_with("True"), []),
    (node_with("False"), [(NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute")]),
    (node_with("Unknown"), [(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")]),
    (node_with(None), [(NOT_READY, "NoSchedule")]),
    (node_with("True", DiskPressure="True"), [("node.kubernetes.io/disk-pressure", "NoSchedule")]),
    (node_with("True", DiskPressure="Unknown"), []),
    (node_with("True", unschedulable=True), [("node.kubernetes.io/unschedulable", "NoSchedule")]),
)
def test_conditions_become_taints(node: Obj, wanted: list[tuple[str, str]]) -> None:
    assert wanted_taints(node) == wanted


def test_other_peoples_taints_stay_and_ours_keep_their_time() -> None:
    old = [
        {"key": "theirs", "effect": "NoExecute", "value": "x"},
        {"key": NOT_READY, "effect": "NoSchedule"},
        {"key": UNREACHABLE, "effect": "NoExecute", "timeAdded": "then"},
    ]
    new = retainted(old, [(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")], 0.0)
    assert new == [
        old[0],
        old[2],
        {"key": UNREACHABLE, "effect": "NoSchedule", "timeAdded": "1970-01-01T00:00:00Z"},
    ]


def test_lost_conditions_are_only_those_that_change() -> None:
    conditions = [{"type": "Ready", "status": "Unknown"}, {"type": "DiskPressure", "status": "False"}]
    assert [(c["type"], c["reason"]) for c in lost_conditions(conditions, 0.0)] == [
        ("MemoryPressure", "NodeStatusNeverUpdated"),
        ("DiskPressure", "NodeStatusUnknown"),
        ("PIDPressure", "NodeStatusNeverUpdated"),
    ]


TAINT = {"key": "k", "effect": "NoExecute", "timeAdded": rfc3339(1000)}


@cases(
    ([], 0.0),
    ([{"key": "other", "operator": "Exists"}], 0.0),
    ([{"operator": "Exists"}], math.inf),
    ([{"key": "k", "operator": "Exists", "tolerationSeconds": 60}], 1060.0),
    ([{"operator": "Exists"}, {"key": "k", "operator": "Exists", "tolerationSeconds": 60}], 1060.0),
    ([{"key": "k", "operator": "Exists", "tolerationSeconds": 0}], 1000.0),
    ([{"key": "k", "operator": "Exists", "tolerationSeconds": -5}], 1000.0),
    ([{"key": "k", "operator": "Exists", "effect": "NoSchedule"}], 0.0),
)
def test_how_long_a_pod_stays(tolerations: list[Obj], due: float) -> None:
    assert evicted_at([TAINT], tolerations, 5000.0) == due


def test_a_taint_without_a_time_counts_from_when_it_was_seen() -> None:
    tolerations = [{"operator": "Exists", "tolerationSeconds": 60}]
    assert evicted_at([{"key": "k", "effect": "NoExecute"}], tolerations, 5000.0) == 5060.0
    assert evicted_at([], tolerations, 5000.0) == math.inf
