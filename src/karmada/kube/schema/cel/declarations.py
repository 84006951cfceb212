"""What an expression sees of a schema: the type of each place, and objects with the values that type promises.

JSON has no timestamps, durations or bytes, and writes 1 for the double 1.0; `converter` makes a function that puts such
values right. Most schemas need none of it, so it answers None for them and the object is bound as it is.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from typing import Any

from karmada.kube.schema.cel import types as t
from karmada.kube.schema.cel.syntax import RESERVED
from karmada.kube.schema.cel.types import FieldType, Type
from karmada.kube.schema.cel.values import CelError, MapList, SetList, parse_duration, parse_timestamp
from karmada.kube.schema.node import Node

_KEYWORDS = RESERVED | {"true", "false", "null", "in"}
_NAME = re.compile(r"[a-zA-Z_./-][a-zA-Z0-9_./-]*")
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_ESCAPED = re.compile(r"__|[./-]")
_SCALARS = {"integer": t.INT, "number": t.DOUBLE, "boolean": t.BOOL}
_STRINGS = {
    "byte": t.BYTES,
    "date": t.TIMESTAMP,
    "date-time": t.TIMESTAMP,
    "datetime": t.TIMESTAMP,
    "duration": t.DURATION,
}
_METADATA = t.object_type({"name": FieldType("name", t.STRING), "generateName": FieldType("generateName", t.STRING)})


def escape(name: str) -> str | None:
    """Return a property's name as an identifier; None when it cannot be one."""
    if name in _KEYWORDS:
        return f"__{name}__"
    if not _NAME.fullmatch(name):
        return None
    return _ESCAPED.sub(lambda match: _ESCAPES[match[0]], name)


def declare(node: Node, root: bool = False) -> Type | None:
    """Return the type of a place; None when expressions cannot see it (nothing is declared there)."""
    if node.special == "int-or-string":
        return t.DYN
    if node.type == "string":
        return _STRINGS.get(node.format, t.STRING)
    if node.type == "array":
        item = declare(node.items) if node.items is not None else None
        return None if item is None else t.list_of(item)
    if node.type != "object":
        return _SCALARS.get(node.type)
    if node.values is not None:
        value = declare(node.values)
        return None if value is None else t.map_of(t.STRING, value)
    return t.object_type(_fields(node, root or node.embedded))


def _fields(node: Node, identity: bool) -> dict[str, FieldType]:
    fields: dict[str, FieldType] = {}
    for name, child in node.properties.items():
        if identity and name == "metadata":
            fields[name] = FieldType(name, _METADATA)
            continue
        kind, escaped = declare(child), escape(name)
        if kind is not None and escaped is not None:
            fields[escaped] = FieldType(name, kind)
    return fields


Convert = Callable[[Any], Any]


def converter(node: Node) -> Convert | None:
    """Return a function from a JSON value to what the place's type promises; None: they are the same."""
    if node.checks is None or node.special:
        return None
    if node.type == "object":
        return _object(node)
    if node.type == "array":
        return _array(node)
    if node.type == "number":
        return lambda value: float(value) if type(value) is int else value
    if node.type == "string" and node.format in _STRINGS:
        return _STRING_VALUES[node.format]
    return None


def _object(node: Node) -> Convert | None:
    fields = {name: fn for name, child in node.properties.items() if (fn := converter(child)) is not None}
    other = converter(node.values) if node.values is not None else None
    if not fields and other is None:
        return None

    def convert(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        made = {}
        for key, item in value.items():
            fn = fields.get(key, other)
            made[key] = item if fn is None or item is None else fn(item)
        return made

    return convert


def _array(node: Node) -> Convert | None:
    each = converter(node.items) if node.items is not None else None
    keys, kind = node.list_keys, node.list_type
    if each is None and kind == "atomic":
        return None

    def convert(value: Any) -> Any:
        if type(value) is not list:
            return value
        items = value if each is None else [each(item) for item in value]
        if kind == "map":
            return MapList(items, keys)
        return SetList(items) if kind == "set" else items

    return convert


def _bytes(value: Any) -> Any:
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise CelError("field is not valid base64") from None


def _date(value: Any) -> Any:
    return parse_timestamp(f"{value}T00:00:00Z")


_STRING_VALUES: dict[str, Convert] = {
    "byte": _bytes,
    "date": _date,
    "date-time": parse_timestamp,
    "datetime": parse_timestamp,
    "duration": parse_duration,
}
