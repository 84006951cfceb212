"""Predicates: which changes a controller cares about. Each takes (old, new): no old is an add, no new a delete."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from karmada.kube.objects.types import Obj
from karmada.kube.runtime.event_filter import Predicate as Predicate
from karmada.kube.runtime.event_filter import matching as matching


def always(old: Obj | None, new: Obj | None) -> bool:  # noqa: ARG001 - the shape of a predicate
    return True


def never(old: Obj | None, new: Obj | None) -> bool:  # noqa: ARG001
    return False


def changes(look: Callable[[Obj], Any]) -> Predicate:
    """Select adds, deletes, and updates after which `look` gives something else."""

    def changed(old: Obj | None, new: Obj | None) -> bool:
        return old is None or new is None or look(old) != look(new)

    return changed


def _metadata_changed(*fields: str) -> Predicate:
    """Select adds, deletes, and updates of one of these; one that is empty is as good as none."""

    def changed(old: Obj | None, new: Obj | None) -> bool:
        if old is None or new is None:
            return True
        before, now = old["metadata"], new["metadata"]
        for field in fields:  # noqa: SIM110 - runs many times for each change: a generator costs more
            if (before.get(field) or None) != (now.get(field) or None):
                return True
        return False

    return changed


def field_changed(*path: str) -> Predicate:
    """`field_changed("spec", "clusters")`: the value at that path differs."""

    def look(obj: Obj) -> Any:
        value: Any = obj
        for step in path:
            value = value.get(step) if isinstance(value, dict) else None
        return value

    return changes(look)


generation_changed = _metadata_changed("generation")
labels_changed = _metadata_changed("labels")
finalizers_changed = _metadata_changed("finalizers")
deletion_changed = _metadata_changed("deletionTimestamp")
spec_changed = field_changed("spec")
status_changed = field_changed("status")


def added(old: Obj | None, new: Obj | None) -> bool:
    return old is None and new is not None


def updated(old: Obj | None, new: Obj | None) -> bool:
    return old is not None and new is not None


def deleted(old: Obj | None, new: Obj | None) -> bool:
    return old is not None and new is None


def any_of(*predicates: Predicate) -> Predicate:
    def holds(old: Obj | None, new: Obj | None) -> bool:
        for predicate in predicates:  # noqa: SIM110
            if predicate(old, new):
                return True
        return False

    return holds


def all_of(*predicates: Predicate) -> Predicate:
    def hold(old: Obj | None, new: Obj | None) -> bool:
        for predicate in predicates:  # noqa: SIM110
            if not predicate(old, new):
                return False
        return True

    return hold


def not_(predicate: Predicate) -> Predicate:
    return lambda old, new: not predicate(old, new)


generation_or_deletion_changed = any_of(_metadata_changed("generation", "deletionTimestamp"), spec_changed)
"""The spec is compared too: a store that went back in time counts the same generations again."""
