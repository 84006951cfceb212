"""Which changes of objects concern a handler, said as data.

Twenty controllers watch Works, and most changes concern two or three of them. So an informer does not call each handler
to ask: one pass over their filters (`concerned`) finds those to call. What several filters look at, a field or a value
that a function gives an object, is looked at once for each change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from karmada.kube.objects.types import Obj
from karmada.kube.runtime.logging import get_logger

log = get_logger("informer")

Handler: TypeAlias = Callable[[Obj | None, Obj | None], None]
"""Takes the old and the new object: one that was added has no old, one that was deleted no new."""
EventType: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED"]
Predicate: TypeAlias = Callable[[Obj | None, Obj | None], bool]
"""Decides about a change of which the data of a filter says too little."""
ALL: Final[tuple[EventType, ...]] = ("ADDED", "MODIFIED", "DELETED")
Values: TypeAlias = Callable[[Obj], Iterable[str]]
"""Gives an object values by which it is found, as an index does."""
SPEC_OR_DELETION: Final = ("metadata.generation", "metadata.deletionTimestamp", "spec")
"""The spec is compared, too: a store that went back in time counts the same generations again."""


class EventFilter(NamedTuple):
    on: tuple[EventType, ...] = ALL
    changed: tuple[str, ...] = ()
    """Modifications count only if one of these fields differs, each a path with dots; none: all count."""
    having: tuple[Values, str] | None = None
    """Objects count only if this function gave them this value before the change, or does so after it."""


EVERYTHING: Final = EventFilter()


class Subscription(NamedTuple):
    """A handler, and what concerns it."""

    handler: Handler
    filter: EventFilter


def concerned(subscriptions: Iterable[Subscription], old: Obj | None, new: Obj | None) -> list[Handler]:
    """Return the handlers that a change concerns, in their order."""
    event = "ADDED" if old is None else "DELETED" if new is None else "MODIFIED"
    values: dict[Values, set[str] | None] = {}
    differing: dict[str, bool] = {}
    found: list[Handler] = []
    for handler, wanted in subscriptions:
        if event not in wanted.on:
            continue
        if wanted.having is not None:
            function, value = wanted.having
            if function not in values:
                values[function] = _values(function, old, new)
            known = values[function]
            if known is not None and value not in known:
                continue
        if old is not None and new is not None and wanted.changed:
            for path in wanted.changed:
                if path not in differing:
                    differing[path] = _differs(old, new, path)
                if differing[path]:
                    break
            else:
                continue
        found.append(handler)
    return found


def _values(function: Values, old: Obj | None, new: Obj | None) -> set[str] | None:
    """Return the values that a function gives to either; None if it fails: then nobody is passed over."""
    try:
        return {each for obj in (old, new) if obj is not None for each in function(obj)}
    except Exception as error:
        log.exception("Values of an object cannot be read", error, function=function.__qualname__)
        return None


def matching(condition: Callable[[Obj], bool]) -> Predicate:
    """Return a predicate: the old or the new object fulfils the condition."""
    return lambda old, new: (old is not None and condition(old)) or (new is not None and condition(new))


def _differs(old: Any, new: Any, path: str) -> bool:
    """Return whether two states differ in a field; of the metadata, an empty field is as good as none."""
    steps = path.split(".")
    for step in steps:
        old = old.get(step) if isinstance(old, dict) else None
        new = new.get(step) if isinstance(new, dict) else None
        if old is new:
            return False
    return bool(old != new) and not (steps[0] == "metadata" and not old and not new)
