"""Where workloads keep their containers, and how one value of an object is changed without touching the object.

Kinds are known by their name alone, whatever their group. A changed object shares everything with the original but the
dicts on the way to the change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from karmada.kube.objects.types import Obj
from karmada.kube.patch.gotext import go_type, go_value
from karmada.overrides.errors import CannotApply

Change = Callable[[Obj], Obj]
"""Return the changed object, or the same one if there is nothing to change."""

_IN_TEMPLATE: Final = ("spec", "template", "spec", "containers")
CONTAINERS: Final[dict[str, tuple[str, ...]]] = {
    "Pod": ("spec", "containers"),
    "ReplicaSet": _IN_TEMPLATE,
    "Deployment": _IN_TEMPLATE,
    "DaemonSet": _IN_TEMPLATE,
    "StatefulSet": _IN_TEMPLATE,
    "Job": _IN_TEMPLATE,
}


def unchanged(obj: Obj) -> Obj:
    """Return the change of an overrider that does nothing."""
    return obj


def replaced(obj: Obj, path: Sequence[str], value: Any) -> Obj:
    """Return the object with another value at a path; dicts that are missing on the way are made."""
    key = path[0]
    below = value if len(path) == 1 else replaced(obj.get(key) or {}, path[1:], value)
    return {**obj, key: below}


def nested_list(obj: Obj, path: Sequence[str]) -> list[Any] | None:
    """Return the list at a path, None when it or something on the way is absent; CannotApply for another type."""
    value: Any = obj
    for depth, key in enumerate(path):
        if not isinstance(value, dict):
            raise _wrong(path[:depth], value, "map[string]interface {}")
        value = value.get(key)
        if value is None:
            return None
    if not isinstance(value, list):
        raise _wrong(path, value, "[]interface {}")
    return value


def _wrong(path: Sequence[str], value: Any, expected: str) -> CannotApply:
    place = "." + ".".join(path)
    return CannotApply(
        f"{place} accessor error: {go_value(value)} is of the type {go_type(value)}, expected {expected}"
    )
