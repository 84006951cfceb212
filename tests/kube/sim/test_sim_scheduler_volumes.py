"""The scheduler together with the controllers of volumes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvrs import CLAIMS, NODES, PODS, STORAGE_CLASSES, VOLUMES
from karmada.kube.objects.types import Obj
from karmada.kube.sim.controllers.volumes import volume_controllers
from karmada.kube.sim.scheduler.scheduler import Scheduler
from tests.kube.sim.harness import Harness, running
from tests.kube.sim.scheduling_objects import HOSTNAME, node, pod

NOT_HELPFUL = "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."


@asynccontextmanager
async def cluster(folder: Path, *, provisioning: bool = True) -> AsyncIterator[Harness]:
    def parts(context: Any) -> list[Any]:
        return [Scheduler(context), *(volume_controllers(context) if provisioning else ())]

    async with running(folder, parts) as it:
        for name in ("n1", "n2"):
            obj = node(name)
            await it.client.create(NODES, {**obj, "spec": {}})
            await it.client.patch(NODES, name, "", {"status": obj["status"]}, subresource="status")
            await it.client.patch(NODES, name, "", {"spec": {"taints": None}})
        yield it


def _class(name: str, provisioner: str = "sim.io/local", mode: str = "WaitForFirstConsumer") -> Obj:
    head = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}}
    return {**head, "provisioner": provisioner, "volumeBindingMode": mode}


def _claim(name: str, storage_class: str, *modes: str) -> Obj:
    spec = {
        "storageClassName": storage_class,
        "accessModes": list(modes) or ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    head = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default"}}
    return {**head, "spec": spec}


def _volume(name: str, storage_class: str, on: str, size: str = "2Gi") -> Obj:
    terms = [{"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [on]}]}]
    spec = {
        "storageClassName": storage_class,
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": size},
        "local": {"path": "/data"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
    }
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


def _using(name: str, *claims: str) -> Obj:
    volumes = [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims]
    return pod(name, volumes=volumes)


async def _state(it: Harness, name: str) -> tuple[str, str]:
    """Node and refusal, after everything has had time to happen."""
    for _ in range(8):
        await it.clock.advance(5)
    found = await it.client.get(PODS, name, "default")
    conditions = [c for c in found["status"].get("conditions") or () if c["type"] == "PodScheduled"]
    return found["spec"].get("nodeName", ""), conditions[0].get("message", "") if conditions else ""


async def test_a_claim_that_waits_for_its_first_consumer_is_provisioned_where_the_pod_goes(tmp_path: Path) -> None:
    async with cluster(tmp_path) as it:
        await it.client.create(STORAGE_CLASSES, _class("standard"))
        await it.client.create(CLAIMS, _claim("data", "standard"))
        await it.client.create(PODS, _using("p", "data"))
        where, _ = await _state(it, "p")
        claim = await it.client.get(CLAIMS, "data", "default")
        assert where
        assert claim["status"]["phase"] == "Bound"
        assert claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == where
        assert [event[1] for event in await it.events("p")] == ["Scheduled"]
        await it.client.create(PODS, _using("q", "data"))
        assert await _state(it, "q") == (where, "")


async def test_a_pod_is_not_bound_before_its_volumes_are(tmp_path: Path) -> None:
    async with cluster(tmp_path, provisioning=False) as it:
        await it.client.create(STORAGE_CLASSES, _class("standard"))
        await it.client.create(CLAIMS, _claim("data", "standard"))
        await it.client.create(PODS, _using("p", "data"))
        assert await _state(it, "p") == ("", "")
        claim = await it.client.get(CLAIMS, "data", "default")
        chosen = claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"]
        await it.client.create(VOLUMES, _volume("made", "standard", chosen))
        done = {"pv.kubernetes.io/bind-completed": "yes"}
        await it.client.patch(
            CLAIMS, "data", "default", {"metadata": {"annotations": done}, "spec": {"volumeName": "made"}}
        )
        assert await _state(it, "p") == (chosen, "")


async def test_a_provisioner_that_gives_up_sends_the_pod_back_to_be_decided_anew(tmp_path: Path) -> None:
    async with cluster(tmp_path, provisioning=False) as it:
        await it.client.create(STORAGE_CLASSES, _class("standard"))
        await it.client.create(CLAIMS, _claim("data", "standard"))
        await it.client.create(PODS, _using("p", "data"))
        assert await _state(it, "p") == ("", "")
        nothing = {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": None}}}
        await it.client.patch(CLAIMS, "data", "default", nothing)
        _, message = await _state(it, "p")
        assert message == (
            'running PreBind plugin "VolumeBinding": binding volumes: provisioning failed for PVC "data"'
        )
        claim = await it.client.get(CLAIMS, "data", "default")
        assert "volume.kubernetes.io/selected-node" in claim["metadata"]["annotations"]


async def test_volumes_that_are_there_already_decide_where_pods_go_and_each_is_used_once(tmp_path: Path) -> None:
    async with cluster(tmp_path) as it:
        await it.client.create(STORAGE_CLASSES, _class("local", "kubernetes.io/no-provisioner"))
        await it.client.create(VOLUMES, _volume("v2", "local", "n2"))
        await it.clock.advance(1)
        await it.client.create(CLAIMS, _claim("one", "local"))
        await it.client.create(CLAIMS, _claim("two", "local"))
        await it.client.create(PODS, _using("p", "one"))
        await it.client.create(PODS, _using("q", "two"))
        assert await _state(it, "p") == ("n2", "")
        assert (await it.client.get(CLAIMS, "one", "default"))["spec"]["volumeName"] == "v2"
        _, message = await _state(it, "q")
        assert message == (
            "0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind. " + NOT_HELPFUL
        )
        await it.client.create(VOLUMES, _volume("v1", "local", "n1"))
        assert (await _state(it, "q"))[0] == "n1"


async def test_a_volume_on_a_node_that_is_closed_leaves_its_pod_waiting(tmp_path: Path) -> None:
    async with cluster(tmp_path) as it:
        await it.client.create(STORAGE_CLASSES, _class("local", "kubernetes.io/no-provisioner"))
        await it.client.create(VOLUMES, _volume("v1", "local", "n1"))
        await it.client.create(CLAIMS, _claim("data", "local"))
        await it.client.create(PODS, _using("p", "data"))
        assert (await _state(it, "p"))[0] == "n1"
        await it.client.patch(NODES, "n1", "", {"spec": {"unschedulable": True}})
        await it.client.create(PODS, _using("q", "data"))
        assert (await _state(it, "q"))[1] == (
            "0/2 nodes are available: 1 node(s) didn't match PersistentVolume's node affinity, "
            "1 node(s) were unschedulable. " + NOT_HELPFUL
        )


async def test_a_pod_waits_for_claims_that_are_missing_or_not_bound(tmp_path: Path) -> None:
    async with cluster(tmp_path, provisioning=False) as it:
        await it.client.create(STORAGE_CLASSES, _class("now", mode="Immediate"))
        await it.client.create(PODS, _using("p", "data"))
        assert (await _state(it, "p"))[1] == (
            f'0/2 nodes are available: persistentvolumeclaim "data" not found. {NOT_HELPFUL}'
        )
        await it.client.create(CLAIMS, _claim("data", "now"))
        assert (await _state(it, "p"))[1] == (
            f"0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims. {NOT_HELPFUL}"
        )


async def test_a_volume_for_one_pod_is_used_by_one_pod(tmp_path: Path) -> None:
    async with cluster(tmp_path) as it:
        await it.client.create(STORAGE_CLASSES, _class("standard"))
        await it.client.create(CLAIMS, _claim("data", "standard", "ReadWriteOncePod"))
        await it.client.create(PODS, _using("p", "data"))
        assert (await _state(it, "p"))[0]
        await it.client.create(PODS, _using("q", "data"))
        assert (await _state(it, "q"))[1].startswith(
            "0/2 nodes are available: 2 node has pod using PersistentVolumeClaim with the same name and "
            "ReadWriteOncePod access mode. preemption:"
        )
        await it.client.delete(PODS, "p", "default", grace_period=0)
        assert (await _state(it, "q"))[0]


async def test_a_pod_deleted_while_its_volume_is_made_is_forgotten(tmp_path: Path) -> None:
    async with cluster(tmp_path, provisioning=False) as it:
        await it.client.create(STORAGE_CLASSES, _class("standard"))
        await it.client.create(CLAIMS, _claim("data", "standard"))
        await it.client.create(PODS, _using("p", "data"))
        assert await _state(it, "p") == ("", "")
        await it.client.delete(PODS, "p", "default", grace_period=0)
        await it.clock.advance(700)
        try:
            await it.client.get(PODS, "p", "default")
        except NotFound:
            assert await it.events("p") == []
        else:
            raise AssertionError("the pod is still there")
