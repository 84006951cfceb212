from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from karmada.kube.objects.errors import Forbidden
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import NAMESPACES, PODS, QUOTAS, REPLICA_SETS
from karmada.kube.objects.meta import controller_of, get_condition
from karmada.kube.objects.meta import generation as generation_of
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key
from karmada.kube.sim.controllers.podcontrol import PodControl, is_namespace_ending, pod_from
from karmada.kube.sim.controllers.replicaset import REPLICATION_CONTROLLERS, ReplicaSets, ReplicationControllers
from karmada.kube.sim.controllers.replicaset_victims import DELETION_COST, victims
from karmada.kube.sim.profile import INSTANT, Profile
from tests.kube.sim.harness import running
from tests.kube.sim.workload_pods import Look, ReadyPods, pod_template, workload
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.objects import kube_object


class Cluster(Look):
    kubelet: ReadyPods

    async def make(self, replicas: int = 1, **spec: Any) -> Obj:
        return await self.cluster.client.create(REPLICA_SETS, workload("ReplicaSet", replicas, **spec))

    async def scale(self, replicas: int) -> Obj:
        patch = {"spec": {"replicas": replicas}}
        return await self.cluster.client.patch(REPLICA_SETS, "web", "default", patch)

    def set(self, resource: GVR = REPLICA_SETS) -> Obj:
        return self.cluster.context.informers.of(resource).get(Key("default", "web")) or {}

    def status(self, resource: GVR = REPLICA_SETS) -> Obj:
        return self.set(resource).get("status") or {}

    async def until_ready(self, count: int, resource: GVR = REPLICA_SETS) -> None:
        def ready() -> bool:
            status, generation = self.status(resource), generation_of(self.set(resource))
            counts = (status.get("readyReplicas", 0), status.get("replicas"), status.get("observedGeneration"))
            return counts == (count, count, generation)

        await eventually(ready, show=lambda: self.status(resource))

    async def allow(self, pods: int) -> None:
        """What a quota controller would write."""
        status = {"hard": {"pods": str(pods)}, "used": {"pods": str(len(self.pods()))}}
        await self.cluster.client.patch(QUOTAS, "q", "default", {"status": status}, subresource="status")

    async def events(self, reason: str) -> list[str]:
        return [message for _, why, message in await self.cluster.events("web") if why == reason]


@asynccontextmanager
async def cluster_of(folder: Path, *, kubelet: bool = True, version: str = "1.36") -> AsyncIterator[Cluster]:
    made: list[ReadyPods] = []

    def parts(context: Any) -> list[Any]:
        made.append(ReadyPods(context))
        return [ReplicaSets(context), ReplicationControllers(context), *(made if kubelet else ())]

    async with running(folder, parts, profile=Profile("test", latencies=INSTANT, version=version)) as harness:
        cluster = Cluster(harness)
        cluster.kubelet = made[0]
        yield cluster


async def test_a_replicaset_makes_its_pods_from_its_template_and_counts_them(tmp_path: Path) -> None:
    async with cluster_of(tmp_path) as cluster:
        await cluster.make(3)
        await cluster.until_ready(3)
        for pod in cluster.pods():
            assert pod["metadata"]["generateName"] == "web-"
            assert pod["metadata"]["labels"] == {"app": "web"}
            assert controller_of(pod) == {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": "web",
                "uid": cluster.set()["metadata"]["uid"],
                "controller": True,
                "blockOwnerDeletion": True,
            }
        assert cluster.status() == {
            "replicas": 3,
            "fullyLabeledReplicas": 3,
            "readyReplicas": 3,
            "availableReplicas": 3,
            "observedGeneration": 1,
            "terminatingReplicas": 0,
        }
        emitted = sorted(await cluster.events("SuccessfulCreate"))
        assert emitted == sorted(f"Created pod: {pod['metadata']['name']}" for pod in cluster.pods())


async def test_the_server_names_the_controller_manager_as_who_wrote(tmp_path: Path) -> None:
    async with cluster_of(tmp_path) as cluster:
        await cluster.make(1)
        await cluster.until_ready(1)
        managers = {(m["manager"], m.get("subresource")) for m in cluster.set()["metadata"]["managedFields"]}
        assert ("kube-controller-manager", "status") in managers


async def test_older_clusters_count_no_terminating_replicas(tmp_path: Path) -> None:
    async with cluster_of(tmp_path, version="1.34") as cluster:
        await cluster.make(1)
        await cluster.until_ready(1)
        assert "terminatingReplicas" not in cluster.status()


