from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvrs import CLAIMS, PODS, QUOTAS, STATEFUL_SETS
from karmada.kube.objects.meta import controller_of, is_deleting
from karmada.kube.objects.podstate import is_ready
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key
from karmada.kube.sim.context import Context
from karmada.kube.sim.controllers.revisions import CONTROLLER_REVISIONS
from karmada.kube.sim.controllers.statefulset import StatefulSets
from tests.kube.sim.harness import Harness, running
from tests.kube.sim.podlife import PodLife, SetCluster
from tests.kube.sim.workload_pods import rolling
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.objects import kube_object

HASH = "controller-revision-hash"


def stateful_set(replicas: int = 3, *, image: str = "nginx:1", claims: bool = False, **spec: Any) -> Obj:
    container: Obj = {"name": "c", "image": image}
    more: Obj = {}
    if claims:
        container["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        more["volumeClaimTemplates"] = [{"metadata": {"name": "data", "labels": {"kind": "disk"}}, "spec": claim}]
    return kube_object("apps/v1", "StatefulSet", "web", "default") | {
        "spec": {
            "replicas": replicas,
            "serviceName": "nginx",
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}},
            **more,
            **spec,
        },
    }


class Cluster(SetCluster):
    """A cluster with StatefulSets, and what it knows of the set `web`."""

    def __init__(self, harness: Harness, life: PodLife) -> None:
        super().__init__(harness, life, STATEFUL_SETS, "web")
        self._claims = harness.context.informers.of(CLAIMS)
        self.seen: list[str] = []
        """Pods as they came (+) and went (-)."""
        self._pods.add_handler(self._note)

    def _note(self, old: Obj | None, new: Obj | None) -> None:
        changed = new or old
        if changed is not None and (old is None or new is None):
            self.seen.append(f"{'-' if new is None else '+'}{changed['metadata']['name'].removeprefix('web-')}")

    @property
    def pods(self) -> dict[str, Obj]:
        return {pod["metadata"]["name"]: pod for pod in self._pods.list("default")}

    @property
    def claims(self) -> dict[str, Obj]:
        return {claim["metadata"]["name"]: claim for claim in self._claims.list("default")}

    def images(self) -> dict[str, str]:
        return {name: pod["spec"]["containers"][0]["image"][-1] for name, pod in sorted(self.pods.items())}

    async def change(self, **spec: Any) -> Obj:
        return await self._seen(await self.client.patch(STATEFUL_SETS, "web", "default", {"spec": spec}))

    async def at_rest(self, replicas: int) -> Obj:
        """Wait until the spec is observed and fulfilled; the status."""

        def done() -> bool:
            status, pods = self.status, self.pods
            return (
                status.get("observedGeneration") == self.workload["metadata"].get("generation")
                and status.get("replicas") == status.get("availableReplicas") == len(pods) == replicas
                and status.get("currentRevision") == status.get("updateRevision")
            )

        await eventually(done, show=lambda: (self.status, self.images(), self.seen))
        return self.status


@asynccontextmanager
async def cluster_at(folder: Path) -> AsyncIterator[Cluster]:
    lives: list[PodLife] = []

    def parts(context: Context) -> list[Any]:
        lives.append(PodLife(context))
        return [StatefulSets(context), lives[0]]

    async with running(folder, parts) as harness:
        yield Cluster(harness, lives[0])


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with cluster_at(tmp_path) as cluster:
        yield cluster


