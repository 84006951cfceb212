"""Claims, volumes and classes: their names in the API, how to read them, and indexes to find them by."""

from __future__ import annotations

from collections.abc import Iterable

from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.meta import annotations as annotations_of
from karmada.kube.objects.quantity import ZERO, Quantity
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key
from karmada.kube.server.admission.storage import class_of

ATTRIBUTES_CLASSES = GVR("storage.k8s.io", "v1", "volumeattributesclasses")

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
STORAGE_PROVISIONER = "volume.kubernetes.io/storage-provisioner"
BETA_STORAGE_PROVISIONER = "volume.beta.kubernetes.io/storage-provisioner"
YES = "yes"

PENDING, AVAILABLE, BOUND, RELEASED, FAILED, LOST = "Pending", "Available", "Bound", "Released", "Failed", "Lost"
WAIT_FOR_CONSUMER = "WaitForFirstConsumer"
NO_CLASS = "\0"
"""In the index of waiting claims: those that name no class, not even the empty one."""

BY_CLAIM, BY_CLASS = "claim reference", "storage class"
BY_VOLUME, WAITING = "volume name", "waiting claims of a class"


def spec_of(obj: Obj) -> Obj:
    found: Obj = obj.get("spec") or {}
    return found


def phase_of(obj: Obj) -> str:
    return str((obj.get("status") or {}).get("phase") or PENDING)


def size_of(amounts: Obj | None) -> Quantity:
    value = (amounts or {}).get("storage")
    return Quantity.parse(value) if value else ZERO


def requested_size(claim: Obj) -> Quantity:
    return size_of((spec_of(claim).get("resources") or {}).get("requests"))


def volume_size(volume: Obj) -> Quantity:
    return size_of(spec_of(volume).get("capacity"))


def volume_class(volume: Obj) -> str:
    return str(annotations_of(volume).get("volume.beta.kubernetes.io/storage-class") or "") or str(
        spec_of(volume).get("storageClassName") or ""
    )


def volume_mode(obj: Obj) -> str:
    return str(spec_of(obj).get("volumeMode") or "Filesystem")


def claim_ref(volume: Obj) -> Obj | None:
    found: Obj | None = spec_of(volume).get("claimRef")
    return found


def claim_key(volume: Obj) -> Key | None:
    """Return the claim a volume belongs to or is reserved for."""
    reference = claim_ref(volume)
    return Key(reference.get("namespace") or "", reference.get("name") or "") if reference else None


def is_for(volume: Obj, claim: Obj) -> bool:
    """Return whether the volume is this claim's, or reserved for a claim of its name."""
    reference = claim_ref(volume)
    if reference is None or claim_key(volume) != Key(claim["metadata"]["namespace"], claim["metadata"]["name"]):
        return False
    return reference.get("uid") in (None, "", claim["metadata"]["uid"])


def index_by_claim(volume: Obj) -> Iterable[str]:
    key = claim_key(volume)
    return (str(key),) if key else ()


def index_by_class(volume: Obj) -> Iterable[str]:
    """Available volumes without a claimRef."""
    return () if claim_ref(volume) else (volume_class(volume),)


def index_by_volume(claim: Obj) -> Iterable[str]:
    """Claims that have or request a certain volume."""
    name = spec_of(claim).get("volumeName")
    return (name,) if name else ()


def index_waiting(claim: Obj) -> Iterable[str]:
    """Claims that have no volume yet, by the class they name."""
    if spec_of(claim).get("volumeName") or BIND_COMPLETED in annotations_of(claim):
        return ()
    name = class_of(claim)
    return (NO_CLASS if name is None else name,)


def reference_to_claim(claim: Obj) -> Obj:
    metadata = claim["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "resourceVersion": metadata["resourceVersion"],
    }


def provisioned_name(claim: Obj) -> str:
    return f"pvc-{claim['metadata']['uid']}"


def waits_for_consumer(storage_class: Obj | None) -> bool:
    return storage_class is not None and storage_class.get("volumeBindingMode") == WAIT_FOR_CONSUMER
