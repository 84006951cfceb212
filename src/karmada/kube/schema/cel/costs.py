"""What a call costs, in steps of the budget, computed from its arguments before it runs.

A step is about a microsecond of work: one item of a list, 64 characters of text. Most functions go once through what
they are given (`total`); those that can do more, or whose result can be larger than what they are given, have a cost
of their own here. Functions that take longer than a step however small their arguments are (they parse an address or
a time, or look a time zone up) have a `base`. Nothing that an expression calls may take longer than its cost says.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from karmada.kube.schema.cel.patterns import is_compiled
from karmada.kube.schema.cel.values import SCALARS

_COMPILE = 50
_LIGHT = frozenset({int, bool, float, type(None)})


_ZONE = 40
"""A time zone is looked up in files; an unknown one is not remembered."""
_BASE = {
    "format": 17, "containsCIDR": 12, "containsIP": 9, "cidr": 8, "isCIDR": 8, "ip.isCanonical": 7, "find": 5,
    "findAll": 5, "duration": 5, "masked": 5, "ip": 5, "isIP": 5, "matches": 4, "semver": 3, "isSemver": 3, "string": 3,
    "url": 3, "isURL": 3, "timestamp": 3, "isGlobalUnicast": 2, "compareTo": 2, "isLessThan": 2, "isGreaterThan": 2,
    "quantity": 2, "isQuantity": 2, "validate": 2, "int": 2, "uint": 2, "double": 2, "getQuery": 2, "split": 2,
    "sets.equivalent": 2, "sets.contains": 2, "sets.intersects": 2, "strings.quote": 2, "contains": 1,
}  # fmt: skip


def base(name: str, parameters: Sequence[str]) -> int:
    """Return the steps that a function takes for any arguments of these types, as measured."""
    if name.startswith("get") and len(parameters) == 2:
        return _ZONE
    if name == "_+_":
        return 1 if parameters[0] in ("string", "bytes", "list") else 0
    return _BASE.get(name, 0)


def weight(value: Any) -> int:
    """Return how much work it is to go through a value once."""
    if type(value) in _LIGHT:
        return 0
    if isinstance(value, str | bytes):
        return len(value) >> 6
    if isinstance(value, list):
        return len(value) + sum(weight(item) for item in value)
    if isinstance(value, dict):
        return len(value) + sum(weight(item) for item in value.values())
    held: int = getattr(value, "weight", 0)
    return held


def total(*values: Any) -> int:
    return sum(map(weight, values))


def both_lists(a: list[Any], b: list[Any]) -> int:
    """Scalars are looked up, but every object or list of one side is compared with all items of the other."""
    return total(a, b) + len(b) * _compound(a) + len(a) * _compound(b)


def _compound(items: list[Any]) -> int:
    return sum(type(item) not in SCALARS for item in items)


def replacing(text: str, old: str, new: str, limit: int = -1) -> int:
    times = text.count(old)
    if limit >= 0:
        times = min(times, limit)
    return total(text, old, new) + (times * len(new) >> 6) + (times >> 4)


def joining(items: list[Any], separator: str = "") -> int:
    return total(items) + (len(items) * len(separator) >> 6)


def splitting(text: str, separator: str, limit: int = -1) -> int:
    parts = text.count(separator) + 1
    return total(text, separator) + (parts if limit < 0 else min(parts, limit))


_PRECISION = re.compile(r"%\.(\d{1,9})")


def formatting(template: str, args: list[Any]) -> int:
    """Return the cost of a precision: a step for each digit; more than nine figures of it are too many already."""
    return total(template, args) + sum(int(digits) for digits in _PRECISION.findall(template))


def matching(text: str, pattern: str) -> int:
    """Return the cost of a search, which may go through the text once for every place of the compiled pattern."""
    search = (1 + (len(text) >> 6)) * (1 + (len(pattern) >> 4))
    return search if is_compiled(pattern) else search + _COMPILE + len(pattern)


def finding(text: str, pattern: str, _limit: int = -1) -> int:
    """As many matches as there are characters, at worst."""
    return matching(text, pattern) + (len(text) >> 4)
