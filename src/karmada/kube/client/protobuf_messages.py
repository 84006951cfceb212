"""Protobuf messages from a table, for gRPC services of which a few messages are needed.

Each field is `type name number`. A `*` behind the type makes it repeated, a `?` makes "absent" another thing than
"empty"; `map<key,value>` is a map. protoc would turn the same facts into thousands of generated lines that are tied to
one protobuf release. Members of a oneof stand as plain fields, which is the same on the wire. Pools are private, so
another library that has the service's own definitions does not collide with these.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_MAP = re.compile(r"map<(\w+),(\w+)>")
_Field = descriptor_pb2.FieldDescriptorProto


def compile_messages(package: str, table: Mapping[str, str]) -> dict[str, Any]:
    """Return the class of each message, by its name."""
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
    for name, fields in table.items():
        message = file.message_type.add(name=name)
        for text in filter(None, fields.split(", ")):
            kind, label, number = text.split()
            _add_field(message, f".{package}", kind, label, int(number), table)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    find = pool.FindMessageTypeByName
    return {name: message_factory.GetMessageClass(find(f"{package}.{name}")) for name in table}


def _add_field(message: Any, package: str, kind: str, label: str, number: int, table: Mapping[str, str]) -> None:
    pair = _MAP.fullmatch(kind)
    repeated = pair is not None or kind.endswith("*")
    field = message.field.add(
        name=label, number=number, label=_Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL
    )
    if pair is not None:
        entry = message.nested_type.add(name=label[0].upper() + label[1:] + "Entry")
        entry.options.map_entry = True
        _add_field(entry, package, pair[1], "key", 1, table)
        _add_field(entry, package, pair[2], "value", 2, table)
        field.type, field.type_name = _Field.TYPE_MESSAGE, f"{package}.{message.name}.{entry.name}"
        return
    if kind.endswith("?"):
        field.proto3_optional, field.oneof_index = True, len(message.oneof_decl)
        message.oneof_decl.add(name=f"_{label}")
    kind = kind.rstrip("*?")
    if kind in table:
        field.type, field.type_name = _Field.TYPE_MESSAGE, f"{package}.{kind}"
    else:
        field.type = getattr(_Field, f"TYPE_{kind.upper()}")
