"""Which policy, rule and overrider made which change of an object.

The engine itself runs, and after every overrider the object is compared with what it was; as unchanged parts are shared
that costs little. A change is identified by its place in the final object: where a later overrider puts elements into a
list or takes some out, the places of earlier changes move along.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from karmada.kube.objects.types import Obj
from karmada.kube.patch.jsonpatch import diff, parse_pointer
from karmada.overrides.compiled import Rule, Step
from karmada.overrides.engine import Applied, Overrides

Place = tuple[str | int, ...]
"""Keys and list positions, from the outermost in."""


class Change(NamedTuple):
    """`operation` is add, remove or replace; `before` is None for what was not there, `after` for what is gone.

    `lost`: a later overrider took away what was changed, or the part of the object it was in; `place` is what is left
    of the way there.
    """

    place: Place
    operation: str
    before: Any
    after: Any
    rule: Rule
    step: str
    lost: bool = False

    def __str__(self) -> str:
        """Return the policy, and the overrider's field in it."""
        policy = self.rule.policy
        name = f"{policy.namespace}/{policy.name}" if policy.namespace else policy.name
        return f"{policy.kind} {name}, {self.rule.place(self.step)}"


class Explained(NamedTuple):
    applied: Applied
    changes: list[Change]


def explain(overrides: Overrides, manifest: Obj, cluster: str) -> Explained:
    """Return what a cluster gets of an object, and every change on the way there, in order.

    Raises what `apply` raises.
    """
    changes: list[Change] = []

    def observe(rule: Rule, step: Step, before: Obj, after: Obj) -> None:
        made = _changes(rule, step.field, before, after)
        for change in made:
            changes[:] = [_moved(earlier, change) for earlier in changes]
        changes.extend(made)

    return Explained(overrides.apply(manifest, cluster, observe), changes)


def _changes(rule: Rule, step: str, before: Obj, after: Obj) -> list[Change]:
    if before is after:
        return []
    return [
        Change(
            _place(before, after, op["path"], op["op"]),
            op["op"],
            _at(before, parse_pointer(op["path"])) if op["op"] != "add" else None,
            op.get("value"),
            rule,
            step,
        )
        for op in diff(before, after)
    ]


def _place(before: Obj, after: Obj, pointer: str, operation: str) -> Place:
    """Parts are positions where the object has a list."""
    value: Any = before if operation == "remove" else after
    place: list[str | int] = []
    for part in parse_pointer(pointer):
        key: str | int = int(part) if isinstance(value, list) else part
        place.append(key)
        value = _below(value, key)
    return tuple(place)


def _at(value: Any, parts: Iterable[str]) -> Any:
    for part in parts:
        value = _below(value, int(part) if isinstance(value, list) else part)
    return value


def _below(value: Any, key: str | int) -> Any:
    if isinstance(value, dict):
        return value.get(str(key))
    return value[key] if isinstance(value, list) and isinstance(key, int) and key < len(value) else None


def _moved(earlier: Change, later: Change) -> Change:
    """Return an earlier change after a later one: at another position of a list, or lost with what it was in."""
    place, changed = earlier.place, later.place
    depth = len(changed) - 1
    if earlier.lost or depth < 0 or len(place) <= depth or place[:depth] != changed[:depth]:
        return earlier
    if earlier.operation == "remove" and len(place) == depth + 1:
        return earlier
    mine, its = place[depth], changed[depth]
    if mine == its and later.operation == "remove":
        return earlier._replace(place=place[:depth], lost=True)
    if not isinstance(mine, int) or not isinstance(its, int) or later.operation == "replace":
        return earlier
    shift = {"add": 1 if mine >= its else 0, "remove": -1 if mine > its else 0}[later.operation]
    return earlier._replace(place=(*place[:depth], mine + shift, *place[depth + 1 :]))
