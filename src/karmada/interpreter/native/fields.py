"""Reading fields of an expected type: absent ones read as empty, ones of another type are an error.

An API server has checked what it stores, but a status may also come from a script that makes up its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from karmada.interpreter.operations import InterpreterError
from karmada.kube.objects.types import Obj

_EMPTY: Obj = {}
_NONE: list[Obj] = []


def number(fields: Obj, name: str) -> int:
    value = fields.get(name)
    if value.__class__ is int:
        return value
    if value is None:
        return 0
    raise _wrong(name, "a whole number", value)


def numbers(fields: Obj, names: Iterable[str]) -> list[int]:
    """Return several whole numbers, as `number` does each."""
    values = ((name, fields.get(name, 0)) for name in names)
    return [value if value.__class__ is int else number(fields, name) for name, value in values]


def section(fields: Obj, name: str) -> Obj:
    """Return an object inside an object; read-only."""
    value = fields.get(name)
    if value.__class__ is dict:
        return value
    if value is None:
        return _EMPTY
    raise _wrong(name, "an object", value)


def entries(fields: Obj, name: str) -> list[Obj]:
    """Return a list of objects; read-only."""
    value = fields.get(name)
    if value is None:
        return _NONE
    if value.__class__ is not list:
        raise _wrong(name, "a list", value)
    for entry in value:
        if entry.__class__ is not dict:
            raise _wrong(name, "a list of objects", entry)
    return value


def text(fields: Obj, name: str) -> str:
    value = fields.get(name)
    if value.__class__ is str:
        return value
    if value is None:
        return ""
    raise _wrong(name, "text", value)


def _wrong(name: str, expected: str, value: Any) -> InterpreterError:
    return InterpreterError(f"{name}: expected {expected}, got {value!r}")