async def test_each_pod_has_its_name_its_labels_its_host_name_and_its_volume(cluster: Cluster) -> None:
    made = await cluster.create(stateful_set(2, claims=True))
    status = await cluster.at_rest(2)
    pod = cluster.pods["web-1"]
    assert pod["metadata"]["labels"] == {
        "app": "web",
        "statefulset.kubernetes.io/pod-name": "web-1",
        "apps.kubernetes.io/pod-index": "1",
        HASH: status["updateRevision"],
    }
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("web-1", "nginx")
    assert pod["spec"]["volumes"][0] == {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-1"}}
    assert pod["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "name": "web",
            "uid": made["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    claim = cluster.claims["data-web-1"]
    assert claim["metadata"]["labels"] == {"kind": "disk", "app": "web"}
    assert "ownerReferences" not in claim["metadata"]
    assert int(claim["metadata"]["resourceVersion"]) < int(pod["metadata"]["resourceVersion"])


async def test_pods_come_one_by_one_each_when_the_one_before_is_ready(cluster: Cluster) -> None:
    held = {"web-1"}
    cluster.life.may_start = lambda pod: pod["metadata"]["name"] not in held
    await cluster.create(stateful_set(3))
    await eventually(lambda: "web-1" in cluster.pods)
    await cluster.quiet()
    assert cluster.seen == ["+0", "+1"]
    assert cluster.status == {
        "observedGeneration": 1,
        "replicas": 2,
        "readyReplicas": 1,
        "availableReplicas": 1,
        "currentReplicas": 2,
        "updatedReplicas": 2,
        "currentRevision": cluster.status["updateRevision"],
        "updateRevision": cluster.status["updateRevision"],
        "collisionCount": 0,
    }
    held.clear()
    await cluster.life.resume()
    await cluster.at_rest(3)
    assert cluster.seen == ["+0", "+1", "+2"]


async def test_in_parallel_nobody_waits(cluster: Cluster) -> None:
    cluster.life.may_start = lambda _: False
    await cluster.create(stateful_set(4, podManagementPolicy="Parallel"))
    await eventually(lambda: len(cluster.pods) == 4)
    await cluster.quiet()
    assert cluster.status["replicas"] == 4
    assert cluster.status["availableReplicas"] == 0
    assert "readyReplicas" not in cluster.status


async def test_ordinals_begin_where_requested_and_move_when_that_changes(cluster: Cluster) -> None:
    await cluster.create(stateful_set(2, ordinals={"start": 5}))
    await cluster.at_rest(2)
    assert sorted(cluster.pods) == ["web-5", "web-6"]
    await cluster.change(ordinals={"start": 6})
    await eventually(lambda: sorted(cluster.pods) == ["web-6", "web-7"])


async def test_what_happens_is_reported(cluster: Cluster) -> None:
    await cluster.create(stateful_set(1, claims=True))
    await cluster.at_rest(1)
    await cluster.change(replicas=0)
    await cluster.at_rest(0)
    assert await cluster.harness.events("web") == [
        ("Normal", "SuccessfulCreate", "create Claim data-web-0 Pod web-0 in StatefulSet web success"),
        ("Normal", "SuccessfulCreate", "create Pod web-0 in StatefulSet web successful"),
        ("Normal", "SuccessfulDelete", "delete Pod web-0 in StatefulSet web successful"),
    ]


async def test_surplus_pods_go_from_the_highest_and_leave_their_claims(cluster: Cluster) -> None:
    await cluster.create(stateful_set(3, claims=True))
    await cluster.at_rest(3)
    cluster.life.may_end = lambda _: False
    await cluster.change(replicas=1)
    await eventually(lambda: is_deleting(cluster.pods["web-2"]))
    await cluster.quiet()
    assert not is_deleting(cluster.pods["web-1"])
    cluster.life.may_end = lambda _: True
    await cluster.life.resume()
    await cluster.at_rest(1)
    assert cluster.seen[-2:] == ["-2", "-1"]
    assert sorted(cluster.claims) == ["data-web-0", "data-web-1", "data-web-2"]
    assert cluster.status["currentReplicas"] == cluster.status["updatedReplicas"] == 1


async def test_a_set_of_none_says_so_without_counts(cluster: Cluster) -> None:
    await cluster.create(stateful_set(0))
    status = await cluster.at_rest(0)
    assert {k: v for k, v in status.items() if "Revision" not in k} == {
        "observedGeneration": 1,
        "replicas": 0,
        "availableReplicas": 0,
        "collisionCount": 0,
    }


async def test_claims_go_with_scaled_pods_if_requested(cluster: Cluster) -> None:
    policy = {"whenScaled": "Delete", "whenDeleted": "Retain"}
    await cluster.create(stateful_set(2, claims=True, persistentVolumeClaimRetentionPolicy=policy))
    await cluster.at_rest(2)
    pod = cluster.pods["web-1"]
    cluster.life.may_end = lambda _: False
    await cluster.change(replicas=1)
    await eventually(lambda: is_deleting(cluster.pods["web-1"]))
    owner = controller_of(cluster.claims["data-web-1"])
    assert owner is not None
    assert (owner["kind"], owner["uid"]) == ("Pod", pod["metadata"]["uid"])
    assert controller_of(cluster.claims["data-web-0"]) is None
    cluster.life.may_end = lambda _: True
    await cluster.life.resume()
    await cluster.at_rest(1)
    await cluster.harness.clock.advance(60)
    await eventually(lambda: list(cluster.claims) == ["data-web-0"] or is_deleting(cluster.claims["data-web-1"]))


async def test_claims_go_with_the_set_if_requested_and_follow_a_change_of_mind(cluster: Cluster) -> None:
    policy = {"whenScaled": "Retain", "whenDeleted": "Delete"}
    made = await cluster.create(stateful_set(1, claims=True, persistentVolumeClaimRetentionPolicy=policy))
    await cluster.at_rest(1)
    owner = controller_of(cluster.claims["data-web-0"])
    assert owner is not None
    assert owner["uid"] == made["metadata"]["uid"]
    await cluster.change(persistentVolumeClaimRetentionPolicy={"whenDeleted": "Retain"})
    await eventually(lambda: controller_of(cluster.claims["data-web-0"]) is None)
    await cluster.change(persistentVolumeClaimRetentionPolicy={"whenDeleted": "Delete"})
    await eventually(lambda: controller_of(cluster.claims["data-web-0"]) is not None)


async def test_a_pod_waits_until_an_old_claim_of_its_name_is_gone(cluster: Cluster) -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    old = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": claim}
    metadata = {"name": "data-web-0", "namespace": "default", "finalizers": ["example.com/hold"]}
    old = await cluster.client.create(CLAIMS, {**old, "metadata": metadata})
    await cluster.client.delete(CLAIMS, "data-web-0", "default")
    await cluster.create(stateful_set(1, claims=True))
    await eventually(lambda: cluster.status.get("observedGeneration") == 1)
    await cluster.quiet()
    assert cluster.pods == {}
    await cluster.client.patch(CLAIMS, "data-web-0", "default", {"metadata": {"finalizers": None}})
    await cluster.at_rest(1)
    assert cluster.claims["data-web-0"]["metadata"]["uid"] != old["metadata"]["uid"]


async def test_an_update_goes_from_the_highest_down_and_ends_with_one_revision(cluster: Cluster) -> None:
    await cluster.create(stateful_set(3))
    before = (await cluster.at_rest(3))["currentRevision"]
    held = {"web-2"}
    cluster.life.may_start = lambda pod: pod["metadata"]["name"] not in held
    await cluster.new_image("nginx:2")
    await eventually(lambda: cluster.images() == {"web-0": "1", "web-1": "1", "web-2": "2"})
    await cluster.quiet()
    status = cluster.status
    assert (status["currentRevision"], status["currentReplicas"], status["updatedReplicas"]) == (before, 2, 1)
    assert status["updateRevision"] != before
    held.clear()
    await cluster.life.resume()
    status = await cluster.at_rest(3)
    assert cluster.seen[3:] == ["-2", "+2", "-1", "+1", "-0", "+0"]
    assert cluster.images() == {"web-0": "2", "web-1": "2", "web-2": "2"}
    assert status["currentReplicas"] == status["updatedReplicas"] == 3


async def test_below_the_partition_pods_stay_and_are_made_as_they_were(cluster: Cluster) -> None:
    await cluster.create(stateful_set(3, updateStrategy=rolling(partition=2)))
    before = (await cluster.at_rest(3))["currentRevision"]
    await cluster.new_image("nginx:2")
    await eventually(lambda: cluster.status.get("updatedReplicas") == 1 and cluster.status["availableReplicas"] == 3)
    await cluster.client.delete(PODS, "web-0", "default")
    await eventually(lambda: cluster.seen[-2:] == ["-0", "+0"] and is_ready(cluster.pods["web-0"]))
    assert cluster.images() == {"web-0": "1", "web-1": "1", "web-2": "2"}
    assert cluster.pods["web-0"]["metadata"]["labels"][HASH] == before
    assert cluster.status["currentRevision"] == before
    await cluster.change(updateStrategy=rolling(partition=0))
    await cluster.at_rest(3)
    assert set(cluster.images().values()) == {"2"}


async def test_several_pods_may_be_updated_at_once(cluster: Cluster) -> None:
    await cluster.create(
        stateful_set(4, podManagementPolicy="Parallel", updateStrategy=rolling(partition=0, maxUnavailable=2))
    )
    await cluster.at_rest(4)
    cluster.life.may_start = lambda _: False
    await cluster.new_image("nginx:2")
    await eventually(lambda: list(cluster.images().values()) == ["1", "1", "2", "2"])
    await cluster.quiet()
    assert list(cluster.images().values()) == ["1", "1", "2", "2"]
    cluster.life.may_start = lambda _: True
    await cluster.life.resume()
    await cluster.at_rest(4)


async def test_on_delete_only_pods_that_somebody_deletes_change(cluster: Cluster) -> None:
    await cluster.create(stateful_set(2, updateStrategy={"type": "OnDelete"}))
    await cluster.at_rest(2)
    await cluster.new_image("nginx:2")
    await eventually(lambda: cluster.status["currentRevision"] != cluster.status["updateRevision"])
    await cluster.quiet()
    assert cluster.images() == {"web-0": "1", "web-1": "1"}
    await cluster.client.delete(PODS, "web-1", "default")
    await eventually(lambda: cluster.images() == {"web-0": "1", "web-1": "2"})


async def test_a_pod_counts_when_it_was_ready_for_long_enough(cluster: Cluster) -> None:
    await cluster.create(stateful_set(2, minReadySeconds=10))
    await eventually(lambda: cluster.status.get("readyReplicas") == 1)
    await cluster.quiet()
    assert (cluster.seen, cluster.status["availableReplicas"]) == (["+0"], 0)
    await cluster.harness.clock.advance(10)
    await eventually(lambda: cluster.status.get("readyReplicas") == 2)
    assert cluster.status["availableReplicas"] == 1
    await cluster.harness.clock.advance(10)
    await cluster.at_rest(2)


@cases(
    ("Failed", "Warning", "RecreatingFailedPod", "failed"),
    ("Succeeded", "Normal", "RecreatingTerminatedPod", "terminated"),
)
async def test_a_pod_that_ended_is_made_again(phase: str, kind: str, reason: str, word: str, cluster: Cluster) -> None:
    await cluster.create(stateful_set(1))
    await cluster.at_rest(1)
    old = cluster.pods["web-0"]
    await cluster.harness.set_pod_status(old, {"phase": phase, "conditions": [{"type": "Ready", "status": "False"}]})
    await eventually(lambda: cluster.seen == ["+0", "-0", "+0"])
    await cluster.at_rest(1)
    assert cluster.pods["web-0"]["metadata"]["uid"] != old["metadata"]["uid"]
    events = await cluster.harness.events("web")
    assert (kind, reason, f"StatefulSet default/web is recreating {word} Pod web-0") in events


async def test_a_revision_brings_its_template_back_and_becomes_the_newest(cluster: Cluster) -> None:
    await cluster.create(stateful_set(1))
    first = (await cluster.at_rest(1))["currentRevision"]
    await cluster.new_image("nginx:2")
    await eventually(lambda: cluster.status["currentRevision"] != first)
    revision = await cluster.client.get(CONTROLLER_REVISIONS, first, "default")
    assert revision["revision"] == 1
    assert revision["metadata"]["labels"] == {
        "app": "web",
        "controller.kubernetes.io/hash": first.removeprefix("web-"),
        HASH: first,
    }
    await cluster.client.patch(STATEFUL_SETS, "web", "default", revision["data"], type="strategic")
    await eventually(lambda: cluster.status["currentRevision"] == first)
    await cluster.at_rest(1)
    assert cluster.images() == {"web-0": "1"}
    listed = (await cluster.client.list_all(CONTROLLER_REVISIONS, "default")).items
    assert {r["metadata"]["name"]: r["revision"] for r in listed}[first] == 3
    assert len(listed) == 2


async def test_old_revisions_are_forgotten(cluster: Cluster) -> None:
    await cluster.create(stateful_set(1, revisionHistoryLimit=1))
    await cluster.at_rest(1)
    for number in range(2, 6):
        await cluster.new_image(f"nginx:{number}")
        await eventually(lambda wanted=str(number): cluster.images() == {"web-0": wanted})
        await cluster.at_rest(1)
    await cluster.quiet()
    listed = (await cluster.client.list_all(CONTROLLER_REVISIONS, "default")).items
    assert sorted(r["revision"] for r in listed) == [4, 5]


async def test_orphaned_pods_are_taken_over_by_a_set_that_matches_them(cluster: Cluster) -> None:
    await cluster.create(stateful_set(2))
    await cluster.at_rest(2)
    before = {name: pod["metadata"]["uid"] for name, pod in cluster.pods.items()}
    await cluster.client.delete(STATEFUL_SETS, "web", "default", propagation="Orphan")
    await eventually(lambda: not cluster.status)
    await cluster.create(stateful_set(2))
    await cluster.at_rest(2)
    assert {name: pod["metadata"]["uid"] for name, pod in cluster.pods.items()} == before
    assert cluster.status["updatedReplicas"] == 2


async def test_an_adopted_pod_gets_the_labels_of_its_place(cluster: Cluster) -> None:
    spec = stateful_set()["spec"]["template"]["spec"]
    await cluster.client.create(PODS, kube_object("v1", "Pod", "web-0", "default", labels={"app": "web"}, spec=spec))
    await cluster.create(stateful_set(1, updateStrategy={"type": "OnDelete"}))
    label = "statefulset.kubernetes.io/pod-name"
    await eventually(lambda: any(label in pod["metadata"]["labels"] for pod in cluster.pods.values()))
    emitted = await cluster.harness.events("web")
    assert ("Normal", "SuccessfulUpdate", "update Pod web-0 in StatefulSet web successful") in emitted


async def test_pods_of_others_are_left_alone(cluster: Cluster) -> None:
    spec = stateful_set()["spec"]["template"]["spec"]
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": spec}
    for name, app in (("web-7", "other"), ("web-x", "web")):
        metadata = {"name": name, "namespace": "default", "labels": {"app": app}}
        await cluster.client.create(PODS, {**pod, "metadata": metadata})
    await cluster.create(stateful_set(1))
    await eventually(lambda: cluster.status.get("availableReplicas") == 1)
    await cluster.quiet()
    assert sorted(cluster.pods) == ["web-0", "web-7", "web-x"]
    assert all(controller_of(cluster.pods[name]) is None for name in ("web-7", "web-x"))


async def test_a_refused_pod_is_reported_and_retried(cluster: Cluster) -> None:
    quota = kube_object("v1", "ResourceQuota", "none", "default")
    await cluster.client.create(QUOTAS, {**quota, "spec": {"hard": {"pods": "0"}}})
    await cluster.create(stateful_set(1))

    def refused() -> bool:
        return cluster.harness.manager.controllers["statefulset"].queue.retries(Key("default", "web")) > 0

    await eventually(refused)
    assert (cluster.status["observedGeneration"], cluster.status["replicas"]) == (1, 0)
    kind, reason, message = (await cluster.harness.events("web"))[0]
    assert (kind, reason) == ("Warning", "FailedCreate")
    assert message.startswith('create Pod web-0 in StatefulSet web failed error: pods "web-0" is forbidden')
    await cluster.client.delete(QUOTAS, "none", "default")
    await cluster.harness.clock.advance(1000)
    await cluster.at_rest(1)


async def test_a_set_that_is_being_deleted_makes_nothing_and_still_counts(cluster: Cluster) -> None:
    await cluster.create(
        {**stateful_set(2), "metadata": {**stateful_set()["metadata"], "finalizers": ["example.com/x"]}}
    )
    await cluster.at_rest(2)
    await cluster.client.delete(STATEFUL_SETS, "web", "default")
    await eventually(lambda: is_deleting(cluster.workload))
    await cluster.client.delete(PODS, "web-1", "default")
    await eventually(lambda: cluster.status["replicas"] == 1)
    await cluster.quiet()
    assert list(cluster.pods) == ["web-0"]


async def test_at_rest_nothing_is_written(cluster: Cluster) -> None:
    await cluster.create(stateful_set(2, claims=True))
    await cluster.at_rest(2)
    await cluster.quiet()
    before = cluster.workload["metadata"]["resourceVersion"]
    cluster.harness.manager.controllers["statefulset"].add(Key("default", "web"))
    await cluster.quiet()
    newest = await cluster.client.get(STATEFUL_SETS, "web", "default")
    assert newest["metadata"]["resourceVersion"] == before
    with pytest.raises(NotFound):
        await cluster.client.get(PODS, "web-2", "default")


async def test_another_controller_goes_on_where_the_first_was_stopped(cluster: Cluster) -> None:
    cluster.life.may_start = lambda pod: pod["metadata"]["name"] == "web-0"
    await cluster.create(stateful_set(3))
    await eventually(lambda: len(cluster.pods) == 2)
    first = cluster.harness.manager.controllers.pop("statefulset")
    await first.stop()
    cluster.life.may_start = lambda _: True
    await cluster.life.resume()
    successor = cluster.harness.manager.add(StatefulSets(cluster.harness.context))
    await successor.start()
    await cluster.at_rest(3)
    assert cluster.seen == ["+0", "+1", "+2"]
    await successor.stop()
