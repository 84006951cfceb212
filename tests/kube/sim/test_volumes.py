from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from karmada.kube.objects.errors import Forbidden, NotFound
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import CLAIMS, NODES, PODS, STORAGE_CLASSES, VOLUMES
from karmada.kube.objects.types import Obj
from karmada.kube.sim.controllers.volumes import volume_controllers
from karmada.kube.sim.controllers.volumes_protection import attributes_classes_of
from karmada.kube.sim.profile import INSTANT, Profile, StorageClass
from tests.kube.sim.harness import Harness, running
from tests.kube.sim.passing import after, settled
from tests.kube.sim.service_objects import pod
from tests.support.cases import cases
from tests.support.objects import kube_object

ATTRIBUTES_CLASSES = GVR("storage.k8s.io", "v1", "volumeattributesclasses")
NETWORK = "sim.io/network"
PROFILE = Profile("m1", storage_classes=(StorageClass(), StorageClass("net", provisioner=NETWORK)))
SELECTED_NODE = "volume.kubernetes.io/selected-node"


def claim(name: str = "data", size: str = "1Gi", **spec: Any) -> Obj:
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}
    return kube_object("v1", "PersistentVolumeClaim", name, "default", spec=wanted)


def volume(name: str, size: str = "5Gi", *, labels: dict[str, str] | None = None, **spec: Any) -> Obj:
    wanted = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}, **spec}
    return kube_object("v1", "PersistentVolume", name, labels=labels or {}, spec=wanted)


def storage_class(name: str, provisioner: str = "sim.io/local", **fields: Any) -> Obj:
    made: Obj = kube_object("storage.k8s.io/v1", "StorageClass", name, annotations=fields.pop("annotations", {}))
    return {**made, "provisioner": provisioner, **fields}


def attributes_class(name: str) -> Obj:
    made: Obj = kube_object("storage.k8s.io/v1", "VolumeAttributesClass", name)
    return {**made, "driverName": "disk.example.com", "parameters": {"iops": "100"}}


async def get_claim(cluster: Harness, name: str = "data") -> Obj:
    await settled(cluster)
    return await cluster.client.get(CLAIMS, name, "default")


async def get_volume(cluster: Harness, name: str) -> Obj:
    await settled(cluster)
    return await cluster.client.get(VOLUMES, name)


async def reasons(cluster: Harness, name: str = "data") -> list[str]:
    await settled(cluster)
    return [reason for _, reason, _ in await cluster.events(name)]


# --- volumes that are there


async def test_a_claim_takes_the_smallest_volume_that_fits(tmp_path: Path) -> None:
    async with running(tmp_path, volume_controllers) as cluster:
        for name, size in (("large", "10Gi"), ("small", "2Gi"), ("tiny", "500Mi")):
            await cluster.client.create(VOLUMES, volume(name, size))
        assert (await get_volume(cluster, "small"))["status"]["phase"] == "Available"
        made = await cluster.client.create(CLAIMS, claim())
        found = await get_claim(cluster)
        assert found["spec"]["volumeName"] == "small"
        assert found["metadata"]["annotations"] == {
            "pv.kubernetes.io/bind-completed": "yes",
            "pv.kubernetes.io/bound-by-controller": "yes",
        }
        assert found["status"] == {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "2Gi"}}
        bound = await get_volume(cluster, "small")
        reference = bound["spec"]["claimRef"]
        assert {key: reference[key] for key in ("kind", "apiVersion", "namespace", "name", "uid")} == {
            "kind": "PersistentVolumeClaim",
            "apiVersion": "v1",
            "namespace": "default",
            "name": "data",
            "uid": made["metadata"]["uid"],
        }
        assert reference["resourceVersion"]
        assert bound["metadata"]["annotations"] == {"pv.kubernetes.io/bound-by-controller": "yes"}
        assert bound["status"]["phase"] == "Bound"