async def test_scaling_down_deletes_pods_and_counts_those_that_still_terminate(tmp_path: Path) -> None:
    async with cluster_of(tmp_path) as cluster:
        await cluster.make(5)
        await cluster.until_ready(5)
        cluster.kubelet.holds_on = True
        await cluster.scale(2)
        await cluster.until_ready(2)
        await eventually(lambda: cluster.status()["terminatingReplicas"] == 3, show=cluster.status)
        going = sorted(pod["metadata"]["name"] for pod in cluster.pods(going=True))
        assert sorted(await cluster.events("SuccessfulDelete")) == [f"Deleted pod: {name}" for name in going]
        cluster.kubelet.holds_on = False
        await cluster.cluster.client.delete(PODS, going[0], "default", grace_period=0)
        await eventually(lambda: cluster.status()["terminatingReplicas"] == 2, show=cluster.status)


async def test_scaling_to_nothing_and_back(tmp_path: Path) -> None:
    async with cluster_of(tmp_path) as cluster:
        await cluster.make(3)
        await cluster.until_ready(3)
        await cluster.scale(0)
        await cluster.until_ready(0)
        await eventually(lambda: not cluster.pods(going=True))
        nothing = {"replicas": 0, "observedGeneration": 2, "terminatingReplicas": 0}
        await eventually(lambda: cluster.status() == nothing, show=cluster.status)
        await cluster.scale(2)
        await cluster.until_ready(2)


async def test_a_deleted_pod_and_a_failed_one_are_replaced_and_the_failed_one_stays(tmp_path: Path) -> None:
    async with cluster_of(tmp_path) as cluster:
        await cluster.make(2)
        await cluster.until_ready(2)
        failed, removed = cluster.pods()
        await cluster.cluster.set_pod_status(failed, {"phase": "Failed", "reason": "Evicted"})
        await cluster.cluster.client.delete(PODS, removed["metadata"]["name"], "default", grace_period=0)
        names = {failed["metadata"]["name"], removed["metadata"]["name"]}
        await eventually(lambda: len({pod["metadata"]["name"] for pod in cluster.pods()} - names) == 2)
        await cluster.until_ready(2)
        assert failed["metadata"]["name"] in {pod["metadata"]["name"] for pod in cluster.pods()}


async def test_a_pod_is_available_only_after_having_been_ready_for_min_ready_seconds(tmp_path: Path) -> None:
    async with cluster_of(tmp_path) as cluster:
        await cluster.make(2, minReadySeconds=30)
        await cluster.until_ready(2)
        assert "availableReplicas" not in cluster.status()
        await cluster.cluster.clock.advance(29)
        assert "availableReplicas" not in cluster.status()
        await cluster.cluster.clock.advance(1)
        await eventually(lambda: cluster.status().get("availableReplicas") == 2, show=cluster.status)


async def test_matching_orphans_are_adopted_and_pods_that_match_no_more_are_released(tmp_path: Path) -> None:
    async with cluster_of(tmp_path) as cluster:
        client = cluster.cluster.client
        orphan = {"apiVersion": "v1", "kind": "Pod", **pod_template()}
        orphan["metadata"] = {"name": "orphan", "namespace": "default", "labels": {"app": "web", "more": "x"}}
        await client.create(PODS, orphan)
        await cluster.make(2)
        await cluster.until_ready(2)
        assert len(cluster.pods()) == 2
        adopted = await client.get(PODS, "orphan", "default")
        assert controller_of(adopted) == controller_of(next(p for p in cluster.pods() if p != adopted))
        await client.patch(PODS, "orphan", "default", {"metadata": {"labels": {"app": "other"}}})
        await eventually(lambda: len(cluster.pods()) == 3)
        await cluster.until_ready(2)
        await eventually(
            lambda: (
                not cluster.cluster.context.informers.of(PODS)
                .get(Key("default", "orphan"))["metadata"]
                .get("ownerReferences")
            )
        )


