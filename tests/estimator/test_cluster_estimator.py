"""Estimates for one member from its API server's objects, through informers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from karmada.estimator.estimator import NOT_OVER, ClusterEstimator
from karmada.estimator.metrics import EstimatorMetrics
from karmada.estimator.terms import MAX_REPLICAS, Assumption, EstimateError
from karmada.features import default_gates
from karmada.kube.client.client import Client
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import DEPLOYMENTS, NODES, PODS, QUOTAS, REPLICA_SETS
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informers import Informers
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.fake_api import FakeApi, FakeTransport
from tests.support.member_objects import deployment, node, pod, replica_set, unschedulable_pod

KINDS = {
    NODES: ("Node", False, ()),
    PODS: ("Pod", True, ()),
    QUOTAS: ("ResourceQuota", True, ()),
    DEPLOYMENTS: ("Deployment", True, ()),
    REPLICA_SETS: ("ReplicaSet", True, ()),
}
GIB = "1Gi"


class Watched:
    """A member with objects, and estimators that watch it."""

    def __init__(self) -> None:
        self.api = FakeApi(KINDS)  # type: ignore[arg-type]
        self.clock = FakeClock()
        self.client = Client(FakeTransport(self.api))
        self.informers = Informers(self.client)
        self.informers.start()

    async def create(self, gvr: GVR, *objects: Obj) -> None:
        for obj in objects:
            await self.client.create(gvr, obj)

    async def estimator(self, gates: str = "", **settings: Any) -> ClusterEstimator:
        features = default_gates()
        if gates:
            features.set(gates)
        estimator = ClusterEstimator("member1", self.informers, features, self.clock, **settings)
        estimator.start(workloads=True)
        await self.informers.wait_synced()
        return estimator

    def ago(self, seconds: float) -> str:
        return rfc3339(self.clock.now() - seconds)


@pytest.fixture
async def member() -> AsyncIterator[Watched]:
    watched = Watched()
    yield watched
    await watched.informers.stop()
    await watched.client.close()


def needs(**request: str) -> Obj:
    return {"resourceRequest": request}


def component(replicas: int, claim: Obj | None = None, **request: str) -> Obj:
    requirements: Obj = {"resourceRequest": request}
    if claim is not None:
        requirements["nodeClaim"] = claim
    return {"name": "c", "replicas": replicas, "replicaRequirements": requirements}


async def half_full(member: Watched) -> ClusterEstimator:
    """A node with 2500m, 6Gi and 108 pods left, and one like it that is cordoned."""
    await member.create(NODES, node("n0", cpu="4", memory="8Gi", pods="110"))
    await member.create(NODES, node("n1", cordoned=True, cpu="4", memory="8Gi", pods="110"))
    await member.create(PODS, *(pod(f"p{number}", "n0", cpu="750m", memory="1Gi") for number in range(2)))
    return await member.estimator(pods=NOT_OVER)


async def test_replicas_fit_by_what_pods_leave_of_nodes(member: Watched) -> None:
    estimator = await half_full(member)
    assert estimator.max_available_replicas(needs(cpu="500m", memory=GIB)) == 5
    assert estimator.max_available_replicas(None) == 108
    assert estimator.max_available_replicas({}) == 108
    assert estimator.max_available_replicas({"nodeClaim": {"tolerations": [{"operator": "Exists"}]}}) == 218


async def test_pods_that_come_and_end_count_at_once(member: Watched) -> None:
    estimator = await half_full(member)
    await member.create(PODS, pod("late", "n0", cpu="2"))
    await eventually(lambda: estimator.max_available_replicas(needs(cpu="500m")) == 1)
    late = await member.client.get(PODS, "late", "default")
    await member.client.update(PODS, late | {"status": {"phase": "Succeeded"}})
    await eventually(lambda: estimator.max_available_replicas(needs(cpu="500m")) == 5)


async def test_without_nodes_nothing_fits(member: Watched) -> None:
    estimator = await member.estimator()
    assert estimator.max_available_replicas(None) == 0
    assert estimator.max_available_component_sets([]) == 0


async def test_a_member_that_is_not_listed_yet_has_no_estimate(member: Watched) -> None:
    estimator = ClusterEstimator("member1", Informers(member.client), default_gates(), member.clock)
    estimator.start()
    assert not estimator.synced
    with pytest.raises(EstimateError, match=r"^cluster member1: not synced yet: .*nodes.*pods"):
        estimator.max_available_replicas(None)


async def test_sets_of_components_are_placed_on_the_nodes(member: Watched) -> None:
    sizes = [("a", 2, 1, 2), ("b", 6, 3, 10), ("c", 3, 4, 12)]
    for kind, count, cpu, memory in sizes:
        for number in range(count):
            await member.create(NODES, node(f"{kind}{number}", cpu=str(cpu), memory=f"{memory}Gi", pods="110"))
    estimator = await member.estimator()
    both = [component(1, cpu="1", memory="2Gi"), component(3, cpu="3", memory="10Gi")]
    assert estimator.max_available_component_sets(both) == 3
    assert estimator.max_available_component_sets([both[1]]) == 3
    assert estimator.max_available_component_sets([both[0]]) == 32
    assert estimator.max_available_component_sets([component(1, cpu="9")]) == 0
    assert estimator.max_available_component_sets([component(1, cpu="9"), both[0]]) == 0
    assert estimator.max_available_component_sets([component(0, cpu="9")]) == MAX_REPLICAS
    assert estimator.max_available_component_sets([]) == MAX_REPLICAS
    assert estimator.max_available_component_sets([{"name": "c", "replicas": 11}]) == 110


async def test_components_go_only_to_nodes_that_they_claim(member: Watched) -> None:
    await member.create(NODES, node("n0", cpu="4", pods="110"), node("n1", labels={"gpu": "yes"}, cpu="4", pods="110"))
    estimator = await member.estimator()
    picky, plain = component(1, {"nodeSelector": {"gpu": "yes"}}, cpu="2"), component(1, cpu="1")
    assert estimator.max_available_component_sets([picky, plain]) == 2
    assert estimator.max_available_component_sets([plain, picky]) == 2
    assert estimator.max_available_component_sets([plain, plain]) == 4


ASSUMED = [
    Assumption("shop", [component(1, cpu="1")]),
    Assumption("shop", [component(2, cpu="500m"), component(9, cpu="9"), component(1, cpu="1")]),
]


async def test_assumed_workloads_count_only_with_the_gate(member: Watched) -> None:
    estimator = await half_full(member)
    protected = await member.estimator("SchedulingOvercommitProtection=true", pods=NOT_OVER)
    assert estimator.max_available_replicas(needs(cpu="500m"), ASSUMED) == 5
    assert protected.max_available_replicas(needs(cpu="500m"), ASSUMED) == 1
    assert protected.max_available_component_sets([component(1, cpu="500m")], "", ASSUMED) == 1
    assert protected.max_available_replicas(needs(cpu="500m")) == 5


async def test_quotas_count_only_with_the_gate(member: Watched) -> None:
    metadata = {"name": "q", "namespace": "shop"}
    status = {"hard": {"requests.cpu": "3"}, "used": {"requests.cpu": "1"}}
    await member.create(QUOTAS, {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "status": status})
    await member.create(NODES, node("n0", cpu="16", pods="110"))
    plain, limited = await member.estimator(), await member.estimator("ResourceQuotaEstimate=true")
    in_shop = needs(cpu="500m") | {"namespace": "shop"}
    assert plain.max_available_replicas(in_shop) == 32
    assert limited.max_available_replicas(in_shop) == 4
    assert limited.max_available_replicas(needs(cpu="500m") | {"namespace": "other"}) == 32
    assert limited.max_available_component_sets([component(1, cpu="1")], "shop") == 2
    assert limited.replicas_on_nodes(in_shop) == 32
    assert [quota["metadata"]["name"] for quota in limited.quotas("shop")] == ["q"]
    assert plain.quotas("shop") == limited.quotas("other") == []


async def test_a_broken_quota_fails_the_estimate(member: Watched) -> None:
    metadata = {"name": "q", "namespace": "shop"}
    status = {"hard": {"requests.cpu": "x"}, "used": {"requests.cpu": "1"}}
    await member.create(QUOTAS, {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "status": status})
    await member.create(NODES, node("n0", cpu="16", pods="110"))
    estimator = await member.estimator("ResourceQuotaEstimate=true")
    with pytest.raises(EstimateError, match=r"^failed to estimate replicas: estimate replica plugins fails with \["):
        estimator.max_available_replicas(needs(cpu="1") | {"namespace": "shop"})
    with pytest.raises(EstimateError, match=r"^failed to estimate component sets: estimate components plugins fails"):
        estimator.max_available_component_sets([component(1, cpu="1")], "shop")


# unschedulable replicas

WEB: Obj = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web"}


async def waiting(member: Watched, *sets: Callable[[Obj], tuple[Obj, int]]) -> ClusterEstimator:
    """A Deployment with ReplicaSets, of which so many pods wait since ten minutes ago."""
    web = deployment("web")
    await member.create(DEPLOYMENTS, web)
    web = await member.client.get(DEPLOYMENTS, "web", "default")
    for make in sets:
        made, count = make(web)
        await member.create(REPLICA_SETS, made)
        made = await member.client.get(REPLICA_SETS, made["metadata"]["name"], "default")
        for number in range(count):
            name = f"{made['metadata']['name']}-{number}"
            await member.create(PODS, unschedulable_pod(name, made, member.ago(600)))
    return await member.estimator()


async def test_pods_of_the_current_replica_set_that_wait_long_enough_are_counted(member: Watched) -> None:
    estimator = await waiting(
        member,
        lambda web: (replica_set(web, "old", image="web:0"), 4),
        lambda web: (replica_set(web, "new"), 3),
        lambda web: (replica_set(web, "newer", created="2026-01-02T00:00:00Z"), 2),
    )
    new = await member.client.get(REPLICA_SETS, "new", "default")
    await member.create(PODS, unschedulable_pod("other-reason", new, member.ago(600), reason="SchedulingGated"))
    await member.create(PODS, unschedulable_pod("fresh", new, member.ago(60)))
    await eventually(lambda: estimator.unschedulable_replicas(WEB, 0) == 4)
    assert estimator.unschedulable_replicas(WEB, 300) == 3
    assert estimator.unschedulable_replicas(WEB, 600) == 0
    assert estimator.unschedulable_replicas(WEB, -5) == 4


async def test_a_pod_that_was_placed_or_deleted_is_counted_no_more(member: Watched) -> None:
    estimator = await waiting(member, lambda web: (replica_set(web, "new"), 2))
    assert estimator.unschedulable_replicas(WEB, 0) == 2
    await member.client.delete(PODS, "new-0", "default")
    placed = await member.client.get(PODS, "new-1", "default")
    await member.client.update(PODS, placed | {"spec": placed["spec"] | {"nodeName": "n0"}})
    await eventually(lambda: estimator.unschedulable_replicas(WEB, 0) == 0)


async def test_a_deployment_without_a_current_replica_set_has_none(member: Watched) -> None:
    estimator = await waiting(member, lambda web: (replica_set(web, "old", image="web:0"), 4))
    assert estimator.unschedulable_replicas(WEB, 0) == 0


@cases(
    (None, "resource is nil"),
    (WEB | {"kind": "StatefulSet"}, r"kind\(StatefulSet\) of workload\(default/web\) is not supported"),
    (WEB | {"name": "other"}, 'deployments.apps "other" not found'),
)
async def test_workloads_that_cannot_be_looked_up(resource: Obj | None, text: str, member: Watched) -> None:
    estimator = await waiting(member)
    with pytest.raises(EstimateError, match=f"^{text}$"):
        estimator.unschedulable_replicas(resource, 0)


async def test_workloads_are_watched_from_the_first_request_on(member: Watched) -> None:
    await member.create(DEPLOYMENTS, deployment("web"))
    estimator = ClusterEstimator("member1", member.informers, default_gates(), member.clock)
    estimator.start()
    await eventually(lambda: estimator.synced)
    assert [informer.gvr for informer in member.informers.all()] == [NODES, PODS]
    with pytest.raises(EstimateError, match="not synced yet"):
        estimator.unschedulable_replicas(WEB, 0)
    await member.informers.wait_synced()
    assert estimator.unschedulable_replicas(WEB, 0) == 0


async def test_every_estimate_is_measured(member: Watched) -> None:
    metrics = EstimatorMetrics(member.clock)
    await member.create(NODES, node("n0", cpu="4", pods="110"))
    await member.create(DEPLOYMENTS, deployment("web"))
    estimator = await member.estimator(metrics=metrics)
    estimator.max_available_replicas(needs(cpu="1"))
    estimator.max_available_component_sets([component(1, cpu="1")])
    estimator.unschedulable_replicas(WEB, 0)
    with pytest.raises(EstimateError):
        estimator.unschedulable_replicas(None, 0)
    found = [sample for family in metrics.collect() for sample in family.samples]
    samples = {(sample.name, *sample.labels.values()): sample.value for sample in found}
    prefix = "karmada_scheduler_estimator_estimating"
    for what in ("MaxAvailableReplicas", "MaxAvailableComponentSets", "GetUnschedulableReplicas"):
        assert samples[f"{prefix}_request_total", "success", what] == 1
        assert samples[f"{prefix}_algorithm_duration_seconds_count", "success", what, "Total"] == 1
    assert samples[f"{prefix}_request_total", "error", "GetUnschedulableReplicas"] == 1
    for step in ("GetObjectFromCache", "GetWorkloadUnschedulablePods"):
        assert samples[f"{prefix}_algorithm_duration_seconds_count", "success", "GetUnschedulableReplicas", step] == 1
    for point in ("estimate_replicas", "estimate_components"):
        assert samples[f"{prefix}_plugin_extension_point_duration_seconds_count", point] == 1
        for plugin in ("NodeResourceEstimator", "ResourceQuotaEstimator"):
            assert samples[f"{prefix}_plugin_execution_duration_seconds_count", plugin, point] == 1