@cases(
    ({"accessModes": ["ReadWriteMany"]}, {}),
    ({"volumeMode": "Block"}, {}),
    ({"storageClassName": "fast"}, {}),
    ({"storageClassName": ""}, {"storageClassName": "fast"}),
    ({"selector": {"matchLabels": {"disk": "ssd"}}}, {}),
    ({"size": "6Gi"}, {}),
    ({}, {"claimRef": {"namespace": "default", "name": "other"}}),
)
async def test_a_volume_that_does_not_fit_is_not_taken(wanted: Obj, offered: Obj, tmp_path: Path) -> None:
    async with running(tmp_path, volume_controllers) as cluster:
        await cluster.client.create(VOLUMES, volume("v", **offered))
        await settled(cluster)
        await cluster.client.create(CLAIMS, claim(**wanted))
        assert (await get_claim(cluster))["status"]["phase"] == "Pending"
        fits = volume("fits", "7Gi", labels={"disk": "ssd"}, **{k: v for k, v in wanted.items() if k in _OFFERED})
        await cluster.client.create(VOLUMES, fits)
        assert (await get_claim(cluster))["spec"]["volumeName"] == "fits"


_OFFERED = ("accessModes", "volumeMode", "storageClassName")


async def test_two_claims_never_share_a_volume(tmp_path: Path) -> None:
    async with running(tmp_path, volume_controllers) as cluster:
        await cluster.client.create(VOLUMES, volume("v"))
        await settled(cluster)
        await cluster.client.create(CLAIMS, claim("a"))
        await cluster.client.create(CLAIMS, claim("b"))
        phases = sorted([(await get_claim(cluster, name))["status"]["phase"] for name in ("a", "b")])
        assert phases == ["Bound", "Pending"]


async def test_without_class_and_volume_a_claim_waits(tmp_path: Path) -> None:
    async with running(tmp_path, volume_controllers) as cluster:
        await cluster.client.create(CLAIMS, claim())
        await settled(cluster)
        why = "no persistent volumes available for this claim and no storage class is set"
        assert await cluster.events("data") == [("Normal", "FailedBinding", why)]


async def test_a_reserved_volume_goes_to_its_claim(tmp_path: Path) -> None:
    async with running(tmp_path, volume_controllers) as cluster:
        await cluster.client.create(VOLUMES, volume("free", "1Gi"))
        reserved = {"namespace": "default", "name": "data"}
        await cluster.client.create(VOLUMES, volume("reserved", "9Gi", claimRef=reserved))
        assert (await get_volume(cluster, "reserved"))["status"]["phase"] == "Available"
        made = await cluster.client.create(CLAIMS, claim())
        assert (await get_claim(cluster))["spec"]["volumeName"] == "reserved"
        bound = await get_volume(cluster, "reserved")
        assert bound["spec"]["claimRef"]["uid"] == made["metadata"]["uid"]
        assert "pv.kubernetes.io/bound-by-controller" not in bound["metadata"].get("annotations", {})


async def test_a_claim_may_name_its_volume(tmp_path: Path) -> None:
    async with running(tmp_path, volume_controllers) as cluster:
        await cluster.client.create(CLAIMS, claim(volumeName="v"))
        assert (await get_claim(cluster))["status"]["phase"] == "Pending"
        await cluster.client.create(VOLUMES, volume("v"))
        found = await get_claim(cluster)
        assert found["status"]["phase"] == "Bound"
        assert found["metadata"]["annotations"] == {"pv.kubernetes.io/bind-completed": "yes"}
        await cluster.client.create(CLAIMS, claim("late", volumeName="v"))
        assert await reasons(cluster, "late") == ["FailedBinding"]
        await cluster.client.create(VOLUMES, volume("little", "1Mi"))
        await cluster.client.create(CLAIMS, claim("big", volumeName="little"))
        await settled(cluster)
        message = 'Cannot bind to requested volume "little": requested PV is too small'
        assert ("Warning", "VolumeMismatch", message) in await cluster.events("big")


# --- provisioning


