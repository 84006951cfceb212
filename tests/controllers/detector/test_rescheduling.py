"""Workloads in clusters above the thresholds of a ReplicaSchedulingPolicy are placed anew, one after the other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from karmada.api.cluster import Cluster
from karmada.controllers.detector.replica_policies import KINDS
from karmada.controllers.detector.rescheduling import is_too_full
from karmada.kube.objects.types import Obj
from tests.support.cases import cases
from tests.support.propagation import BINDINGS, Propagation, deployment, placed, policy

pytestmark = pytest.mark.asyncio(loop_scope="module")
CLUSTER_WIDE = KINDS[1]
DYNAMIC = {
    "replicaSchedulingType": "Divided",
    "replicaDivisionPreference": "Weighted",
    "weightPreference": {"dynamicWeight": "AvailableReplicas"},
}
AT_80 = {"enabled": True, "interval": "60s", "threshold": {"cpuUtilization": 80, "memoryUtilization": 80}}


def summary(cpu: str, memory: str, waiting: str = "0") -> Obj:
    return {
        "allocatable": {"cpu": "10", "memory": "10Gi"},
        "allocated": {"cpu": cpu, "memory": memory},
        "allocating": {"cpu": waiting},
    }


@cases(
    (summary("9", "1Gi"), {"cpuUtilization": 80}, True),
    (summary("8", "1Gi"), {"cpuUtilization": 80}, False),
    (summary("8", "1Gi", waiting="1"), {"cpuUtilization": 80}, True),
    (summary("9", "9Gi"), {"memoryUtilization": 95}, False),
    (summary("1", "9Gi"), {"cpuUtilization": 80, "memoryUtilization": 80}, True),
    (summary("9", "9Gi"), {}, False),
    ({}, {"cpuUtilization": 1}, False),
    (None, {"cpuUtilization": 1}, False),
)
async def test_a_cluster_is_too_full_above_a_threshold(used: Obj | None, threshold: Obj, full: bool) -> None:
    cluster = {"status": {"resourceSummary": used}}
    assert is_too_full(cluster, {"threshold": threshold}) is full


async def use(plane: Propagation, cluster: str, cpu: str) -> None:
    status = {"status": {"resourceSummary": summary(cpu, "1Gi")}}
    await plane.client.patch(Cluster.gvr, cluster, "", status, subresource="status")


@pytest_asyncio.fixture(loop_scope="module")
async def clusters(plane: Propagation) -> AsyncIterator[Propagation]:
    """m1 is at 90 % of its CPU, m2 is empty."""
    for name, cpu in (("m1", "9"), ("m2", "0")):
        made = {"apiVersion": Cluster.gvk.api_version, "kind": "Cluster", "metadata": {"name": name}}
        await plane.client.create(Cluster.gvr, {**made, "spec": {"syncMode": "Push"}})
        await use(plane, name, cpu)
    yield plane
    for name in ("m1", "m2"):
        await plane.client.delete(Cluster.gvr, name)


async def placed_on(plane: Propagation, name: str, **targets: int) -> None:
    await plane.apply(deployment(name))
    clusters = [{"name": cluster, "replicas": count} for cluster, count in targets.items()]
    await plane.change(BINDINGS, f"{name}-deployment", {"spec": {"clusters": clusters}})


async def policies(plane: Propagation, scheduling: Obj, **spec: Any) -> None:
    await plane.apply(policy(placement={**placed("m1", "m2"), "replicaScheduling": scheduling}))
    made = {"apiVersion": "config.karmada.io/v1alpha1", "kind": "ReplicaSchedulingPolicy", "metadata": {"name": "full"}}
    await plane.client.create(CLUSTER_WIDE, {**made, "spec": {"reschedulePolicy": AT_80, **spec}})
    await plane.rest()


async def triggered(plane: Propagation) -> list[str]:
    found = (await plane.client.list_all(BINDINGS)).items
    return sorted(one["spec"]["resource"]["name"] for one in found if one["spec"].get("rescheduleTriggeredAt"))


async def test_at_each_interval_one_is_placed_anew_the_largest_first_and_each_once(clusters: Propagation) -> None:
    await policies(clusters, DYNAMIC)
    await placed_on(clusters, "small", m1=1)
    await placed_on(clusters, "large", m1=5, m2=1)
    await placed_on(clusters, "elsewhere", m2=9)
    await clusters.rest(61)
    assert await triggered(clusters) == ["large"]
    assert "ReplicasRescheduled" in [reason for _, reason, _ in await clusters.events("large-deployment")]
    await clusters.rest(60)
    assert await triggered(clusters) == ["large", "small"]
    clusters.writes.clear()
    await clusters.rest(600)
    assert clusters.writes == [], "they stayed because there is no better place"


async def test_a_cluster_that_fills_up_again_is_tried_again(clusters: Propagation) -> None:
    await policies(clusters, DYNAMIC)
    await placed_on(clusters, "web", m1=3)
    await clusters.rest(61)
    assert await triggered(clusters) == ["web"]
    await use(clusters, "m1", "2")
    await clusters.rest(61)
    clusters.writes.clear()
    await use(clusters, "m1", "9")
    await clusters.rest(61)
    assert clusters.writes == ["PATCH resourcebindings web-deployment"]


STATIC = {
    **DYNAMIC,
    "weightPreference": {"staticWeightList": [{"targetCluster": {"clusterNames": ["m1"]}, "weight": 1}]},
}


@pytest.mark.parametrize(
    ("scheduling", "spec"),
    [
        (STATIC, {}),
        ({"replicaSchedulingType": "Duplicated"}, {}),
        (DYNAMIC, {"reschedulePolicy": {**AT_80, "enabled": False}}),
        (DYNAMIC, {"reschedulePolicy": {**AT_80, "threshold": {"cpuUtilization": 95}}}),
        (DYNAMIC, {"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "other"}]}),
    ],
    ids=["given weights", "duplicates", "disabled", "below", "not selected"],
)
async def test_nothing_else_moves(clusters: Propagation, scheduling: Obj, spec: Obj) -> None:
    await policies(clusters, scheduling, **spec)
    await placed_on(clusters, "web", m1=3)
    await clusters.rest(200)
    assert await triggered(clusters) == []
