"""A Swagger document as the protobuf message that old clients parse.

Only the parts of the message that our documents use are written; each table below maps a JSON key to its field number
and the function that writes its value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from karmada.kube.objects.types import Obj

_Write = Callable[[int, Any], bytes]


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _bytes(field: int, data: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())


def _flag(field: int, value: bool) -> bytes:
    return _varint(field << 3) + (b"\x01" if value else b"\x00")


def _texts(field: int, values: list[str]) -> bytes:
    return b"".join(_text(field, value) for value in values)


def _any(field: int, value: Any) -> bytes:
    """Any{2 yaml}; JSON is YAML."""
    return _bytes(field, _bytes(2, orjson.dumps(value)))


def _anys(field: int, values: list[Any]) -> bytes:
    return b"".join(_any(field, value) for value in values)


def _message(encode: Callable[[Any], bytes]) -> _Write:
    return lambda field, value: _bytes(field, encode(value))


def _named(encode: Callable[[Any], bytes]) -> Callable[[Obj], bytes]:
    """Return a map as repeated Named{1 name, 2 value} in field 1."""
    return lambda values: b"".join(_bytes(1, _text(1, key) + _bytes(2, encode(value))) for key, value in values.items())


def _record(table: dict[str, tuple[int, _Write]], extensions: int = 0) -> Callable[[Obj], bytes]:
    """Known keys by the table, `x-` keys as vendor extensions; keys with no place in the message are left out."""

    def encode(value: Obj) -> bytes:
        out = [table[key][1](table[key][0], part) for key, part in value.items() if key in table]
        if extensions:
            out += [
                _bytes(extensions, _text(1, key) + _any(2, part)) for key, part in value.items() if key.startswith("x-")
            ]
        return b"".join(out)

    return encode


def _schema(value: Obj) -> bytes:
    return _SCHEMA(value)


def _additional(field: int, value: Any) -> bytes:
    inner = _flag(2, value) if isinstance(value, bool) else _bytes(1, _schema(value))
    return _bytes(field, inner)


def _type(field: int, value: str | list[str]) -> bytes:
    return _bytes(field, _texts(1, [value] if isinstance(value, str) else value))


def _items(field: int, value: Any) -> bytes:
    schemas = value if isinstance(value, list) else [value]
    return _bytes(field, b"".join(_bytes(1, _schema(schema)) for schema in schemas))


_SCHEMA = _record(
    {
        "$ref": (1, _text),
        "format": (2, _text),
        "description": (4, _text),
        "default": (5, _any),
        "required": (19, _texts),
        "enum": (20, _anys),
        "additionalProperties": (21, _additional),
        "type": (22, _type),
        "items": (23, _items),
        "properties": (25, _message(_named(_schema))),
    },
    extensions=31,
)
_QUERY = _record(
    {"required": (1, _flag), "in": (2, _text), "description": (3, _text), "name": (4, _text), "type": (6, _text)}
)
_PATH = _record(
    {"required": (1, _flag), "in": (2, _text), "description": (3, _text), "name": (4, _text), "type": (5, _text)}
)
_BODY = _record(
    {
        "description": (1, _text),
        "name": (2, _text),
        "in": (3, _text),
        "required": (4, _flag),
        "schema": (5, _message(_schema)),
    }
)


def _parameter(value: Obj) -> bytes:
    """Parameter{1 body | 2 other{3 query | 4 path}}."""
    if value["in"] == "body":
        return _bytes(1, _BODY(value))
    return _bytes(2, _bytes(3, _QUERY(value)) if value["in"] == "query" else _bytes(4, _PATH(value)))


def _parameters_item(value: Obj) -> bytes:
    """ParametersItem{1 parameter | 2 jsonReference{1 $ref}}."""
    return _bytes(2, _text(1, value["$ref"])) if "$ref" in value else _bytes(1, _parameter(value))


def _parameters(field: int, values: list[Obj]) -> bytes:
    return b"".join(_bytes(field, _parameters_item(value)) for value in values)


def _security(field: int, values: list[Obj]) -> bytes:
    """SecurityRequirement{1 NamedStringArray{1 name, 2 StringArray{1 value*}}*}*."""
    scopes = _named(lambda names: _texts(1, names))
    return b"".join(_bytes(field, scopes(value)) for value in values)


def _security_scheme(value: Obj) -> bytes:
    """SecurityDefinitionsItem{2 apiKeySecurity}."""
    return _bytes(2, _API_KEY(value))


_API_KEY = _record({"type": (1, _text), "name": (2, _text), "in": (3, _text), "description": (4, _text)})


def _response(value: Obj) -> bytes:
    inner = _text(1, value.get("description", ""))
    if "schema" in value:
        inner += _bytes(2, _bytes(1, _schema(value["schema"])))
    return _bytes(1, inner)


_OPERATION = _record(
    {
        "tags": (1, _texts),
        "description": (3, _text),
        "operationId": (5, _text),
        "produces": (6, _texts),
        "consumes": (7, _texts),
        "parameters": (8, _parameters),
        "responses": (9, _message(_named(_response))),
        "schemes": (10, _texts),
    },
    extensions=13,
)
_PATH_ITEM = _record(
    {
        "get": (2, _message(_OPERATION)),
        "put": (3, _message(_OPERATION)),
        "post": (4, _message(_OPERATION)),
        "delete": (5, _message(_OPERATION)),
        "options": (6, _message(_OPERATION)),
        "head": (7, _message(_OPERATION)),
        "patch": (8, _message(_OPERATION)),
        "parameters": (9, _parameters),
    }
)


def _paths(field: int, value: Obj) -> bytes:
    items = b"".join(_bytes(2, _text(1, path) + _bytes(2, _PATH_ITEM(item))) for path, item in value.items())
    return _bytes(field, items)


encode_document = _record(
    {
        "swagger": (1, _text),
        "info": (2, _message(_record({"title": (1, _text), "version": (2, _text)}))),
        "paths": (8, _paths),
        "definitions": (9, _message(_named(_schema))),
        "parameters": (10, _message(_named(_parameter))),
        "security": (12, _security),
        "securityDefinitions": (13, _message(_named(_security_scheme))),
    }
)
