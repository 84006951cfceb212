"""--sort-by: objects in the order of one of their fields.

Values are compared as what they are: numbers as numbers, quantities as quantities, text with its digits as numbers.
What lacks the field comes first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cmp_to_key
from typing import Any, TypeVar

from karmada.cli.targeting import connect

T = TypeVar("T")
_DIGITS = re.compile(r"([0-9]+)")


def sorted_by(path: str, items: Sequence[T], obj: Callable[[T], Any]) -> list[T]:
    """Return the items in the order of a field of their objects; Failure for a path that leads nowhere."""
    from karmada.kube.objects.jsonpath import JSONPathError
    from karmada.kube.objects.jsonpath_template import parse, relaxed

    try:
        template = parse(relaxed(path))
        found = [(template.find(obj(item)), item) for item in items]
    except JSONPathError as error:
        raise connect.failure(f"error parsing jsonpath {path}, {error}") from error
    if items and not any(values for values, _ in found):
        raise connect.failure(f'couldn\'t find any field with path "{template.text}" in the list of objects')
    by_value = cmp_to_key(_compare)
    try:
        found.sort(key=lambda pair: by_value(pair[0][0] if pair[0] else None))
        return [item for _, item in found]
    except TypeError:
        raise connect.failure(f"unsortable type: the values at {template.text} cannot be compared") from None


def _compare(one: Any, other: Any) -> int:
    if one is None or other is None:
        return (one is not None) - (other is not None)
    if isinstance(one, str) and isinstance(other, str):
        return _compare_texts(one, other)
    if isinstance(one, dict | list) or isinstance(other, dict | list) or isinstance(one, str) != isinstance(other, str):
        raise TypeError
    return int(one > other) - int(one < other)


def _compare_texts(one: str, other: str) -> int:
    from karmada.kube.objects.quantity import Quantity

    try:
        first, second = Quantity.parse(one), Quantity.parse(other)
        return int(first > second) - int(first < second)
    except ValueError:
        left, right = _natural(one), _natural(other)
        return int(left > right) - int(left < right)


def _natural(text: str) -> list[tuple[bool, int, str]]:
    return [(not part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in _DIGITS.split(text) if part]
