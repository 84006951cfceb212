"""What an override policy must not change: the identity of an object, and in a namespaced policy what gives rights.

An object rendered for a cluster is still the object of its template: with another kind, name or namespace it would be
an object that its author may have no right to, in a member where only the control plane's rights count. A namespaced
policy is written by a tenant, and what it renders passes no check of rights, quota or admission here. So it leaves
alone what those checks are about: whom a binding grants what, what a role allows, what a quota limits. A
ClusterOverridePolicy, an administrator's, may change that. Admission refuses paths that lead there, where the policy
names the kind; what another policy does, or one of an earlier version, is found when it is applied.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from karmada.kube.objects.gvk import GroupKind
from karmada.kube.objects.types import Obj
from karmada.kube.patch.jsonpatch import JsonPatchError, parse_pointer
from karmada.overrides.errors import CannotApply

_Path = tuple[str, ...]
_IDENTITY: Final[tuple[_Path, ...]] = (("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace"))
_ROLE: Final[_Path] = ("roleRef",)
_RBAC: Final = "rbac.authorization.k8s.io"
_GUARDED: Final[Mapping[GroupKind, tuple[_Path, ...]]] = {
    GroupKind(_RBAC, "Role"): (("rules",),),
    GroupKind(_RBAC, "RoleBinding"): (("subjects",),),
    GroupKind("", "Secret"): (("type",),),
    GroupKind("", "ServiceAccount"): (("secrets",), ("imagePullSecrets",), ("automountServiceAccountToken",)),
    GroupKind("", "Service"): (("spec", "externalIPs"),),
    GroupKind("", "ResourceQuota"): (("spec",),),
    GroupKind("", "LimitRange"): (("spec",),),
    GroupKind("", "Endpoints"): (("subsets",),),
    GroupKind("discovery.k8s.io", "EndpointSlice"): (("endpoints",), ("ports",)),
}
"""Fields that only a ClusterOverridePolicy changes: a tenant could not write them without a check of its rights."""


def _always_fixed(*, namespaced: bool) -> tuple[_Path, ...]:
    return (*_IDENTITY, _ROLE) if namespaced else _IDENTITY


def fixed_field_of(pointer: str, *, namespaced: bool, kinds: Iterable[GroupKind] = ()) -> str:
    """Return the fixed field that a change at a JSON pointer may change: at it, below it or above it; empty if none.

    `kinds` are those that a namespaced policy names; a pointer above one of their own fields may leave it as it is.
    """
    try:
        parts = tuple(parse_pointer(pointer))
    except JsonPatchError:
        return ""
    for field in _always_fixed(namespaced=namespaced):
        shared = min(len(parts), len(field))
        if parts[:shared] == field[:shared]:
            return _shown(field)
    for kind in kinds if namespaced else ():
        for field in _GUARDED.get(kind, ()):
            if parts[: len(field)] == field:
                return _shown(field)
    return ""


def check_identity(before: Obj, after: Obj, *, namespaced: bool) -> None:
    """CannotApply when a step has changed a fixed field."""
    for field in _always_fixed(namespaced=namespaced):
        if _value(before, field) != _value(after, field):
            raise CannotApply(f"{_shown(field)} must not be changed by an override policy")
    guarded = _GUARDED.get(group_kind_of(before), ()) if namespaced else ()
    for field in guarded:
        if _value(before, field) != _value(after, field):
            raise CannotApply(
                f"{_shown(field)} must not be changed by an OverridePolicy, only by a ClusterOverridePolicy"
            )


def group_kind_of(named: Obj) -> GroupKind:
    """Return the kind of an object or of what selects one; any version of it."""
    group, _, _ = (named.get("apiVersion") or "").rpartition("/")
    return GroupKind(group, named.get("kind") or "")


def _shown(field: _Path) -> str:
    return "/" + "/".join(field)


def _value(obj: Obj, field: _Path) -> object:
    value: object = obj
    for step in field:
        value = value.get(step) if isinstance(value, dict) else None
    return value
