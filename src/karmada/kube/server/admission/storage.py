"""Admission of claims and volumes: the default class, protection from deletion while in use, and growth."""

from __future__ import annotations

from karmada.kube.kinds import checks
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.types import Obj
from karmada.kube.server.admission.interface import CREATE, UPDATE, Attributes
from karmada.kube.server.admission.plugin import BuiltinPlugin, is_create_of, refuse

STORAGE_CLASSES = GroupResource("storage.k8s.io", "storageclasses")
CLAIMS = GroupResource("", "persistentvolumeclaims")
VOLUMES = GroupResource("", "persistentvolumes")
ATTRIBUTES_CLASSES = GroupResource("storage.k8s.io", "volumeattributesclasses")
IS_DEFAULT = "storageclass.kubernetes.io/is-default-class"
BETA_IS_DEFAULT = "storageclass.beta.kubernetes.io/is-default-class"
BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
_PROTECTION = {
    CLAIMS: "kubernetes.io/pvc-protection",
    VOLUMES: "kubernetes.io/pv-protection",
    ATTRIBUTES_CLASSES: "kubernetes.io/vac-protection",
}
NOT_EXPANDABLE = (
    "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"
)


def newest_default(candidates: list[Obj], *annotations: str) -> Obj | None:
    """Return the newest object marked as default; of two from the same second the first by name."""
    marked = [
        entry
        for entry in candidates
        if any((entry["metadata"].get("annotations") or {}).get(key) == "true" for key in annotations)
    ]
    marked.sort(key=lambda entry: entry["metadata"]["name"])
    return max(marked, key=lambda entry: entry["metadata"].get("creationTimestamp") or "", default=None)


def class_of(claim: Obj) -> str | None:
    """Return the class a claim names; None when it names none (an empty name is a name)."""
    annotations = claim["metadata"].get("annotations") or {}
    found: str | None = annotations.get(BETA_CLASS, (claim.get("spec") or {}).get("storageClassName"))
    return found


class DefaultStorageClass(BuiltinPlugin):
    name = "DefaultStorageClass"

    def handles(self, attributes: Attributes) -> bool:
        return is_create_of(attributes, *CLAIMS)

    async def admit(self, attributes: Attributes) -> None:
        claim = attributes.obj
        if claim is None or class_of(claim) is not None:
            return
        default = newest_default(self.reader.list(STORAGE_CLASSES), IS_DEFAULT, BETA_IS_DEFAULT)
        if default is not None:
            claim["spec"]["storageClassName"] = default["metadata"]["name"]


class StorageObjectInUseProtection(BuiltinPlugin):
    name = "StorageObjectInUseProtection"

    def handles(self, attributes: Attributes) -> bool:
        return (
            attributes.operation == CREATE and not attributes.subresource and attributes.group_resource in _PROTECTION
        )

    async def admit(self, attributes: Attributes) -> None:
        finalizer = _PROTECTION[attributes.group_resource]
        if attributes.obj is None:
            return
        meta = attributes.obj["metadata"]
        have = meta.get("finalizers") or []
        if finalizer not in have:
            meta["finalizers"] = [*have, finalizer]


class PersistentVolumeClaimResize(BuiltinPlugin):
    name = "PersistentVolumeClaimResize"

    def handles(self, attributes: Attributes) -> bool:
        return attributes.operation == UPDATE and not attributes.subresource and attributes.group_resource == CLAIMS

    async def validate(self, attributes: Attributes) -> None:
        new, old = attributes.obj or {}, attributes.old or {}
        requested, had = checks.quantity(_size(new)), checks.quantity(_size(old))
        if requested is None or had is None or requested <= had:
            return
        if (old.get("status") or {}).get("phase") != "Bound":
            raise refuse(attributes, "Only bound persistent volume claims can be expanded")
        storage_class = self.reader.get(STORAGE_CLASSES, "", class_of(old) or "")
        if storage_class is None or not storage_class.get("allowVolumeExpansion"):
            raise refuse(attributes, NOT_EXPANDABLE)


def _size(claim: Obj) -> str:
    requests = ((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}
    size: str = requests.get("storage") or "0"
    return size
