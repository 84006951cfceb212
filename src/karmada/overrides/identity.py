"""What an override policy must not change: the identity of an object, and whose role a binding grants.

An object rendered for a cluster is still the object of its template: with another kind, name or namespace it would be
an object that its author may have no right to, in a member where only the control plane's rights count. A namespaced
policy is written by a tenant, who must not turn a RoleBinding that was checked here into one for another role either.
Admission refuses paths that lead there; what a policy of an earlier version does is found when it is applied.
"""

from __future__ import annotations

from typing import Final

from karmada.kube.objects.types import Obj
from karmada.kube.patch.jsonpatch import JsonPatchError, parse_pointer
from karmada.overrides.errors import CannotApply

_IDENTITY: Final = (("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace"))
_ROLE: Final = ("roleRef",)


def fixed_fields(*, namespaced: bool) -> tuple[tuple[str, ...], ...]:
    """Return what a namespaced or a cluster-wide policy leaves as it is."""
    return (*_IDENTITY, _ROLE) if namespaced else _IDENTITY


def fixed_field_of(pointer: str, *, namespaced: bool) -> str:
    """Return the fixed field that a change at a JSON pointer may change: at it, below it or above it; empty if none."""
    try:
        parts = parse_pointer(pointer)
    except JsonPatchError:
        return ""
    for field in fixed_fields(namespaced=namespaced):
        shared = min(len(parts), len(field))
        if tuple(parts[:shared]) == field[:shared]:
            return "/" + "/".join(field)
    return ""


def check_identity(before: Obj, after: Obj, *, namespaced: bool) -> None:
    """CannotApply when a step has changed a fixed field."""
    for field in fixed_fields(namespaced=namespaced):
        if _value(before, field) != _value(after, field):
            raise CannotApply(f"/{'/'.join(field)} must not be changed by an override policy")


def _value(obj: Obj, field: tuple[str, ...]) -> object:
    value: object = obj
    for step in field:
        value = value.get(step) if isinstance(value, dict) else None
    return value
