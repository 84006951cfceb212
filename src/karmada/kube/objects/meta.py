"""What every object has: metadata, owner references and conditions. Reads never fail on what is absent.

Nothing here changes an object; `set_condition` returns a new list.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from karmada.kube.objects.names import short_hash
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj

__all__ = [
    "annotations", "controller_of", "creation_time", "deletion_time", "finalizers", "generation", "get_condition",
    "has_condition", "is_deleting", "is_owned_by", "key", "labels", "make_owner", "metadata", "name", "namespace",
    "owner_references", "resource_version", "set_condition", "short_hash", "uid",
]  # fmt: skip

_EMPTY: dict[str, Any] = {}


def metadata(o: Mapping[str, Any]) -> Obj:
    """Shared and read-only; an empty dict when the object has none."""
    return o.get("metadata") or _EMPTY


def name(o: Mapping[str, Any]) -> str:
    return (o.get("metadata") or _EMPTY).get("name") or ""


def namespace(o: Mapping[str, Any]) -> str:
    return (o.get("metadata") or _EMPTY).get("namespace") or ""


def key(o: Mapping[str, Any]) -> tuple[str, str]:
    """Namespace ("" for cluster-scoped objects) and name."""
    meta = o.get("metadata") or _EMPTY
    return meta.get("namespace") or "", meta.get("name") or ""


def labels(o: Mapping[str, Any]) -> dict[str, str]:
    return (o.get("metadata") or _EMPTY).get("labels") or _EMPTY


def annotations(o: Mapping[str, Any]) -> dict[str, str]:
    return (o.get("metadata") or _EMPTY).get("annotations") or _EMPTY


def uid(o: Mapping[str, Any]) -> str:
    return (o.get("metadata") or _EMPTY).get("uid") or ""


def resource_version(o: Mapping[str, Any]) -> str:
    return (o.get("metadata") or _EMPTY).get("resourceVersion") or ""


def generation(o: Mapping[str, Any]) -> int:
    return (o.get("metadata") or _EMPTY).get("generation") or 0


def finalizers(o: Mapping[str, Any]) -> list[str]:
    return (o.get("metadata") or _EMPTY).get("finalizers") or []


def creation_time(o: Mapping[str, Any]) -> str:
    return (o.get("metadata") or _EMPTY).get("creationTimestamp") or ""


def deletion_time(o: Mapping[str, Any]) -> str:
    return (o.get("metadata") or _EMPTY).get("deletionTimestamp") or ""


def is_deleting(o: Mapping[str, Any]) -> bool:
    return bool((o.get("metadata") or _EMPTY).get("deletionTimestamp"))


def owner_references(o: Mapping[str, Any]) -> list[Obj]:
    return (o.get("metadata") or _EMPTY).get("ownerReferences") or []


def controller_of(o: Mapping[str, Any]) -> Obj | None:
    """Return the owner reference of the one owner that manages the object."""
    for owner in owner_references(o):
        if owner.get("controller"):
            return owner
    return None


def is_owned_by(o: Mapping[str, Any], owner: Mapping[str, Any]) -> bool:
    wanted = uid(owner)
    return any(reference.get("uid") == wanted for reference in owner_references(o))


def make_owner(o: Mapping[str, Any], controller: bool = True) -> Obj:
    """Return an owner reference to `o`; a controller's also holds back `o`'s foreground deletion."""
    reference: Obj = {"apiVersion": o["apiVersion"], "kind": o["kind"], "name": name(o), "uid": uid(o)}
    if controller:
        reference["controller"] = True
        reference["blockOwnerDeletion"] = True
    return reference


def without_managed_fields(o: Obj) -> Obj:
    """Return the object without managedFields: about half the size."""
    found = o.get("metadata")
    if not found or "managedFields" not in found:
        return o
    return {**o, "metadata": {key: value for key, value in found.items() if key != "managedFields"}}


def get_condition(conditions: Sequence[Obj] | None, kind: str) -> Obj | None:
    for condition in conditions or ():
        if condition.get("type") == kind:
            return condition
    return None


def has_condition(conditions: Sequence[Obj] | None, kind: str, status: str = "True") -> bool:
    condition = get_condition(conditions, kind)
    return condition is not None and condition.get("status") == status


def set_condition(conditions: Sequence[Obj] | None, new: Mapping[str, Any], now: float) -> list[Obj]:
    """Return the list with the condition of new's type replaced, or appended.

    lastTransitionTime moves only when the status does: to the one in `new` if it gives one, else to `now`.
    """
    result = list(conditions or ())
    for index, old in enumerate(result):
        if old.get("type") == new["type"]:
            result[index] = _replacement(old, new, now)
            return result
    result.append({**new, "lastTransitionTime": new.get("lastTransitionTime") or rfc3339(now)})
    return result


def _replacement(old: Mapping[str, Any], new: Mapping[str, Any], now: float) -> Obj:
    if old.get("status") == new.get("status") and old.get("lastTransitionTime"):
        moment = old["lastTransitionTime"]
    else:
        moment = new.get("lastTransitionTime") or rfc3339(now)
    return {**new, "lastTransitionTime": moment}
