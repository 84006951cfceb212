from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from karmada.kube.objects.gvrs import NODES, PODS
from karmada.kube.objects.meta import get_condition
from karmada.kube.objects.types import Obj
from karmada.kube.sim.controllers.podgc import OUT_OF_SERVICE, PodGarbage
from tests.kube.sim.harness import Harness, running
from tests.support.eventually import eventually


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Harness]:
    async with running(tmp_path, lambda context: [PodGarbage(context, kept=2)]) as harness:
        yield harness


async def node(cluster: Harness, name: str = "n") -> Obj:
    return await cluster.client.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})


async def pod(cluster: Harness, name: str, node_name: str = "", **meta: Any) -> Obj:
    spec: Obj = {"containers": [{"name": "c", "image": "nginx"}]}
    if node_name:
        spec["nodeName"] = node_name
    made = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default", **meta}, "spec": spec}
    return await cluster.client.create(PODS, made)


def pods(cluster: Harness) -> dict[str, Obj]:
    return {p["metadata"]["name"]: p for p in cluster.context.informers.of(PODS).list("default")}


async def test_pods_of_a_node_that_is_gone_for_forty_seconds_go(cluster: Harness) -> None:
    await node(cluster)
    await node(cluster, "other")
    await pod(cluster, "lost", "n", finalizers=["example.com/keep"])
    await pod(cluster, "fine", "other")
    await eventually(lambda: len(pods(cluster)) == 2)
    await cluster.client.delete(NODES, "n")
    await cluster.clock.advance(39)
    assert "deletionTimestamp" not in pods(cluster)["lost"]["metadata"]
    await cluster.clock.advance(1)
    await eventually(lambda: "deletionTimestamp" in pods(cluster)["lost"]["metadata"])
    status = pods(cluster)["lost"]["status"]
    assert status["phase"] == "Failed"
    condition = get_condition(status["conditions"], "DisruptionTarget")
    assert condition is not None
    assert (condition["reason"], condition["message"]) == ("DeletionByPodGC", "PodGC: node no longer exists")
    assert pods(cluster)["lost"]["metadata"]["deletionGracePeriodSeconds"] == 0
    assert "deletionTimestamp" not in pods(cluster)["fine"]["metadata"]


async def test_a_node_that_comes_back_in_time_keeps_its_pods(cluster: Harness) -> None:
    await node(cluster)
    await pod(cluster, "p", "n")
    await eventually(lambda: pods(cluster))
    await cluster.client.delete(NODES, "n")
    await cluster.clock.advance(20)
    await node(cluster)
    await cluster.clock.advance(60)
    assert pods(cluster)["p"]["status"]["phase"] == "Pending"


async def test_a_pod_for_a_node_that_never_was_goes(cluster: Harness) -> None:
    await pod(cluster, "p", "nowhere")
    await eventually(lambda: pods(cluster))
    await cluster.clock.advance(41)
    await eventually(lambda: not pods(cluster))


async def test_a_pod_that_ends_without_ever_having_had_a_node_is_marked_as_failed(cluster: Harness) -> None:
    await pod(cluster, "p", finalizers=["example.com/keep"])
    await cluster.client.delete(PODS, "p", "default")
    await eventually(lambda: pods(cluster).get("p", {}).get("status", {}).get("phase") == "Failed")


async def test_terminating_pods_of_a_node_out_of_service_go_at_once(cluster: Harness) -> None:
    await node(cluster)
    await pod(cluster, "staying", "n")
    await pod(cluster, "ending", "n")
    await cluster.client.delete(PODS, "ending", "default", grace_period=300)
    await eventually(lambda: "deletionTimestamp" in pods(cluster).get("ending", {}).get("metadata", {}))
    await cluster.clock.advance(60)
    assert "ending" in pods(cluster)
    taint = {"key": OUT_OF_SERVICE, "effect": "NoExecute", "value": "nodeshutdown"}
    await cluster.client.patch(NODES, "n", "", {"spec": {"taints": [taint]}})
    await eventually(lambda: "ending" not in pods(cluster))
    assert "staying" in pods(cluster)


async def test_the_oldest_finished_pods_go_beyond_the_limit_and_evicted_ones_first(cluster: Harness) -> None:
    await node(cluster)
    for number, reason in enumerate(("", "Evicted", "", "")):
        made = await pod(cluster, f"p{number}", "n")
        await cluster.set_pod_status(made, {"phase": "Failed", **({"reason": reason} if reason else {})})
        await cluster.clock.advance(1)
    await eventually(lambda: set(pods(cluster)) == {"p2", "p3"}, show=lambda: set(pods(cluster)))


async def test_the_evicted_pod_goes_before_an_older_one(cluster: Harness) -> None:
    await node(cluster)
    for number, reason in enumerate(("", "", "Evicted")):
        made = await pod(cluster, f"p{number}", "n")
        await cluster.set_pod_status(made, {"phase": "Failed", **({"reason": reason} if reason else {})})
        await cluster.clock.advance(1)
    await eventually(lambda: set(pods(cluster)) == {"p0", "p1"}, show=lambda: set(pods(cluster)))
