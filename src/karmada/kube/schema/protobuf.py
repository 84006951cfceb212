"""Protobuf bodies of built-in kinds, to and from JSON objects.

A body is four magic bytes and an envelope with apiVersion, kind and the object's own message. Which message a kind has
follows from its definition's name; field numbers and empty-value rules come from the table of schema.wire, all types
from the compiled schema. To decode, each message becomes a Codec, a dict from wire tag to what to do, built when first
needed; schema.protobuf_encoder has the other direction. Unknown tags are skipped, so newer clients are understood as
far as this server knows their fields.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import orjson

from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj
from karmada.kube.schema import protowire as wire
from karmada.kube.schema.builtin import DELETE_OPTIONS, Definitions
from karmada.kube.schema.node import Node
from karmada.kube.schema.protobuf_encoder import message_for
from karmada.kube.schema.protowire import Reader, chunk, read_scalar, read_varint, write_varint
from karmada.kube.schema.walk import DecodeError
from karmada.kube.schema.wire import message_of, wire_table

MAGIC = b"k8s\x00"
_NO_ENCODING = chunk(3, b"") + chunk(4, b"")
"""The empty contentEncoding and contentType with which an envelope ends."""

_STRING, _MESSAGE, _CALL, _MAP, _INLINE, _PACKED, _SCALAR = range(7)
"""How a field is read: text, a message, by a function, an entry of a map, a message whose fields are the parent's,
several scalars in one chunk, one scalar. All but the last are length-delimited."""


class UnknownMessage(DecodeError):
    """A kind without a known protobuf form; JSON works for it."""


def decode(body: bytes, defs: Definitions, expected: GVK | None = None) -> tuple[str, str, Obj]:
    """apiVersion, kind and object of a protobuf body; `expected` stands in where the body does not say.

    Raises DecodeError for a body that is broken or of a kind that is not known.
    """
    try:
        api_version, kind, raw = _open_envelope(body)
        gvk = GVK.parse(api_version, kind) if api_version or kind else expected
        if gvk is None:
            raise DecodeError("Object 'Kind' is missing in the body")
        obj = _decode(_codec(defs, gvk), raw, 0, len(raw))
    except (IndexError, struct.error):
        raise DecodeError(wire.EOF) from None
    except UnicodeDecodeError:
        raise DecodeError("proto: invalid UTF-8 string") from None
    except orjson.JSONDecodeError as error:
        raise DecodeError(str(error)) from None
    except RecursionError:
        raise DecodeError("exceeded max depth") from None
    return gvk.api_version, gvk.kind, {"apiVersion": gvk.api_version, "kind": gvk.kind, **obj}


def encode(api_version: str, kind: str, obj: Obj, defs: Definitions) -> bytes:
    """Return a protobuf body with its envelope; raises UnknownMessage for a kind without a protobuf form."""
    message = message_for(defs.node(_definition(defs, GVK.parse(api_version, kind))))
    assert message is not None, "checked by _definition"
    return envelope(api_version, kind, message.encode(obj))


def envelope(api_version: str, kind: str, content: bytes) -> bytes:
    """Return a body of an encoded message."""
    return b"".join((_type_meta(api_version, kind), write_varint(len(content)), content, _NO_ENCODING))


@lru_cache(maxsize=1024)
def _type_meta(api_version: str, kind: str) -> bytes:
    """Return what stands before the length of the content."""
    type_meta = chunk(1, api_version.encode()) + chunk(2, kind.encode())
    return MAGIC + chunk(1, type_meta) + write_varint(2 << 3 | wire.BYTES)


def _open_envelope(body: bytes) -> tuple[str, str, bytes]:
    if body[:4] != MAGIC:
        raise DecodeError("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    envelope = dict(wire.chunks(body, 4))
    type_meta = dict(wire.chunks(envelope.get(1, b"")))
    return type_meta.get(1, b"").decode(), type_meta.get(2, b"").decode(), envelope.get(2, b"")


class Field(NamedTuple):
    """One field of a message, compiled."""

    number: int
    name: str
    op: int
    sub: Any = None
    """The Codec of a message or of a map's entries, the Reader of a call, the kind of a scalar."""
    omit: bool = False
    repeated: bool = False


class Codec:
    """One message: its fields, and what to do for each wire tag."""

    __slots__ = ("by_tag", "fields")

    def __init__(self) -> None:
        self.fields: list[Field] = []
        self.by_tag: dict[int, tuple[int, str, Any, bool, bool]] = {}

    def add(self, field: Field) -> None:
        self.fields.append(field)
        number, name, op, sub, omit, repeated = field
        kind = wire.BYTES if op != _SCALAR else wire.FIXED64 if sub == "double" else wire.VARINT
        self.by_tag[number << 3 | kind] = (op, name, sub, omit, repeated)
        if op == _SCALAR and repeated:
            self.by_tag[number << 3 | wire.BYTES] = (_PACKED, name, sub, omit, repeated)


_codecs: WeakKeyDictionary[Definitions, dict[str, Codec]] = WeakKeyDictionary()
_SCALARS = {"integer": "int", "number": "double", "boolean": "bool"}


def _codec(defs: Definitions, gvk: GVK) -> Codec:
    definition = _definition(defs, gvk)
    return _message(defs, defs.node(definition), message_of(definition))