async def test_an_orphan_that_appears_later_is_adopted_and_makes_one_too_many(tmp_path: Path) -> None:
    async with cluster_of(tmp_path) as cluster:
        await cluster.make(1)
        await cluster.until_ready(1)
        late = {"apiVersion": "v1", "kind": "Pod", **pod_template()}
        late["metadata"] = {"name": "late", "namespace": "default", "labels": {"app": "web"}}
        made = await cluster.cluster.client.create(PODS, late)
        await cluster.cluster.context.until_seen(cluster.cluster.context.informers.of(PODS), [made])
        await eventually(lambda: len(cluster.pods()) == 1 and not cluster.pods(going=True))
        assert len(await cluster.events("SuccessfulDelete")) == 1


async def test_orphaned_pods_survive_their_replicaset_and_are_taken_over_by_the_next(tmp_path: Path) -> None:
    async with cluster_of(tmp_path) as cluster:
        await cluster.make(3)
        await cluster.until_ready(3)
        before = {pod["metadata"]["uid"] for pod in cluster.pods()}
        await cluster.cluster.client.delete(REPLICA_SETS, "web", "default", propagation="Orphan")
        await eventually(lambda: not cluster.set())
        assert all(not pod["metadata"].get("ownerReferences") for pod in cluster.pods())
        await cluster.make(3)
        await cluster.until_ready(3)
        assert {pod["metadata"]["uid"] for pod in cluster.pods()} == before


@cases("Background", "Foreground")
async def test_deleting_a_replicaset_takes_its_pods_along(policy: str, tmp_path: Path) -> None:
    async with cluster_of(tmp_path) as cluster:
        await cluster.make(3)
        await cluster.until_ready(3)
        await cluster.cluster.client.delete(REPLICA_SETS, "web", "default", propagation=policy)
        await eventually(lambda: not cluster.set() and not cluster.pods() and not cluster.pods(going=True))


async def test_a_quota_that_refuses_pods_shows_as_replica_failure_until_it_is_lifted(tmp_path: Path) -> None:
    async with cluster_of(tmp_path) as cluster:
        quota = kube_object("v1", "ResourceQuota", "q", "default")
        await cluster.cluster.client.create(QUOTAS, quota | {"spec": {"hard": {"pods": "1"}}})
        await cluster.allow(1)
        await cluster.make(3)
        await eventually(lambda: get_condition(cluster.status().get("conditions"), "ReplicaFailure"))
        failure = get_condition(cluster.status()["conditions"], "ReplicaFailure") or {}
        assert (failure["status"], failure["reason"]) == ("True", "FailedCreate")
        assert "is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1" in failure["message"]
        assert cluster.status()["replicas"] == 1
        refused = await cluster.events("FailedCreate")
        assert refused
        assert all(message.startswith('Error creating: pods "web-') for message in refused)
        await cluster.allow(9)
        await cluster.cluster.clock.advance(1000)
        await cluster.until_ready(3)
        assert "conditions" not in cluster.status()


async def test_a_pod_that_an_ending_namespace_refuses_is_no_reason_to_complain(tmp_path: Path) -> None:
    async with running(tmp_path, lambda context: [context.recorder("test")]) as cluster:
        await cluster.client.create(NAMESPACES, kube_object("v1", "Namespace", "old"))
        template = workload("ReplicaSet", 0)
        template["metadata"] = {"name": "web", "namespace": "old", "finalizers": ["example.com/keep"]}
        owner = await cluster.client.create(REPLICA_SETS, template)
        await cluster.client.delete(NAMESPACES, "old")
        control = PodControl(cluster.context, "test")
        with pytest.raises(Forbidden) as refused:
            await control.create(owner, pod_from(owner["spec"]["template"], owner, generate_name="web-"))
        assert is_namespace_ending(refused.value)
        assert await cluster.events("web", "old") == []


async def test_many_pods_are_made_in_growing_batches(tmp_path: Path) -> None:
    async with cluster_of(tmp_path, kubelet=False) as cluster:
        await cluster.make(40)
        await eventually(lambda: cluster.status().get("replicas") == 40, show=cluster.status)
        assert len(cluster.pods()) == 40


async def test_a_large_set_is_counted_from_time_to_time_only(tmp_path: Path) -> None:
    async with cluster_of(tmp_path, kubelet=False) as cluster:
        await cluster.make(600)
        await eventually(lambda: cluster.status().get("replicas") == 600, show=cluster.status)
        assert len(cluster.pods()) == 600
        await cluster.cluster.clock.advance(1)
        version = cluster.set()["metadata"]["resourceVersion"]
        for pod in cluster.pods()[:20]:
            await cluster.cluster.make_ready(pod)
        await cluster.cluster.clock.advance(1)
        await eventually(lambda: cluster.status().get("readyReplicas") == 20, show=cluster.status)
        written = int(cluster.set()["metadata"]["resourceVersion"]) - int(version)
        assert written <= 20 + 3, "twenty pods, and hardly a status between them"
        await cluster.scale(599)
        await eventually(lambda: cluster.status().get("replicas") == 599, show=cluster.status)


