"""Rules for ObjectMeta, the same for every kind, on the hot path of every write.

A valid object costs a few dictionary look-ups: results for label pairs, annotation keys and finalizers are cached, and
paths are built only for errors.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from karmada.kube.kinds import checks
from karmada.kube.objects import names
from karmada.kube.objects.errors import FieldError, FieldErrors, forbidden_field, invalid, required, too_long
from karmada.kube.objects.types import Obj

MAX_ANNOTATIONS = 256 * 1024
_STANDARD_FINALIZERS = frozenset(
    {"orphan", "foregroundDeletion", "kubernetes", "customresourcecleanup.apiextensions.k8s.io"}
)
_OWNER_FIELDS = (("apiVersion", "version"), ("kind", "kind"), ("name", "name"), ("uid", "uid"))
_IMMUTABLE = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
NO_NEW_FINALIZERS = "no new finalizers can be added if the object is being deleted, found new finalizers "


def metadata_errors(
    obj: Obj,
    *,
    namespaced: bool,
    name_errors: Callable[[str], list[str]] | None = None,
    existing: bool = False,
    builtin: bool = False,
    path: str = "metadata",
    old: Obj | None = None,
) -> list[FieldError]:
    """Return the errors of the metadata; an existing object's name was validated when it was created.

    Built-in kinds refuse finalizers without a domain, custom resources only warn of them. Annotations that are too
    large are let pass when they are no larger than those of `old`: it can still be changed, and cleaned up.
    """
    meta = obj.get("metadata") or {}
    errors = FieldErrors()
    if not existing:
        _names(errors, meta, name_errors or names.dns1123_subdomain, path)
    namespace = meta.get("namespace")
    if namespaced:
        if not namespace:
            errors.append(required(f"{path}.namespace"))
        elif not existing and (wrong := _namespace_messages(namespace)):
            checks.add_invalid(errors, f"{path}.namespace", namespace, wrong)
    elif namespace:
        errors.append(forbidden_field(f"{path}.namespace", "not allowed on this type"))
    if meta.get("labels"):
        checks.labels(errors, f"{path}.labels", meta["labels"])
    if meta.get("annotations"):
        before = old["metadata"].get("annotations") if old is not None else None
        annotation_errors(errors, meta["annotations"], f"{path}.annotations", before)
    if meta.get("ownerReferences"):
        _owners(errors, meta["ownerReferences"], f"{path}.ownerReferences")
    if meta.get("finalizers"):
        _finalizers(errors, meta["finalizers"], f"{path}.finalizers", builtin)
    if (meta.get("generation") or 0) < 0:
        errors.append(invalid(f"{path}.generation", meta["generation"], checks.NON_NEGATIVE))
    return errors


_namespace_messages = lru_cache(maxsize=4096)(names.dns1123_label)


def _names(errors: list[FieldError], meta: Obj, check: Callable[[str], list[str]], path: str) -> None:
    prefix = meta.get("generateName")
    if prefix:
        # A prefix may end in a dash: what is generated comes after it.
        whole = prefix[:-1] + "a" if prefix.endswith("-") else prefix
        checks.add_invalid(errors, f"{path}.generateName", prefix, check(whole))
    name = meta.get("name")
    if not name:
        errors.append(required(f"{path}.name", "name or generateName is required"))
        return
    wrong = check(name)
    if wrong:
        checks.add_invalid(errors, f"{path}.name", name, wrong)


@lru_cache(maxsize=4096)
def _annotation_key(key: str) -> tuple[str, ...]:
    return tuple(names.qualified_name(key.lower()))


def annotation_errors(errors: list[FieldError], annotations: Obj, path: str, before: Obj | None = None) -> None:
    size = 0
    for key, value in annotations.items():
        wrong = _annotation_key(key)
        if wrong:
            checks.add_invalid(errors, path, key, wrong)
        size += len(key) + len(value)
    # Only text near the limit is worth counting in bytes.
    if size * 4 > MAX_ANNOTATIONS:
        size = _bytes_of(annotations)
        if size > MAX_ANNOTATIONS and size > _bytes_of(before or {}):
            errors.append(too_long(path, MAX_ANNOTATIONS))


def _bytes_of(annotations: Obj) -> int:
    return sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())


def _owners(errors: list[FieldError], owners: list[Obj], path: str) -> None:
    controller = ""
    for owner in owners:
        for key, what in _OWNER_FIELDS:
            if not owner.get(key):
                errors.append(invalid(f"{path}.{key}", owner.get(key) or "", f"{what} must not be empty"))
        if owner.get("apiVersion") == "v1" and owner.get("kind") == "Event":
            errors.append(invalid(path, owner, "/v1, Kind=Event is disallowed from being an owner"))
        if owner.get("controller"):
            if controller:
                detail = (
                    'Only one reference can have Controller set to true. Found "true" in references for '
                    f"{controller} and {owner.get('name')}"
                )
                errors.append(invalid(path, owners, detail))
            controller = owner.get("name") or ""


@lru_cache(maxsize=1024)
def _finalizer_messages(name: str) -> tuple[str, ...]:
    return tuple(names.qualified_name(name))


def _finalizers(errors: list[FieldError], finalizers: list[str], path: str, builtin: bool) -> None:
    for index, name in enumerate(finalizers):
        wrong = _finalizer_messages(name)
        if wrong:
            checks.add_invalid(errors, path, name, wrong)
        if builtin and not finalizer_is_standard(name):
            detail = "name is neither a standard finalizer name nor is it fully qualified"
            errors.append(invalid(f"{path}[{index}]", name, detail))
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        detail = "finalizer orphan and foregroundDeletion cannot be both set"
        errors.append(invalid(path, ",".join(finalizers), detail))


def finalizer_is_standard(name: str) -> bool:
    """Known to Kubernetes itself, or named with a domain."""
    return "/" in name or name in _STANDARD_FINALIZERS


def metadata_update_errors(obj: Obj, old: Obj) -> list[FieldError]:
    """Immutable fields of metadata; the server has already copied those that only it sets."""
    meta, before = obj["metadata"], old["metadata"]
    errors = FieldErrors()
    if before.get("deletionTimestamp") and meta.get("finalizers"):
        new = sorted(set(meta["finalizers"]).difference(before.get("finalizers") or ()))
        if new:
            shown = "[]string{" + ", ".join(f'"{name}"' for name in new) + "}"
            errors.append(forbidden_field("metadata.finalizers", NO_NEW_FINALIZERS + shown))
    for key in _IMMUTABLE:
        if meta.get(key) != before.get(key):
            errors.append(invalid(f"metadata.{key}", meta.get(key), checks.IMMUTABLE))
    if (meta.get("generation") or 0) < (before.get("generation") or 0):
        errors.append(invalid("metadata.generation", meta.get("generation"), "must not be decremented"))
    return errors
