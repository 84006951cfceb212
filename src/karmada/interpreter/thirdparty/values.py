"""Values inside objects of third parties: where they are, as numbers, and without what is empty.

Statuses come from operators that are not ours, so numbers may be written as text, and fields may be null.
"""

from __future__ import annotations

import math
import re
from typing import Any

from karmada.interpreter.native.fields import entries, section
from karmada.interpreter.operations import InterpreterError
from karmada.kube.objects.quantity import Quantity
from karmada.kube.objects.types import Obj

Number = int | float

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)


def at(obj: Obj, *path: str) -> Any:
    """Return the value at a path, None when it or something on the way to it is missing."""
    for field in path[:-1]:
        obj = section(obj, field)
    return obj.get(path[-1])


def objects_at(obj: Obj, *path: str) -> list[Obj]:
    """Return the list of objects at a path, empty when it is missing."""
    for field in path[:-1]:
        obj = section(obj, field)
    return entries(obj, path[-1])


def replaced(obj: Obj, path: tuple[str, ...], value: Any) -> Obj:
    """Return the object with a value at a path; it shares everything else."""
    if len(path) == 1:
        return {**obj, path[0]: value}
    return {**obj, path[0]: replaced(section(obj, path[0]), path[1:], value)}


def amount(fields: Obj, name: str) -> Number:
    """Return a number, 0 when it is missing."""
    value = fields.get(name)
    return 0 if value is None else required_number(value, name)


def required_number(value: Any, name: str) -> Number:
    if value.__class__ is int or value.__class__ is float:
        return whole(value)
    raise InterpreterError(f"{name}: expected a number, got {value!r}")


def numeric(value: Any) -> Number | None:
    """Return a number, also one written as text; None for everything else."""
    if isinstance(value, str):
        found = float(value) if _NUMBER.fullmatch(value.strip()) else math.inf
        return whole(found) if math.isfinite(found) else None
    return whole(value) if value.__class__ in (int, float) else None


def count_or(default: int, value: Any) -> int:
    """Return a number, cut to a whole one; the default when it is none."""
    found = numeric(value)
    return default if found is None else int(found)


def whole(value: Number) -> Number:
    """Return a number without a fraction as int, so that it is written without a point."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def quantity(value: Any, name: str) -> Quantity:
    """Return an amount that is not negative, 0 when it is missing."""
    try:
        found = Quantity.parse(0 if value is None else value)
    except (TypeError, ValueError) as error:
        raise InterpreterError(f"{name}: {value!r}: {error}") from None
    if found.nano < 0:
        raise InterpreterError(f"{name}: {value} is negative")
    return found


def dense(value: Any) -> Any:
    """Without nulls and empty objects and lists, which no result has."""
    if isinstance(value, dict):
        return {key: dense(item) for key, item in value.items() if not _is_empty(item)}
    if isinstance(value, list):
        return [dense(item) for item in value if not _is_empty(item)]
    return value


def significant(value: Any) -> Any:
    """Without what says nothing: nulls, zeros, empty texts, "0s", and whatever has nothing else inside."""
    if isinstance(value, dict):
        fields = {key: significant(item) for key, item in value.items()}
        return {key: item for key, item in fields.items() if not _says_nothing(item)}
    if isinstance(value, list):
        return [item for item in map(significant, value) if not _says_nothing(item)]
    return value


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, dict | list) and not value)


def _says_nothing(value: Any) -> bool:
    return _is_empty(value) or (value == 0 and value is not False) or value in ("", "0s")