async def test_a_replication_controller_does_the_same(tmp_path: Path) -> None:
    async with cluster_of(tmp_path) as cluster:
        rc = kube_object("v1", "ReplicationController", "web", "default") | {
            "spec": {"replicas": 2, "selector": {"app": "web"}, "template": pod_template()}
        }
        await cluster.cluster.client.create(REPLICATION_CONTROLLERS, rc)
        await cluster.until_ready(2, REPLICATION_CONTROLLERS)
        assert (controller_of(cluster.pods()[0]) or {})["apiVersion"] == "v1"
        assert (controller_of(cluster.pods()[0]) or {})["kind"] == "ReplicationController"
        assert cluster.status(REPLICATION_CONTROLLERS) == {
            "replicas": 2,
            "fullyLabeledReplicas": 2,
            "readyReplicas": 2,
            "availableReplicas": 2,
            "observedGeneration": 1,
        }
        patch = {"spec": {"replicas": 0}}
        await cluster.cluster.client.patch(REPLICATION_CONTROLLERS, "web", "default", patch)
        await cluster.until_ready(0, REPLICATION_CONTROLLERS)
        assert len(await cluster.events("SuccessfulCreate")) == 2


# --- who goes first

NOW = 1_700_000_000.0


def a_pod(name: str, *, node: str = "n1", phase: str = "Running", ready: float | None = 1000.0, **more: Any) -> Obj:
    """`ready` is for how many seconds; `age` and `restarts` and `cost` may be given, too."""
    conditions = []
    if ready is not None:
        conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": rfc3339(NOW - ready)}]
    status = {"phase": phase, "conditions": conditions}
    status["containerStatuses"] = [{"restartCount": more.get("restarts", 0)}]
    metadata: Obj = {"name": name, "uid": name, "creationTimestamp": rfc3339(NOW - more.get("age", 2000.0))}
    if "cost" in more:
        metadata["annotations"] = {DELETION_COST: more["cost"]}
    return {"metadata": metadata, "spec": {"nodeName": node} if node else {}, "status": status}


@cases(
    ({"node": "", "phase": "Pending", "ready": None}, {"phase": "Pending", "ready": None}),
    ({"phase": "Pending", "ready": None}, {"phase": "Unknown", "ready": None}),
    ({"phase": "Unknown", "ready": None}, {"ready": None}),
    ({"ready": None}, {"cost": "-5"}),
    ({"cost": "-5"}, {"cost": "0"}),
    ({"cost": "0"}, {"cost": "3"}),
    ({"cost": "3"}, {"cost": "12"}),
    ({"ready": 10.0}, {"ready": 1000.0}),
    ({"restarts": 3}, {"restarts": 1}),
    ({"age": 10.0}, {"age": 2000.0}),
    ({"cost": "1"}, {"cost": "2", "ready": 1.0, "restarts": 9, "age": 1.0}),
    ({"cost": "nonsense"}, {"cost": "1"}),
)
def test_the_pod_whose_loss_is_felt_least_goes_first(first: Obj, second: Obj) -> None:
    pods = [a_pod("a", **second), a_pod("b", **first)]
    assert [pod["metadata"]["name"] for pod in victims(pods, 1, pods, NOW)] == ["b"]
    pods = [a_pod("b", **second), a_pod("a", **first)]
    assert [pod["metadata"]["name"] for pod in victims(pods, 1, pods, NOW)] == ["a"]


def test_pods_on_crowded_nodes_go_before_others() -> None:
    pods = [a_pod("a", node="n1"), a_pod("b", node="n2"), a_pod("c", node="n3")]
    related = [*pods, a_pod("x", node="n2")]
    assert [pod["metadata"]["name"] for pod in victims(pods, 1, related, NOW)] == ["b"]


def test_pods_of_about_the_same_age_go_in_an_order_that_age_does_not_decide() -> None:
    pods = [a_pod("b", age=100_000.0), a_pod("a", age=100_100.0)]
    assert [pod["metadata"]["name"] for pod in victims(pods, 1, pods, NOW)] == ["a"]
