from __future__ import annotations

from pathlib import Path

import pytest

from karmada.kube.objects.gvrs import NODES
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key
from karmada.kube.sim.context import Context
from karmada.kube.sim.kubelet.nodeobject import allocatable_of, capacity_of, pod_range, slots_of, slots_taken
from karmada.kube.sim.kubelet.registration import NodeRegistration, UnknownNode, places_of
from karmada.kube.sim.profile import INSTANT, NodePool, Profile, Taint
from tests.kube.sim.harness import Harness, running
from tests.kube.sim.node_parts import NODE, condition, node_parts
from tests.support.cases import cases
from tests.support.eventually import eventually


def node_of(cluster: Harness, name: str) -> Obj | None:
    return cluster.context.informers.of(NODES).get(Key("", name))


async def test_a_node_has_everything_a_kubelet_reports(tmp_path: Path) -> None:
    pool = NodePool(
        name="gpu", count=2, zones=("a", "b"), region="eu", labels={"node-role.kubernetes.io/gpu": ""},
        taints=(Taint("gpu", "NoSchedule", "yes"),), extended={"nvidia.com/gpu": "2"}, provider="aws",
    )  # fmt: skip
    async with node_parts(tmp_path, pools=[pool]) as parts:
        node = parts.node("t-gpu-2")
        assert node is not None
        labels = node["metadata"]["labels"]
        assert labels["kubernetes.io/hostname"] == "t-gpu-2"
        assert (labels["topology.kubernetes.io/zone"], labels["topology.kubernetes.io/region"]) == ("b", "eu")
        assert labels["node-role.kubernetes.io/gpu"] == ""
        assert labels["beta.kubernetes.io/arch"] == labels["kubernetes.io/arch"] == "amd64"
        assert node["metadata"]["annotations"]["node.alpha.kubernetes.io/ttl"] == "0"
        spec, status = node["spec"], node["status"]
        assert (spec["podCIDR"], spec["podCIDRs"]) == ("10.244.1.0/24", ["10.244.1.0/24"])
        assert spec["providerID"] == "aws://t/t-gpu-2"
        assert {"key": "gpu", "effect": "NoSchedule", "value": "yes"} in spec["taints"]
        assert status["capacity"]["nvidia.com/gpu"] == "2"
        assert status["allocatable"]["cpu"] == "4"
        assert status["addresses"] == [
            {"type": "InternalIP", "address": "172.18.0.3"},
            {"type": "Hostname", "address": "t-gpu-2"},
        ]
        assert status["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 10250}}
        assert status["nodeInfo"]["kubeletVersion"] == "v1.36.0"
        assert status["nodeInfo"]["containerRuntimeVersion"].startswith("containerd://2.")
        assert [(c["type"], c["status"], c["reason"]) for c in status["conditions"]] == [
            ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
            ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
            ("PIDPressure", "False", "KubeletHasSufficientPID"),
            ("Ready", "True", "KubeletReady"),
        ]


async def test_a_node_is_not_ready_at_first_and_says_when_it_is(tmp_path: Path) -> None:
    async with running(tmp_path, _registration, profile=Profile("t", pools=(NodePool(count=1),))) as cluster:
        await eventually(lambda: node_of(cluster, NODE))
        assert condition(node_of(cluster, NODE), "Ready") == "False"
        taints = (node_of(cluster, NODE) or {})["spec"]["taints"]
        assert taints == [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
        await cluster.clock.advance(1)
        await eventually(lambda: condition(node_of(cluster, NODE), "Ready") == "True")
        emitted = [(reason, message) for _, reason, message in await cluster.events(NODE)]
        assert emitted == [("Starting", "Starting kubelet."), ("NodeReady", f"Node {NODE} status is now: NodeReady")]


def _registration(context: Context) -> list[NodeRegistration]:
    return [NodeRegistration(context)]


async def test_pools_change_at_run_time(tmp_path: Path) -> None:
    async with node_parts(tmp_path, pools=[NodePool(count=2)]) as parts:
        kept = parts.node("t-node-1")
        assert kept is not None
        big = NodePool(
            count=1, cpu="8", labels={"tier": "big"}, taints=(Taint("big", "NoSchedule"),), extended={"x.io/y": "1"}
        )
        parts.registration.set_pools([big, NodePool(name="spot", count=3)])
        await parts.registration.settled()
        await eventually(lambda: parts.nodes() == ["t-node-1", "t-spot-1", "t-spot-2", "t-spot-3"])
        await eventually(lambda: (parts.node() or {})["status"]["capacity"]["cpu"] == "8")
        node = parts.node()
        assert node is not None
        assert node["metadata"]["uid"] == kept["metadata"]["uid"]
        assert node["metadata"]["labels"]["tier"] == "big"
        assert [taint["key"] for taint in node["spec"]["taints"]] == ["big"]
        cidrs = {(parts.node(name) or {})["spec"]["podCIDR"] for name in parts.nodes()}
        assert len(cidrs) == 4
        parts.registration.set_pools([NodePool(count=1)])
        await parts.registration.settled()
        await eventually(lambda: parts.nodes() == ["t-node-1"])
        await eventually(lambda: (parts.node() or {})["status"]["capacity"]["cpu"] == "4")
        node = parts.node()
        assert node is not None
        assert "tier" not in node["metadata"]["labels"]
        assert not node["spec"].get("taints")
        assert "x.io/y" not in node["status"]["allocatable"]


async def test_labels_and_taints_of_others_survive_a_change_of_the_pool(tmp_path: Path) -> None:
    async with node_parts(tmp_path) as parts:
        patch = {"metadata": {"labels": {"mine": "1"}}, "spec": {"taints": [{"key": "mine", "effect": "NoSchedule"}]}}
        await parts.cluster.client.patch(NODES, NODE, "", patch)
        parts.registration.set_pools([NodePool(count=1, labels={"a": "b"}, taints=(Taint("x", "NoExecute"),))])
        await eventually(lambda: (parts.node() or {})["metadata"]["labels"].get("a") == "b")
        node = parts.node()
        assert node is not None
        assert node["metadata"]["labels"]["mine"] == "1"
        assert {taint["key"] for taint in node["spec"]["taints"]} == {"mine", "x"}


async def test_extended_resources_of_others_stay_on_the_node_and_can_be_used(tmp_path: Path) -> None:
    async with node_parts(tmp_path) as parts:
        status = {"status": {"capacity": {"example.com/dongle": "4"}}}
        await parts.cluster.client.patch(NODES, NODE, "", status, subresource="status")
        await eventually(
            lambda: (parts.node() or {})["status"]["allocatable"].get("example.com/dongle") == "4", show=parts.node
        )
        node = parts.node()
        assert node is not None
        assert node["status"]["capacity"]["example.com/dongle"] == "4"
        removed = {"status": {"capacity": {"example.com/dongle": None}, "allocatable": {"example.com/dongle": None}}}
        await parts.cluster.client.patch(NODES, NODE, "", removed, subresource="status")
        await eventually(lambda: "example.com/dongle" not in (parts.node() or {})["status"]["capacity"])


async def test_a_restart_finds_its_nodes_and_removes_those_of_no_pool(tmp_path: Path) -> None:
    profile = Profile("t", pools=(NodePool(count=3),), latencies=INSTANT)
    async with running(tmp_path, _registration, profile=profile) as cluster:
        await eventually(lambda: condition(node_of(cluster, "t-node-3"), "Ready") == "True")
        before = {n["metadata"]["name"]: n["metadata"] for n in cluster.context.informers.of(NODES).list()}
        await cluster.manager.controllers["node-registration"].stop()
        smaller = Profile("t", pools=(NodePool(count=2),), latencies=INSTANT)
        context = Context(
            lambda name: cluster.server.client(user_agent=name), cluster.context.informers, cluster.clock, smaller
        )
        del cluster.manager.controllers["node-registration"]
        controller = cluster.manager.add(NodeRegistration(context))
        await controller.start()
        try:
            nodes = cluster.context.informers.of(NODES)
            await eventually(lambda: len(nodes) == 2)
            for node in nodes.list():
                assert node["metadata"]["uid"] == before[node["metadata"]["name"]]["uid"]
        finally:
            await controller.stop()


async def test_a_node_that_somebody_deletes_stays_away_until_it_is_requested_again(tmp_path: Path) -> None:
    async with node_parts(tmp_path, pools=[NodePool(count=2)]) as parts:
        await parts.cluster.client.delete(NODES, "t-node-2")
        await eventually(lambda: parts.nodes() == [NODE])
        await parts.pass_time(30, 5)
        assert parts.nodes() == [NODE]
        parts.registration.set_pools([NodePool(count=2)])
        await eventually(lambda: condition(parts.node("t-node-2"), "Ready") == "True")
        node = parts.node("t-node-2")
        assert node is not None
        assert node["spec"]["podCIDR"] == "10.244.1.0/24"


async def test_fake_nodes_of_others_get_a_status_and_a_range(tmp_path: Path) -> None:
    async with node_parts(tmp_path) as parts:
        metadata = {"name": "kwok-1", "annotations": {"kwok.x-k8s.io/node": "fake"}}
        status = {"capacity": {"cpu": "32", "pods": "10"}}
        await parts.cluster.client.create(
            NODES, {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}
        )
        await eventually(lambda: condition(parts.node("kwok-1"), "Ready") == "True")
        await eventually(lambda: (parts.node("kwok-1") or {})["status"].get("addresses"))
        node = parts.node("kwok-1")
        assert node is not None
        assert node["spec"]["podCIDR"] == "10.244.1.0/24"
        assert node["status"]["capacity"]["cpu"] == "32"
        parts.registration.set_pools([])
        await eventually(lambda: parts.nodes() == ["kwok-1"])


async def test_pressure_shows_in_the_conditions_and_taints(tmp_path: Path) -> None:
    async with node_parts(tmp_path) as parts:
        parts.registration.set_pressure([NODE], "MemoryPressure", True)
        await eventually(lambda: condition(parts.node(), "MemoryPressure") == "True")
        await eventually(lambda: "memory-pressure" in str((parts.node() or {})["spec"].get("taints")))
        parts.registration.set_pressure([NODE], "MemoryPressure", False)
        await eventually(lambda: condition(parts.node(), "MemoryPressure") == "False")
        await eventually(lambda: not (parts.node() or {})["spec"].get("taints"))
        with pytest.raises(ValueError, match="unknown pressure"):
            parts.registration.set_pressure([NODE], "Ready", True)


async def test_nodes_are_selected_by_name_pool_and_zone(tmp_path: Path) -> None:
    pools = [NodePool(name="a", count=11, zones=("x", "y")), NodePool(name="b", count=1, zones=("x",))]
    async with node_parts(tmp_path, pools=pools) as parts:
        select = parts.registration.select
        assert select(pool="b") == ["t-b-1"]
        assert select(pool="a", zone="y") == ["t-a-2", "t-a-4", "t-a-6", "t-a-8", "t-a-10"]
        assert select(["t-b-1", "t-a-3"]) == ["t-a-3", "t-b-1"]
        assert len(select()) == 12
        with pytest.raises(UnknownNode, match="t-c-1"):
            select(["t-c-1"])


async def test_settled_nodes_cost_nothing(tmp_path: Path) -> None:
    async with node_parts(tmp_path, pools=[NodePool(count=5)]) as parts:
        names = ("node-registration", "node-lifecycle-controller", "taint-eviction-controller")
        controllers = [parts.cluster.manager.controllers[name] for name in names]
        await eventually(lambda: not any((parts.node(name) or {})["spec"].get("taints") for name in parts.nodes()))
        await eventually(lambda: all(controller.queue.idle for controller in controllers))
        before = (await parts.cluster.client.list_all(NODES)).items
        await parts.pass_time(600, 60)
        assert (await parts.cluster.client.list_all(NODES)).items == before
        assert [controller.queue.delayed for controller in controllers] == [0, 0, 0]


@cases(
    ([NodePool(count=300)], "10.244.0.0/16", "larger pod_cidr"),
    ([NodePool(count=200, pods=500)], "10.244.0.0/16", "larger pod_cidr"),
    ([NodePool(), NodePool()], "10.244.0.0/16", "two pools"),
)
def test_pools_that_cannot_be_are_refused(pools: list[NodePool], cidr: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        places_of(Profile("t", pod_cidr=cidr), pools)


def test_five_thousand_nodes_fit_into_a_large_range() -> None:
    assert len(places_of(Profile("t", pod_cidr="10.0.0.0/8"), [NodePool(count=5000)])) == 5000


@cases(
    (110, 1, "10.244.4.0/24"), (250, 1, "10.244.4.0/24"), (500, 2, "10.244.4.0/23"), (1000, 4, "10.244.4.0/22"),
)  # fmt: skip
def test_a_node_with_many_pods_has_a_larger_range(pods: int, slots: int, network: str) -> None:
    assert slots_of(NodePool(pods=pods)) == slots
    assert pod_range("10.244.0.0/16", 4, slots) == network
    assert list(slots_taken("10.244.0.0/16", network)) == list(range(4, 4 + slots))


def test_ranges_elsewhere_take_no_slots() -> None:
    assert list(slots_taken("10.244.0.0/16", "10.100.0.0/24")) == []
    assert list(slots_taken("10.244.0.0/16", "10.245.0.0/24")) == []


def test_pods_get_the_memory_of_the_pool_and_the_kubelet_has_its_reserve_on_top() -> None:
    capacity = capacity_of(NodePool(memory="16Gi", ephemeral_storage="100Gi"))
    left = allocatable_of(capacity)
    assert (capacity["memory"], capacity["ephemeral-storage"], capacity["cpu"]) == ("16484Mi", "100Gi", "4")
    assert (left["memory"], left["ephemeral-storage"], left["cpu"]) == ("16Gi", "96636764160", "4")
