"""How much of what multiplies a policy or an autoscaler may have: each item is compared with every object or cluster.

An object that is over a limit from before may be changed as long as it does not get more of that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import orjson

from karmada.kube.objects.errors import FieldError, too_long, too_many
from karmada.kube.objects.types import Obj

GROUPS: Final = ("policy.karmada.io", "autoscaling.karmada.io")
LIMITS: Final[dict[str, int]] = {
    "resourceSelectors": 1_000,
    "matchLabels": 64,
    "matchExpressions": 64,
    "matchExpressions-in-all": 5_000,
    "values": 1_000,
    "clusterAffinities": 100,
    "overflowAffinities": 100,
    "clusterNames": 10_000,
    "exclude": 10_000,
    "staticWeightList": 1_000,
    "clusterTolerations": 100,
    "dependentOverrides": 100,
    "overrideRules": 1_000,
    "overriders-in-all": 1_000,
    "overriders-bytes": 256 * 1024,
    "placement-bytes": 64 * 1024,
    "metrics": 64,
}
"""Items of a field, or of all fields of that name in one object; or bytes of what is written into an annotation."""
_EXPRESSIONS, _OVERRIDERS = "matchExpressions-in-all", "overriders-in-all"


def set_limits(given: Iterable[str]) -> None:
    """Set limits of this process, each NAME=NUMBER; ValueError for any other."""
    for text in given:
        name, _, number = text.partition("=")
        if name not in LIMITS:
            raise ValueError(f"unknown limit {name!r}: expected one of {', '.join(LIMITS)}")
        if not (number.isascii() and number.isdigit() and 0 < int(number) < 2**31):
            raise ValueError(f"limit {name}: expected a number above 0, not {number!r}")
        LIMITS[name] = int(number)


class _Most(NamedTuple):
    number: int
    path: str


def limit_errors(obj: Obj, old: Obj | None) -> list[FieldError]:
    """Return an error for each limit that an object exceeds, and exceeds by more than it did before."""
    over = {name: most for name, most in _counts(obj).items() if most.number > LIMITS[name]}
    if not over:
        return []
    before = _counts(old) if old is not None else {}
    return [
        too_many(most.path, most.number, LIMITS[name])
        for name, most in over.items()
        if name not in before or most.number > before[name].number
    ]


def size_errors(obj: Obj, old: Obj | None) -> list[FieldError]:
    """Refuse overriders that do not fit into the annotation in which a Work says what was overridden."""
    most, size = LIMITS["overriders-bytes"], _overriders_size(obj)
    if size <= most or (old is not None and size <= _overriders_size(old)):
        return []
    path = "spec.overrideRules" if "overrideRules" in obj["spec"] else "spec.overriders"
    return [too_long(path, most)]


def _overriders_size(policy: Obj) -> int:
    spec = policy.get("spec") or {}
    held = [spec[name] for name in ("overrideRules", "overriders") if name in spec]
    return len(orjson.dumps(held)) if held else 0


def excess(policy: Obj) -> list[FieldError]:
    """Return what makes a stored policy slow to handle: more selectors or terms than a new one could have."""
    spec = policy.get("spec") or {}
    found = (
        ("resourceSelectors", "spec.resourceSelectors", spec),
        ("clusterAffinities", "spec.placement.clusterAffinities", spec.get("placement") or {}),
    )
    numbers = ((name, path, len(holder.get(name) or ())) for name, path, holder in found)
    return [too_many(path, number, LIMITS[name]) for name, path, number in numbers if number > LIMITS[name]]


def _counts(obj: Obj) -> dict[str, _Most]:
    """Return for each limit where an object has most of it; the limits of all fields together come first."""
    found = {_EXPRESSIONS: _Most(0, "spec"), _OVERRIDERS: _Most(0, "spec")}
    for name, path, count in _fields(obj.get("spec"), "spec"):
        if name == "matchExpressions":
            found[_EXPRESSIONS] = _Most(found[_EXPRESSIONS].number + count, "spec (matchExpressions in all)")
        if name == "overriders":
            found[_OVERRIDERS] = _Most(found[_OVERRIDERS].number + count, "spec (overriders in all)")
        elif name in LIMITS and count > found.get(name, _Most(-1, "")).number:
            found[name] = _Most(count, path)
    return found


def _fields(value: Any, path: str) -> Iterator[tuple[str, str, int]]:
    """Yield name, path and number of items of each field below; what overriders write is not looked into."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _fields(item, f"{path}[{index}]")
    elif isinstance(value, dict):
        for name, part in value.items():
            if name == "overriders":
                yield name, f"{path}.{name}", _overriders(part)
            elif isinstance(part, (dict, list)):
                yield name, f"{path}.{name}", len(part)
                if name not in ("matchLabels", "values", "clusterNames", "exclude"):
                    yield from _fields(part, f"{path}.{name}")


def _overriders(overriders: Any) -> int:
    """Return how many there are, the patches of a document each for itself."""
    lists = [items for items in (overriders or {}).values() if isinstance(items, list)]
    patches = [
        item.get(form) or ()
        for item in (overriders or {}).get("fieldOverrider") or ()
        for form in ("json", "yaml")
        if isinstance(item, dict)
    ]
    return sum(map(len, lists)) + sum(map(len, patches))
