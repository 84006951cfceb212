"""Objects of built-in kinds as protobuf messages, by functions compiled from their schemas.

A message becomes a dict from JSON field to the function that returns this field's bytes, tag included. Encoding walks
the object, not the message: of a Pod's dozens of possible fields few are set. So fields are written in the order in
which they stand in the object, which readers of protobuf accept; fields that are absent or null are not written, which
means the same as the empty values that Go writes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from karmada.kube.objects.types import Obj
from karmada.kube.schema.node import Node
from karmada.kube.schema.protowire import (
    BYTES,
    FIXED64,
    SPECIAL,
    VARINT,
    chunk,
    write_ints,
    write_strings,
    write_varint,
)
from karmada.kube.schema.wire import message_of, wire_table

Encoder = Callable[[Any], bytes]
"""A JSON value to the content of its message, or to a field with its tag."""

_SHORT = 256
_LENGTHS = [write_varint(size) for size in range(_SHORT)]
_TRUE, _FALSE = b"\x01", b"\x00"


class Message:
    """The compiled fields of one message; `inlined` are messages whose fields stand in the same JSON object."""

    __slots__ = ("fields", "inlined")

    def __init__(self) -> None:
        self.fields: dict[str, Encoder] = {}
        self.inlined: list[tuple[int, Message]] = []

    def encode(self, obj: Obj) -> bytes:
        field_of = self.fields.get
        out = []
        for name, value in obj.items():
            write = field_of(name)
            if write is not None and value is not None:
                out.append(write(value))
        for number, message in self.inlined:
            content = message.encode(obj)
            if content:
                out.append(chunk(number, content))
        return b"".join(out)


def message_for(node: Node) -> Message | None:
    """Return the compiled message of a struct; None for a kind that has no protobuf form."""
    if node.protobuf is None and message_of(node.definition) in wire_table():
        _compile(node, message_of(node.definition), {})
    message: Message | None = node.protobuf
    return message


def _compile(node: Node, name: str, compiled: dict[tuple[int, str], Message]) -> Message:
    """`compiled` holds what is under way, so that recursive messages (JSON schemas) refer to themselves."""
    if node.protobuf is not None and name == message_of(node.definition):
        known: Message = node.protobuf
        return known
    key = id(node), name
    message = compiled.get(key)
    if message is not None:
        return message
    message = compiled[key] = Message()
    for entry in wire_table().get(name, ()):
        if entry.rule == "i":
            message.inlined.append((entry.number, _compile(node, entry.message, compiled)))
        elif entry.name in node.properties:
            message.fields[entry.name] = _field(node.properties[entry.name], entry.number, entry.rule, compiled)
    if name == message_of(node.definition):
        node.protobuf = message
    return message


def _field(node: Node, number: int, rule: str, compiled: dict[tuple[int, str], Message]) -> Encoder:
    if node.values is not None:
        return _map(number, _field(node.values, 2, "w" if node.values.items is not None else "", compiled), node.values)
    if rule == "w":
        return _delimited(number, write_strings)
    if node.items is not None:
        return _list(_field(node.items, number, "", compiled), node.items)
    if node.alternative is not None:
        return _delimited(number, _union(node.special, _compile(node.alternative, _name(node.alternative), compiled)))
    if node.special:
        return _delimited(number, _SPECIAL[node.special])
    if node.type == "object":
        return _delimited(number, _compile(node, _name(node), compiled).encode)
    return _scalar(node.type, number)


def _name(node: Node) -> str:
    return message_of(node.definition)


@lru_cache(maxsize=256)
def _prefixes(number: int) -> list[bytes]:
    """Tag and length of a length-delimited field, for every short length."""
    tag = write_varint(number << 3 | BYTES)
    return [tag + size for size in _LENGTHS]


def _delimited(number: int, encode: Encoder) -> Encoder:
    prefixes = _prefixes(number)
    tag = write_varint(number << 3 | BYTES)

    def write(value: Any) -> bytes:
        content = encode(value)
        size = len(content)
        return (prefixes[size] if size < _SHORT else tag + write_varint(size)) + content

    return write


def _scalar(kind: str, number: int) -> Encoder:
    if kind == "integer":
        tag = write_varint(number << 3 | VARINT)
        small = [tag + bytes([value]) for value in range(128)]
        return lambda value: small[value] if 0 <= value < 128 else tag + write_varint(int(value))
    if kind == "boolean":
        yes, no = (write_varint(number << 3 | VARINT) + value for value in (_TRUE, _FALSE))
        return lambda value: yes if value else no
    if kind == "number":
        tag = write_varint(number << 3 | FIXED64)
        return lambda value: tag + struct.pack("<d", value)
    return _text(number)


def _text(number: int) -> Encoder:
    """As `_delimited`, without its inner call: most fields are text."""
    prefixes = _prefixes(number)
    tag = write_varint(number << 3 | BYTES)

    def write(value: str) -> bytes:
        content = value.encode()
        size = len(content)
        return (prefixes[size] if size < _SHORT else tag + write_varint(size)) + content

    return write


def _list(item: Encoder, node: Node) -> Encoder:
    if node.special == "json":
        return lambda values: b"".join([item(value) for value in values])
    return lambda values: b"".join([item(value) for value in values if value is not None])


def _map(number: int, value_field: Encoder, values: Node) -> Encoder:
    prefixes, keys = _prefixes(number), _prefixes(1)
    tag, key_tag = prefixes[0][:-1], keys[0][:-1]
    keeps_null = values.special == "json"

    def write(entries: dict[str, Any]) -> bytes:
        out: list[bytes] = []
        for key, value in entries.items():
            if value is None and not keeps_null:
                continue
            name, content = key.encode(), value_field(value)
            size = len(name)
            head = (keys[size] if size < _SHORT else key_tag + write_varint(size)) + name
            size = len(head) + len(content)
            out += (prefixes[size] if size < _SHORT else tag + write_varint(size), head, content)
        return b"".join(out)

    return write


def _union(special: str, schema: Message) -> Encoder:
    """Return the codec of a JSON schema, or else a boolean, a list of schemas, or a list of strings."""

    def write(value: Any) -> bytes:
        if isinstance(value, dict):
            content = schema.encode(value)
            return write_ints(1) + chunk(2, content) if special == "schema-or-bool" else chunk(1, content)
        if isinstance(value, bool):
            return write_ints(int(value))
        return b"".join(chunk(2, item.encode() if isinstance(item, str) else schema.encode(item)) for item in value)

    return write


_SPECIAL: dict[str, Encoder] = {
    name: lru_cache(maxsize=4096)(writer) if name in ("time", "micro-time", "quantity", "int-or-string") else writer
    for name, (_, writer) in SPECIAL.items()
}
"""Encoded quantities, ports and moments: the same few come again and again."""