async def test_immediate_classes_get_their_volume_after_a_while(tmp_path: Path) -> None:
    async with running(tmp_path, volume_controllers, profile=PROFILE) as cluster:
        await cluster.client.create(
            STORAGE_CLASSES, storage_class("net", NETWORK, mountOptions=["ro"], reclaimPolicy="Retain")
        )
        made = await cluster.client.create(CLAIMS, claim(storageClassName="net"))
        await after(cluster, 0.2)
        waiting = await get_claim(cluster)
        assert waiting["status"]["phase"] == "Pending"
        annotations = waiting["metadata"]["annotations"]
        assert annotations["volume.kubernetes.io/storage-provisioner"] == NETWORK
        assert annotations["volume.beta.kubernetes.io/storage-provisioner"] == NETWORK
        await after(cluster, 0.1)
        name = f"pvc-{made['metadata']['uid']}"
        found = await get_claim(cluster)
        assert (found["spec"]["volumeName"], found["status"]["phase"]) == (name, "Bound")
        provisioned = await get_volume(cluster, name)
        assert provisioned["metadata"]["annotations"] == {"pv.kubernetes.io/provisioned-by": NETWORK}
        spec = provisioned["spec"]
        assert spec["capacity"] == {"storage": "1Gi"}
        assert spec["csi"] == {"driver": NETWORK, "volumeHandle": name}
        assert (spec["persistentVolumeReclaimPolicy"], spec["mountOptions"]) == ("Retain", ["ro"])
        assert provisioned["status"]["phase"] == "Bound"
        emitted = await cluster.events("data")
        assert [reason for _, reason, _ in emitted] == ["ExternalProvisioning", "Provisioning", "ProvisioningSucceeded"]
        assert emitted[1][2] == 'External provisioner is provisioning volume for claim "default/data"'
        assert emitted[2][2] == f"Successfully provisioned volume {name}"


async def test_delayed_binding_waits_for_the_scheduler(tmp_path: Path) -> None:
    async with running(tmp_path, volume_controllers) as cluster:
        labels = {"kubernetes.io/hostname": "host-1"}
        node = kube_object("v1", "Node", "n1", labels=labels)
        await cluster.client.create(NODES, node)
        await cluster.client.create(STORAGE_CLASSES, storage_class("late", volumeBindingMode="WaitForFirstConsumer"))
        await cluster.client.create(CLAIMS, claim(storageClassName="late"))
        assert (await get_claim(cluster))["status"]["phase"] == "Pending"
        why = "waiting for first consumer to be created before binding"
        assert await cluster.events("data") == [("Normal", "WaitForFirstConsumer", why)]
        await cluster.client.patch(CLAIMS, "data", "default", {"metadata": {"annotations": {SELECTED_NODE: "n1"}}})
        found = await get_claim(cluster)
        assert found["status"]["phase"] == "Bound"
        [term] = (await get_volume(cluster, found["spec"]["volumeName"]))["spec"]["nodeAffinity"]["required"][
            "nodeSelectorTerms"
        ]
        [host] = term["matchExpressions"]
        assert host == {"key": "kubernetes.io/hostname", "operator": "In", "values": ["host-1"]}


async def test_a_chosen_node_that_is_gone_must_be_chosen_again(tmp_path: Path) -> None:
    async with running(tmp_path, volume_controllers) as cluster:
        await cluster.client.create(STORAGE_CLASSES, storage_class("late", volumeBindingMode="WaitForFirstConsumer"))
        await cluster.client.create(CLAIMS, claim(storageClassName="late"))
        await settled(cluster)
        await cluster.client.patch(CLAIMS, "data", "default", {"metadata": {"annotations": {SELECTED_NODE: "gone"}}})
        found = await get_claim(cluster)
        assert SELECTED_NODE not in found["metadata"]["annotations"]
        assert "ProvisioningFailed" in await reasons(cluster)


