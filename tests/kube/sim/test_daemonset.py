from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from karmada.kube.objects.gvrs import DAEMON_SETS, NODES, PODS, QUOTAS
from karmada.kube.objects.meta import is_deleting
from karmada.kube.objects.podstate import is_ready, node_name
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key
from karmada.kube.sim.context import Context
from karmada.kube.sim.controllers.daemonset import DaemonSets
from karmada.kube.sim.controllers.daemonset_pods import target_node
from karmada.kube.sim.controllers.revisions import CONTROLLER_REVISIONS
from tests.kube.sim.harness import Harness, running
from tests.kube.sim.podlife import PodLife, SetCluster
from tests.kube.sim.workload_pods import rolling
from tests.support.eventually import eventually
from tests.support.objects import kube_object

HASH = "controller-revision-hash"


def daemon_set(image: str = "agent:1", *, strategy: Obj | None = None, pod: Obj | None = None, **spec: Any) -> Obj:
    containers = [{"name": "c", "image": image}]
    template = {"metadata": {"labels": {"app": "agent"}}, "spec": {"containers": containers, **(pod or {})}}
    return kube_object("apps/v1", "DaemonSet", "agent", "default") | {
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "template": template,
            **({"updateStrategy": strategy} if strategy else {}),
            **spec,
        },
    }


class Cluster(SetCluster):
    """A cluster with DaemonSets, and what it knows of the set `agent`."""

    def __init__(self, harness: Harness, life: PodLife) -> None:
        super().__init__(harness, life, DAEMON_SETS, "agent")
        self._nodes = harness.context.informers.of(NODES)

    @property
    def pods(self) -> list[Obj]:
        return self._pods.list("default")

    def on(self, node: str) -> list[Obj]:
        return [pod for pod in self.pods if target_node(pod) == node]

    def images(self) -> dict[str, str]:
        """The version on each node; several, oldest first."""
        found: dict[str, str] = {}
        for pod in self.pods:
            where = target_node(pod)
            found[where] = found.get(where, "") + pod["spec"]["containers"][0]["image"][-1]
        return dict(sorted(found.items()))

    async def add_node(self, name: str, *, labels: Obj | None = None, taints: list[Obj] | None = None) -> Obj:
        node = kube_object("v1", "Node", name, labels=labels or {})
        await self.client.create(NODES, node)
        return await self.taint(name, *(taints or ()))

    async def taint(self, name: str, *taints: Obj) -> Obj:
        """These taints and no others, not even the one of a node that is new."""
        node = await self.client.patch(NODES, name, "", {"spec": {"taints": list(taints) or None}})
        await eventually(lambda: int(self._nodes.resource_version) >= int(node["metadata"]["resourceVersion"]))
        return node

    async def at_rest(self, nodes: int) -> Obj:
        def done() -> bool:
            status = self.status
            counts = [
                status.get(key, 0) for key in ("desiredNumberScheduled", "updatedNumberScheduled", "numberAvailable")
            ]
            current = status.get("observedGeneration") == self.workload["metadata"].get("generation")
            return current and counts == [nodes] * 3 and len(self.pods) == nodes

        await eventually(done, show=lambda: (self.status, self.images()))
        return self.status


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    """With three nodes: a, b and c."""
    lives: list[PodLife] = []

    def parts(context: Context) -> list[Any]:
        lives.append(PodLife(context))
        return [DaemonSets(context), lives[0]]

    async with running(tmp_path, parts) as harness:
        cluster = Cluster(harness, lives[0])
        for name in "abc":
            await cluster.add_node(name, labels={"name": name})
        yield cluster