def _definition(defs: Definitions, gvk: GVK) -> str:
    definition = DELETE_OPTIONS if gvk.kind == "DeleteOptions" else defs.kinds().get(gvk)
    if definition is None:
        raise UnknownMessage(f'no kind "{gvk.kind}" is registered for version "{gvk.api_version}"')
    if message_of(definition) not in wire_table():
        raise UnknownMessage(f'kind "{gvk.kind}" of version "{gvk.api_version}" has no protobuf form here')
    return definition


def _message(defs: Definitions, node: Node, message: str) -> Codec:
    """Return the codec of a message whose JSON fields stand in `node`."""
    codecs = _codecs.setdefault(defs, {})
    key = f"{node.definition}/{message}"
    codec = codecs.get(key)
    if codec is None:
        codec = codecs[key] = Codec()
        for entry in wire_table().get(message, ()):
            if entry.rule == "i":
                codec.add(Field(entry.number, entry.name, _INLINE, _message(defs, node, entry.message)))
            elif entry.name in node.properties:
                codec.add(_field(defs, node.properties[entry.name], entry.name, entry.number, entry.rule))
    return codec


def _field(defs: Definitions, node: Node, name: str, number: int, rule: str) -> Field:
    field = Field(number, name, _STRING, omit=rule == "o")
    if node.values is not None:
        entry = Codec()
        entry.add(Field(1, "key", _STRING))
        entry.add(_field(defs, node.values, "value", 2, "w" if node.values.items is not None else ""))
        return field._replace(op=_MAP, sub=entry)
    if rule == "w":
        return field._replace(op=_CALL, sub=wire.read_strings)
    if node.items is not None:
        return _field(defs, node.items, name, number, "")._replace(repeated=True)
    if node.special:
        read = _union(defs, node.special, node.alternative) if node.alternative else wire.SPECIAL[node.special][0]
        return field._replace(op=_CALL, sub=read, omit=field.omit and not node.preserve)
    if node.type == "object":
        return field._replace(op=_MESSAGE, sub=_message(defs, node, message_of(node.definition)))
    if node.type in _SCALARS:
        return field._replace(op=_SCALAR, sub=_SCALARS[node.type])
    return field


def _decode(codec: Codec, buffer: bytes, at: int, end: int) -> Obj:
    """Return the JSON object of the message in buffer[at:end]."""
    obj: Obj = {}
    action_of = codec.by_tag.get
    while at < end:
        tag = buffer[at]
        at += 1
        if tag > 127:
            tag, at = read_varint(buffer, at - 1)
        action = action_of(tag)
        if action is None:
            _, at = wire.extent(buffer, at, tag & 7, end)
            continue
        op, name, sub, omit, repeated = action
        if op == _SCALAR:
            value, at = read_scalar(sub, buffer, at)
        else:
            size = buffer[at]
            at += 1
            if size > 127:
                size, at = read_varint(buffer, at - 1)
            start, at = at, at + size
            if at > end:
                raise DecodeError(wire.EOF)
            if op == _STRING:
                value = buffer[start:at].decode()
            elif op == _MESSAGE:
                value = _decode(sub, buffer, start, at)
            elif op == _CALL:
                value = sub(buffer[start:at])
            else:
                _gather(op, obj, name, sub, buffer, start, at)
                continue
        if repeated:
            obj.setdefault(name, []).append(value)
        elif value or not (omit or value is None):
            obj[name] = value
    if at != end:
        raise DecodeError(wire.EOF)
    return obj


def _gather(op: int, obj: Obj, name: str, sub: Any, buffer: bytes, start: int, end: int) -> None:
    """Add to the object what is more than one value of one field."""
    if op == _INLINE:
        obj.update(_decode(sub, buffer, start, end))
    elif op == _MAP:
        entry = _decode(sub, buffer, start, end)
        value = entry["value"] if "value" in entry else _empty(sub.fields[1])
        if value is not None:
            obj.setdefault(name, {})[entry.get("key", "")] = value
    else:
        values = obj.setdefault(name, [])
        while start < end:
            value, start = read_scalar(sub, buffer, start)
            values.append(value)


def _empty(field: Field) -> Any:
    """Return the value of a map's entry that has none."""
    if field.op == _CALL:
        return field.sub(b"")
    return {} if field.op == _MESSAGE else "" if field.op == _STRING else 0


def _union(defs: Definitions, special: str, schema: Node) -> Reader:
    """Return the codec of a JSON schema, or else a boolean, a list of schemas, or a list of strings."""
    schema_number = 2 if special == "schema-or-bool" else 1

    def codec() -> Codec:
        return _message(defs, schema, message_of(schema.definition))

    def read(data: bytes) -> Any:
        if special == "schema-or-bool":
            found = wire.content(data, schema_number)
            return bool(wire.ints(data).get(1)) if found is None else _decode(codec(), found, 0, len(found))
        others = []
        for number, content in wire.chunks(data):
            if number == schema_number:
                return _decode(codec(), content, 0, len(content))
            others.append(content)
        if special == "schema-or-array":
            return [_decode(codec(), content, 0, len(content)) for content in others]
        return [content.decode() for content in others]

    return read