async def test_with_delayed_binding_a_free_volume_must_reach_the_node(tmp_path: Path) -> None:
    async with running(tmp_path, volume_controllers) as cluster:
        late = storage_class("late", "kubernetes.io/no-provisioner", volumeBindingMode="WaitForFirstConsumer")
        await cluster.client.create(STORAGE_CLASSES, late)
        for name in ("n1", "n2"):
            labels = {"kubernetes.io/hostname": name}
            node = kube_object("v1", "Node", name, labels=labels)
            await cluster.client.create(NODES, node)
            here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [name]}
            affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}}
            await cluster.client.create(VOLUMES, volume(f"on-{name}", storageClassName="late", nodeAffinity=affinity))
        await cluster.client.create(CLAIMS, claim(storageClassName="late"))
        assert (await get_claim(cluster))["status"]["phase"] == "Pending"
        await cluster.client.patch(CLAIMS, "data", "default", {"metadata": {"annotations": {SELECTED_NODE: "n2"}}})
        assert (await get_claim(cluster))["spec"]["volumeName"] == "on-n2"


async def test_a_volume_the_scheduler_reserved_is_bound(tmp_path: Path) -> None:
    async with running(tmp_path, volume_controllers) as cluster:
        await cluster.client.create(STORAGE_CLASSES, storage_class("late", volumeBindingMode="WaitForFirstConsumer"))
        await cluster.client.create(VOLUMES, volume("v", storageClassName="late"))
        made = await cluster.client.create(CLAIMS, claim(storageClassName="late"))
        assert (await get_claim(cluster))["status"]["phase"] == "Pending"
        reference = {"namespace": "default", "name": "data", "uid": made["metadata"]["uid"]}
        await cluster.client.patch(VOLUMES, "v", "", {"spec": {"claimRef": reference}})
        found = await get_claim(cluster)
        assert (found["spec"]["volumeName"], found["status"]["phase"]) == ("v", "Bound")
        assert (await get_volume(cluster, "v"))["status"]["phase"] == "Bound"


@cases(("kubernetes.io/no-provisioner", "ProvisioningFailed"), ("example.com/unknown", "ExternalProvisioning"))
async def test_a_class_of_another_provisioner_is_not_provisioned(provisioner: str, reason: str, tmp_path: Path) -> None:
    async with running(tmp_path, volume_controllers) as cluster:
        await cluster.client.create(STORAGE_CLASSES, storage_class("odd", provisioner))
        await cluster.client.create(CLAIMS, claim(storageClassName="odd"))
        assert (await get_claim(cluster))["status"]["phase"] == "Pending"
        assert await reasons(cluster) == [reason]


async def test_a_class_may_come_after_its_claims(tmp_path: Path) -> None:
    async with running(tmp_path, volume_controllers) as cluster:
        await cluster.client.create(CLAIMS, claim("named", storageClassName="standard"))
        await cluster.client.create(CLAIMS, claim("any"))
        await settled(cluster)
        why = 'storageclass.storage.k8s.io "standard" not found'
        assert await cluster.events("named") == [("Warning", "ProvisioningFailed", why)]
        default = {"storageclass.kubernetes.io/is-default-class": "true"}
        await cluster.client.create(STORAGE_CLASSES, storage_class("standard", annotations=default))
        assert (await get_claim(cluster, "named"))["status"]["phase"] == "Bound"
        assert (await get_claim(cluster, "any"))["spec"]["storageClassName"] == "standard"
        assert (await get_claim(cluster, "any"))["status"]["phase"] == "Bound"


async def test_a_claim_deleted_while_its_volume_is_made_gets_none(tmp_path: Path) -> None:
    async with running(tmp_path, volume_controllers, profile=PROFILE) as cluster:
        await cluster.client.create(STORAGE_CLASSES, storage_class("now"))
        await cluster.client.create(CLAIMS, claim(storageClassName="now"))
        await after(cluster, 0.1)
        await cluster.client.delete(CLAIMS, "data", "default")
        await after(cluster, 1.0)
        assert (await cluster.client.list_all(VOLUMES)).items == []


# --- protection and reclaim


async def bound_claim(cluster: Harness, policy: str) -> str:
    await cluster.client.create(VOLUMES, volume("v", persistentVolumeReclaimPolicy=policy))
    await settled(cluster)
    await cluster.client.create(CLAIMS, claim())
    return str((await get_claim(cluster))["spec"]["volumeName"])