async def test_every_node_gets_a_pod_made_for_it(cluster: Cluster) -> None:
    made = await cluster.create(daemon_set())
    status = await cluster.at_rest(3)
    assert status == {
        "desiredNumberScheduled": 3,
        "currentNumberScheduled": 3,
        "numberMisscheduled": 0,
        "numberReady": 3,
        "numberAvailable": 3,
        "updatedNumberScheduled": 3,
        "observedGeneration": 1,
    }
    (revision,) = (await cluster.client.list_all(CONTROLLER_REVISIONS, "default")).items
    hash_ = revision["metadata"]["name"].removeprefix("agent-")
    assert revision["metadata"]["labels"] == {"app": "agent", HASH: hash_}
    (pod,) = cluster.on("b")
    metadata = pod["metadata"]
    assert metadata["generateName"] == "agent-"
    assert metadata["labels"] == {"app": "agent", HASH: hash_, "pod-template-generation": "1"}
    assert metadata["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
    assert metadata["ownerReferences"][0]["controller"] is True
    emitted = await cluster.harness.events("agent")
    assert {(kind, reason) for kind, reason, _ in emitted} == {("Normal", "SuccessfulCreate")}
    assert {message for _, _, message in emitted} == {f"Created pod: {p['metadata']['name']}" for p in cluster.pods}


async def test_nodes_come_and_go(cluster: Cluster) -> None:
    cluster.life.may_start = lambda pod: target_node(pod) != "d"
    await cluster.create(daemon_set())
    await cluster.at_rest(3)
    await cluster.add_node("d")
    await eventually(lambda: len(cluster.on("d")) == 1)
    await cluster.client.delete(NODES, "c")
    await eventually(
        lambda: (cluster.status.get("desiredNumberScheduled"), cluster.status.get("numberUnavailable")) == (3, 1)
    )


async def test_a_pod_that_waits_for_a_node_that_is_gone_is_removed(tmp_path: Path) -> None:
    async with running(tmp_path, lambda context: [DaemonSets(context)]) as harness:
        pods = harness.context.informers.of(PODS)
        for name in "ab":
            await harness.client.create(NODES, kube_object("v1", "Node", name))
            await harness.client.patch(NODES, name, "", {"spec": {"taints": None}})
        await harness.client.create(DAEMON_SETS, daemon_set())
        await eventually(lambda: len(pods) == 2)
        await harness.client.delete(NODES, "b")
        await eventually(lambda: [target_node(pod) for pod in pods.list()] == ["a"])


async def test_only_nodes_that_the_template_selects_get_a_pod(cluster: Cluster) -> None:
    await cluster.create(daemon_set(pod={"nodeSelector": {"disk": "fast"}}))
    await eventually(lambda: cluster.status.get("observedGeneration") == 1)
    assert cluster.status["desiredNumberScheduled"] == 0
    await cluster.client.patch(NODES, "b", "", {"metadata": {"labels": {"disk": "fast"}}})
    await cluster.at_rest(1)
    assert list(cluster.images()) == ["b"]
    await cluster.client.patch(NODES, "b", "", {"metadata": {"labels": {"disk": None}}})
    await cluster.at_rest(0)


async def test_taints_keep_pods_out_or_drive_them_out(cluster: Cluster) -> None:
    await cluster.create(daemon_set())
    await cluster.at_rest(3)
    await cluster.taint("a", {"key": "full", "effect": "NoSchedule"})
    await eventually(lambda: cluster.status["numberMisscheduled"] == 1)
    assert (len(cluster.pods), cluster.status["desiredNumberScheduled"]) == (3, 2)
    await cluster.taint("a", {"key": "full", "effect": "NoExecute"})
    await cluster.at_rest(2)
    await cluster.taint("a")
    await cluster.at_rest(3)


async def test_a_cordoned_node_gets_a_pod_all_the_same(cluster: Cluster) -> None:
    await cluster.taint("a", {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
    await cluster.create(daemon_set())
    await cluster.at_rest(3)


async def test_an_update_replaces_one_pod_after_another(cluster: Cluster) -> None:
    await cluster.create(daemon_set())
    await cluster.at_rest(3)
    cluster.life.may_start = lambda _: False
    await cluster.new_image("agent:2")
    await eventually(lambda: sorted(cluster.images().values()) == ["1", "1", "2"])
    await cluster.quiet()
    status = cluster.status
    assert sorted(cluster.images().values()) == ["1", "1", "2"]
    assert (status["updatedNumberScheduled"], status["numberAvailable"], status["numberUnavailable"]) == (1, 2, 1)
    cluster.life.may_start = lambda _: True
    await cluster.life.resume()
    await cluster.at_rest(3)
    assert set(cluster.images().values()) == {"2"}
    assert {p["metadata"]["labels"]["pod-template-generation"] for p in cluster.pods} == {"2"}


async def test_an_update_may_take_a_share_of_the_nodes(cluster: Cluster) -> None:
    await cluster.create(daemon_set(strategy=rolling(maxUnavailable="50%")))
    await cluster.at_rest(3)
    cluster.life.may_start = lambda _: False
    await cluster.new_image("agent:2")
    await eventually(lambda: sorted(cluster.images().values()) == ["1", "2", "2"])
    await cluster.quiet()
    assert sorted(cluster.images().values()) == ["1", "2", "2"]


async def test_with_surge_the_new_pod_serves_before_the_old_one_goes(cluster: Cluster) -> None:
    await cluster.create(daemon_set(strategy=rolling(maxSurge=1, maxUnavailable=0)))
    await cluster.at_rest(3)
    cluster.life.may_start = lambda _: False
    await cluster.new_image("agent:2")
    await eventually(lambda: sorted(cluster.images().values()) == ["1", "1", "12"])
    await cluster.quiet()
    assert sorted(cluster.images().values()) == ["1", "1", "12"]
    assert cluster.status["numberAvailable"] == 3
    least = 3

    def watch(_: Obj | None, __: Obj | None) -> None:
        nonlocal least
        served = {node_name(pod) for pod in cluster.pods if is_ready(pod) and not is_deleting(pod)}
        least = min(least, len(served))

    cluster.harness.context.informers.of(PODS).add_handler(watch)
    cluster.life.may_start = lambda _: True
    await cluster.life.resume()
    await cluster.at_rest(3)
    assert set(cluster.images().values()) == {"2"}
    assert least == 3


async def test_on_delete_only_pods_that_somebody_deletes_change(cluster: Cluster) -> None:
    await cluster.create(daemon_set(strategy={"type": "OnDelete"}))
    await cluster.at_rest(3)
    await cluster.new_image("agent:2")
    await eventually(lambda: cluster.status["observedGeneration"] == 2)
    await cluster.quiet()
    assert set(cluster.images().values()) == {"1"}
    assert "updatedNumberScheduled" not in cluster.status
    (pod,) = cluster.on("a")
    await cluster.client.delete(PODS, pod["metadata"]["name"], "default")
    await eventually(lambda: cluster.images() == {"a": "2", "b": "1", "c": "1"})


async def test_a_failed_pod_is_replaced_at_once_and_the_next_after_a_pause(cluster: Cluster) -> None:
    await cluster.create(daemon_set())
    await cluster.at_rest(3)

    async def fail() -> Obj:
        (pod,) = cluster.on("a")
        await cluster.harness.set_pod_status(pod, {"phase": "Failed"})
        return pod

    def replaced(pod: Obj) -> bool:
        now = cluster.on("a")
        return len(now) == 1 and now[0]["metadata"]["uid"] != pod["metadata"]["uid"] and is_ready(now[0])

    first = await fail()
    await eventually(lambda: replaced(first))
    second = await fail()
    await cluster.harness.clock.advance(0.5)
    await cluster.quiet()
    assert [p["metadata"]["uid"] for p in cluster.on("a")] == [second["metadata"]["uid"]]
    await cluster.harness.clock.advance(0.5)
    await eventually(lambda: replaced(second))
    name = first["metadata"]["name"]
    emitted = await cluster.harness.events("agent")
    message = f"Found failed daemon pod default/{name} on node a, will try to kill it"
    assert emitted.count(("Warning", "FailedDaemonPod", message)) == 1
    assert ("Normal", "SuccessfulDelete", f"Deleted pod: {name}") in emitted


async def test_a_pod_that_succeeded_is_replaced(cluster: Cluster) -> None:
    await cluster.create(daemon_set())
    await cluster.at_rest(3)
    (pod,) = cluster.on("a")
    await cluster.harness.set_pod_status(pod, {"phase": "Succeeded"})
    await eventually(lambda: [p["metadata"]["uid"] for p in cluster.on("a")] not in ([], [pod["metadata"]["uid"]]))
    message = f"Found succeeded daemon pod default/{pod['metadata']['name']} on node a, will try to delete it"
    assert ("Normal", "SucceededDaemonPod", message) in await cluster.harness.events("agent")


async def test_a_pod_counts_when_it_was_ready_for_long_enough(cluster: Cluster) -> None:
    await cluster.create(daemon_set(minReadySeconds=30))
    await eventually(lambda: cluster.status.get("numberReady") == 3)
    await cluster.quiet()
    assert cluster.status["numberUnavailable"] == 3
    assert "numberAvailable" not in cluster.status
    await cluster.harness.clock.advance(30)
    await cluster.at_rest(3)


async def test_a_revision_brings_its_template_back(cluster: Cluster) -> None:
    await cluster.create(daemon_set())
    await cluster.at_rest(3)
    (first,) = (await cluster.client.list_all(CONTROLLER_REVISIONS, "default")).items
    await cluster.new_image("agent:2")
    await cluster.at_rest(3)
    await cluster.patch(first["data"])
    await eventually(lambda: set(cluster.images().values()) == {"1"})
    await cluster.at_rest(3)
    listed = (await cluster.client.list_all(CONTROLLER_REVISIONS, "default")).items
    assert {r["metadata"]["uid"]: r["revision"] for r in listed}[first["metadata"]["uid"]] == 3
    assert sorted(r["revision"] for r in listed) == [2, 3]


async def test_orphaned_pods_are_taken_over_by_a_set_that_matches_them(cluster: Cluster) -> None:
    await cluster.create(daemon_set())
    await cluster.at_rest(3)
    before = {pod["metadata"]["uid"] for pod in cluster.pods}
    await cluster.client.delete(DAEMON_SETS, "agent", "default", propagation="Orphan")
    await eventually(lambda: not cluster.status)
    await cluster.create(daemon_set())
    await cluster.at_rest(3)
    assert {pod["metadata"]["uid"] for pod in cluster.pods} == before


async def test_a_refused_pod_is_reported_and_retried(cluster: Cluster) -> None:
    quota = kube_object("v1", "ResourceQuota", "none", "default")
    await cluster.client.create(QUOTAS, {**quota, "spec": {"hard": {"pods": "0"}}})
    await cluster.create(daemon_set())
    queue = cluster.harness.manager.controllers["daemonset"].queue
    await eventually(lambda: queue.retries(Key("default", "agent")) > 0)
    assert (cluster.status["observedGeneration"], cluster.status["currentNumberScheduled"]) == (1, 0)
    emitted = await cluster.harness.events("agent")
    assert any((kind, reason) == ("Warning", "FailedCreate") for kind, reason, _ in emitted)
    await cluster.client.delete(QUOTAS, "none", "default")
    await cluster.harness.clock.advance(1000)
    await cluster.at_rest(3)


async def test_a_set_that_is_being_deleted_makes_nothing(cluster: Cluster) -> None:
    workload = daemon_set()
    await cluster.create({**workload, "metadata": {**workload["metadata"], "finalizers": ["example.com/x"]}})
    await cluster.at_rest(3)
    await cluster.client.delete(DAEMON_SETS, "agent", "default")
    await eventually(lambda: is_deleting(cluster.workload))
    (pod,) = cluster.on("a")
    await cluster.client.delete(PODS, pod["metadata"]["name"], "default")
    await eventually(lambda: not cluster.on("a"))
    await cluster.quiet()
    assert list(cluster.images()) == ["b", "c"]


async def test_many_nodes_are_served_in_large_steps_and_counted_from_time_to_time(cluster: Cluster) -> None:
    for number in range(297):
        await cluster.add_node(f"n{number}")
    await cluster.create(daemon_set())
    await eventually(lambda: sum(map(is_ready, cluster.pods)) == 300)
    await eventually(lambda: cluster.status.get("currentNumberScheduled") == 300)
    await cluster.harness.clock.advance(1)
    await cluster.at_rest(300)
