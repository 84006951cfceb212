"""How volumes, their claims and their classes look in a table."""

from __future__ import annotations

from karmada.kube.kinds.tables.columns import (
    AGE,
    NAME,
    NONE,
    UNSET,
    Column,
    Printer,
    count,
    dig,
    field,
    joined,
    of,
    quantity_text,
)
from karmada.kube.kinds.tables.network import name_with_default
from karmada.kube.objects import meta
from karmada.kube.objects.types import Obj

_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


def _access_modes(modes: list[str] | None) -> str:
    return ",".join(short for mode, short in _MODES.items() if mode in (modes or ()))


def _phase(obj: Obj) -> str:
    return "Terminating" if meta.is_deleting(obj) else dig(obj, "status", "phase") or ""


def _class(obj: Obj) -> str:
    return meta.annotations(obj).get(_CLASS_ANNOTATION) or dig(obj, "spec", "storageClassName") or ""


def _claim(volume: Obj) -> str:
    claim = dig(volume, "spec", "claimRef")
    return f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else ""


_STORAGE_CLASS = Column("StorageClass", of(_class), "The class the storage comes from")
_ATTRIBUTES_CLASS = Column(
    "VolumeAttributesClass", field("spec.volumeAttributesClassName", UNSET), "The class of the changeable attributes"
)
_VOLUME_MODE = Column("VolumeMode", field("spec.volumeMode", UNSET), "Filesystem or Block", wide=True)

PERSISTENT_VOLUME = Printer([
    NAME,
    Column("Capacity", of(lambda o: quantity_text(dig(o, "spec", "capacity", "storage"))), "The size"),
    Column("Access Modes", of(lambda o: _access_modes(dig(o, "spec", "accessModes"))), "How it may be mounted"),
    Column("Reclaim Policy", field("spec.persistentVolumeReclaimPolicy"), "What happens when its claim goes"),
    Column("Status", of(_phase), "The phase of the volume"),
    Column("Claim", of(_claim), "The claim that it is bound to"),
    _STORAGE_CLASS,
    _ATTRIBUTES_CLASS,
    Column("Reason", field("status.reason"), "Why the volume is in its phase"),
    AGE,
    _VOLUME_MODE,
])  # fmt: skip


def _claimed_size(claim: Obj) -> str:
    return quantity_text(dig(claim, "status", "capacity", "storage")) if dig(claim, "spec", "volumeName") else ""


def _claimed_modes(claim: Obj) -> str:
    return _access_modes(dig(claim, "status", "accessModes")) if dig(claim, "spec", "volumeName") else ""


PERSISTENT_VOLUME_CLAIM = Printer([
    NAME,
    Column("Status", of(_phase), "The phase of the claim"),
    Column("Volume", field("spec.volumeName"), "The volume that it is bound to"),
    Column("Capacity", of(_claimed_size), "The size of the volume"),
    Column("Access Modes", of(_claimed_modes), "How the volume may be mounted"),
    _STORAGE_CLASS,
    _ATTRIBUTES_CLASS,
    AGE,
    _VOLUME_MODE,
])  # fmt: skip

STORAGE_CLASS = Printer([
    name_with_default("storageclass.kubernetes.io/is-default-class"),
    Column("Provisioner", field("provisioner"), "What makes the volumes"),
    Column("ReclaimPolicy", field("reclaimPolicy", "Delete"), "What happens to a volume when its claim goes"),
    Column("VolumeBindingMode", field("volumeBindingMode", "Immediate"), "When volumes are made and bound"),
    Column("AllowVolumeExpansion", field("allowVolumeExpansion", False), "Whether volumes can grow", type="boolean"),
    AGE,
])  # fmt: skip

VOLUME_ATTRIBUTES_CLASS = Printer([
    name_with_default("storageclass.kubernetes.io/is-default-class"),
    Column("DriverName", field("driverName"), "The driver that the attributes are for"),
    AGE,
])  # fmt: skip


def _audiences(driver: Obj) -> str:
    requests = dig(driver, "spec", "tokenRequests")
    return UNSET if requests is None else joined(each.get("audience", "") for each in requests)


CSI_DRIVER = Printer([
    NAME,
    Column("AttachRequired", field("spec.attachRequired", True), "Whether volumes must be attached", type="boolean"),
    Column("PodInfoOnMount", field("spec.podInfoOnMount", False), "Whether it gets data of the pod", type="boolean"),
    Column("StorageCapacity", field("spec.storageCapacity", False), "Whether it reports capacity", type="boolean"),
    Column("TokenRequests", of(_audiences), "Audiences of the tokens it needs"),
    Column("RequiresRepublish", field("spec.requiresRepublish", False), "Whether it is called again", type="boolean"),
    Column("Modes", of(lambda o: joined(dig(o, "spec", "volumeLifecycleModes"), NONE)), "The lifecycles it supports"),
    AGE,
])  # fmt: skip

CSI_NODE = Printer([NAME, Column("Drivers", count("spec.drivers"), "Drivers on the node", type="integer"), AGE])

VOLUME_ATTACHMENT = Printer([
    NAME,
    Column("Attacher", field("spec.attacher"), "The driver that attaches", format="name"),
    Column("PV", field("spec.source.persistentVolumeName"), "The volume"),
    Column("Node", field("spec.nodeName"), "The node"),
    Column("Attached", field("status.attached", False), "Whether it is attached", type="boolean"),
    AGE,
])  # fmt: skip

PRINTERS = {
    ("", "PersistentVolume"): PERSISTENT_VOLUME,
    ("", "PersistentVolumeClaim"): PERSISTENT_VOLUME_CLAIM,
    ("storage.k8s.io", "StorageClass"): STORAGE_CLASS,
    ("storage.k8s.io", "VolumeAttributesClass"): VOLUME_ATTRIBUTES_CLASS,
    ("storage.k8s.io", "CSIDriver"): CSI_DRIVER,
    ("storage.k8s.io", "CSINode"): CSI_NODE,
    ("storage.k8s.io", "VolumeAttachment"): VOLUME_ATTACHMENT,
}