async def test_a_claim_in_use_stays_until_its_pod_is_gone(tmp_path: Path) -> None:
    async with running(tmp_path, volume_controllers) as cluster:
        await bound_claim(cluster, "Retain")
        mounts = [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]
        made = await cluster.client.create(PODS, pod("p1", volumes=mounts))
        await cluster.client.create(PODS, pod("p2", volumes=mounts))
        await settled(cluster)
        await cluster.client.delete(CLAIMS, "data", "default")
        held = await get_claim(cluster)
        assert held["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
        assert held["metadata"]["deletionTimestamp"]
        await cluster.set_pod_status(made, {"phase": "Succeeded"})
        await get_claim(cluster)
        await cluster.client.delete(PODS, "p2", "default", grace_period=0)
        with pytest.raises(NotFound):
            await get_claim(cluster)
        assert (await get_volume(cluster, "v"))["status"]["phase"] == "Released"


async def test_a_pod_without_node_does_not_hold_its_claim(tmp_path: Path) -> None:
    async with running(tmp_path, volume_controllers) as cluster:
        await bound_claim(cluster, "Retain")
        mounts = [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]
        await cluster.client.create(PODS, pod("p1", nodeName=None, volumes=mounts))
        await cluster.client.delete(CLAIMS, "data", "default")
        with pytest.raises(NotFound):
            await get_claim(cluster)


async def test_volumes_with_policy_delete_go_with_their_claim(tmp_path: Path) -> None:
    async with running(tmp_path, volume_controllers) as cluster:
        await bound_claim(cluster, "Delete")
        await cluster.client.delete(CLAIMS, "data", "default")
        with pytest.raises(NotFound):
            await get_volume(cluster, "v")


async def test_a_released_volume_is_not_given_to_the_next_claim_of_that_name(tmp_path: Path) -> None:
    async with running(tmp_path, volume_controllers) as cluster:
        await bound_claim(cluster, "Retain")
        await cluster.client.delete(CLAIMS, "data", "default")
        await settled(cluster)
        await cluster.client.create(CLAIMS, claim())
        assert (await get_claim(cluster))["status"]["phase"] == "Pending"
        assert (await get_volume(cluster, "v"))["status"]["phase"] == "Released"


async def test_a_bound_volume_cannot_be_deleted_before_its_claim(tmp_path: Path) -> None:
    async with running(tmp_path, volume_controllers) as cluster:
        await bound_claim(cluster, "Retain")
        await cluster.client.delete(VOLUMES, "v")
        held = await get_volume(cluster, "v")
        assert held["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"]
        await cluster.client.delete(CLAIMS, "data", "default")
        with pytest.raises(NotFound):
            await get_volume(cluster, "v")


async def test_a_class_of_attributes_in_use_stays_until_claim_and_volume_have_none_or_another(tmp_path: Path) -> None:
    async with running(tmp_path, volume_controllers) as cluster:
        for name in ("gold", "silver"):
            made = await cluster.client.create(ATTRIBUTES_CLASSES, attributes_class(name))
            assert made["metadata"]["finalizers"] == ["kubernetes.io/vac-protection"]
        await cluster.client.create(VOLUMES, volume("v", storageClassName="none", volumeAttributesClassName="gold"))
        await cluster.client.create(CLAIMS, claim(storageClassName="other", volumeAttributesClassName="gold"))
        await settled(cluster)
        for name in ("gold", "silver"):
            await cluster.client.delete(ATTRIBUTES_CLASSES, name)
        await settled(cluster)
        [held] = (await cluster.client.list_all(ATTRIBUTES_CLASSES)).items
        assert (held["metadata"]["name"], "deletionTimestamp" in held["metadata"]) == ("gold", True)
        await cluster.client.delete(CLAIMS, "data", "default")
        await settled(cluster)
        assert len((await cluster.client.list_all(ATTRIBUTES_CLASSES)).items) == 1
        other = {"spec": {"volumeAttributesClassName": "bronze"}}
        await cluster.client.patch(VOLUMES, "v", "", other, type="merge")
        await settled(cluster)
        assert (await cluster.client.list_all(ATTRIBUTES_CLASSES)).items == []


@cases(
    ({"spec": {}}, set()),
    ({"spec": {"volumeAttributesClassName": ""}, "status": {}}, set()),
    ({"spec": {"volumeAttributesClassName": "a"}}, {"a"}),
    (
        {
            "spec": {"volumeAttributesClassName": "a"},
            "status": {
                "currentVolumeAttributesClassName": "b",
                "modifyVolumeStatus": {"targetVolumeAttributesClassName": "c"},
            },
        },
        {"a", "b", "c"},
    ),
)
def test_a_claim_holds_the_class_it_has_and_the_one_it_is_to_get(holder: Obj, wanted: set[str]) -> None:
    assert attributes_classes_of(holder) == wanted


async def test_an_old_cluster_without_classes_of_attributes_runs(tmp_path: Path) -> None:
    async with running(tmp_path, volume_controllers, profile=Profile("m1", version="1.30")) as cluster:
        assert (await bound_claim(cluster, "Retain")) == "v"


async def test_a_claim_that_lost_its_volume_says_so(tmp_path: Path) -> None:
    async with running(tmp_path, volume_controllers) as cluster:
        await bound_claim(cluster, "Retain")
        await cluster.client.delete(VOLUMES, "v")
        await cluster.client.patch(VOLUMES, "v", "", {"metadata": {"finalizers": None}})
        assert (await get_claim(cluster))["status"]["phase"] == "Lost"
        assert "ClaimLost" in await reasons(cluster)


async def test_recycling_is_refused(tmp_path: Path) -> None:
    async with running(tmp_path, volume_controllers) as cluster:
        await bound_claim(cluster, "Recycle")
        await cluster.client.delete(CLAIMS, "data", "default")
        assert (await get_volume(cluster, "v"))["status"]["phase"] == "Failed"
        assert await reasons(cluster, "v") == ["VolumeFailedRecycle"]


# --- growth and a pod's own claims


async def test_a_claim_grows_if_its_class_allows_it(tmp_path: Path) -> None:
    async with running(tmp_path, volume_controllers, profile=PROFILE) as cluster:
        await cluster.client.create(STORAGE_CLASSES, storage_class("net", NETWORK, allowVolumeExpansion=True))
        await cluster.client.create(CLAIMS, claim(storageClassName="net"))
        await after(cluster, 0.3)
        more = {"spec": {"resources": {"requests": {"storage": "3Gi"}}}}
        await cluster.client.patch(CLAIMS, "data", "default", more)
        await after(cluster, 0.2)
        growing = await get_claim(cluster)
        assert growing["status"]["capacity"] == {"storage": "1Gi"}
        assert [(c["type"], c["status"]) for c in growing["status"]["conditions"]] == [("Resizing", "True")]
        await after(cluster, 0.1)
        grown = await get_claim(cluster)
        assert grown["status"]["capacity"] == {"storage": "3Gi"}
        assert not grown["status"].get("conditions")
        assert (await get_volume(cluster, grown["spec"]["volumeName"]))["spec"]["capacity"] == {"storage": "3Gi"}
        assert (await reasons(cluster))[-2:] == ["Resizing", "VolumeResizeSuccessful"]


async def test_a_claim_of_another_class_cannot_grow(tmp_path: Path) -> None:
    async with running(tmp_path, volume_controllers) as cluster:
        await bound_claim(cluster, "Retain")
        with pytest.raises(Forbidden):
            await cluster.client.patch(
                CLAIMS, "data", "default", {"spec": {"resources": {"requests": {"storage": "3Gi"}}}}
            )


async def test_a_pod_may_bring_its_own_claim(tmp_path: Path) -> None:
    async with running(tmp_path, volume_controllers, profile=Profile("m1", latencies=INSTANT)) as cluster:
        await cluster.client.create(STORAGE_CLASSES, storage_class("now"))
        template = {"metadata": {"labels": {"a": "b"}}, "spec": claim(storageClassName="now")["spec"]}
        scratch = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}]
        made = await cluster.client.create(PODS, pod("p1", volumes=scratch))
        found = await get_claim(cluster, "p1-scratch")
        assert found["status"]["phase"] == "Bound"
        assert found["metadata"]["labels"] == {"a": "b"}
        assert found["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
