"""Namespaces. One has two sorts of finalizers.

Metadata.finalizers, as every object, and spec.finalizers, which only the finalize subresource changes. It is gone when
both are empty.
"""

from __future__ import annotations

from karmada.kube.kinds import checks
from karmada.kube.kinds.filling import part, take_metadata, take_version
from karmada.kube.kinds.resource import Strategy
from karmada.kube.objects import names
from karmada.kube.objects.errors import FieldError, FieldErrors, invalid
from karmada.kube.objects.types import Obj

NAME_LABEL = "kubernetes.io/metadata.name"


def default_namespace(obj: Obj) -> None:
    meta = part(obj, "metadata")
    if meta.get("name"):
        part(meta, "labels")[NAME_LABEL] = meta["name"]


def prepare_namespace(obj: Obj) -> None:
    default_namespace(obj)
    finalizers = part(obj, "spec").get("finalizers") or []
    obj["spec"]["finalizers"] = finalizers if "kubernetes" in finalizers else [*finalizers, "kubernetes"]
    obj["status"] = {"phase": "Active"}


def prepare_namespace_update(obj: Obj, old: Obj) -> None:
    """Restore spec.finalizers, which the main endpoint does not write."""
    finalizers = (old.get("spec") or {}).get("finalizers")
    if finalizers:
        part(obj, "spec")["finalizers"] = list(finalizers)
    else:
        part(obj, "spec").pop("finalizers", None)


def validate_namespace(obj: Obj) -> list[FieldError]:
    errors = FieldErrors()
    for index, name in enumerate((obj.get("spec") or {}).get("finalizers") or ()):
        checks.add_invalid(errors, f"spec.finalizers[{index}]", name, names.qualified_name(name))
    return errors


def validate_namespace_status(obj: Obj, _old: Obj) -> list[FieldError]:
    errors = FieldErrors()
    phase = (obj.get("status") or {}).get("phase")
    if obj["metadata"].get("deletionTimestamp"):
        if phase != "Terminating":
            detail = "may only be 'Terminating' if `deletionTimestamp` is not empty"
            errors.append(invalid("status.Phase", phase, detail))
    elif phase != "Active":
        errors.append(invalid("status.Phase", phase, "may only be 'Active' if `deletionTimestamp` is empty"))
    return errors


def finalize_namespace(live: Obj, wanted: Obj) -> Obj:
    """In place: the live Namespace with the spec.finalizers and the metadata of `wanted`; its status stays."""
    finalizers = (wanted.get("spec") or {}).get("finalizers")
    if finalizers:
        part(live, "spec")["finalizers"] = list(finalizers)
    else:
        part(live, "spec").pop("finalizers", None)
    take_version(live, wanted)
    take_metadata(live, wanted)
    return live


def finalize_errors(obj: Obj, _old: Obj) -> list[FieldError]:
    return validate_namespace(obj)


def is_held(obj: Obj) -> bool:
    """Return whether spec.finalizers block the deletion."""
    return bool((obj.get("spec") or {}).get("finalizers"))


def mark_deleting(obj: Obj) -> None:
    """In place: set the phase Terminating."""
    part(obj, "status")["phase"] = "Terminating"


NAMESPACE = Strategy(
    default=default_namespace,
    prepare_create=prepare_namespace,
    prepare_update=prepare_namespace_update,
    validate=validate_namespace,
    validate_status=validate_namespace_status,
    name_errors=names.dns1123_label,
    deleting=is_held,
    mark_deleting=mark_deleting,
    returns_deleted=True,
    fields={"status.phase": lambda obj: (obj.get("status") or {}).get("phase") or ""},
)
