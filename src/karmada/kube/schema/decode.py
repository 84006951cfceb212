"""From the bytes of a JSON body to an object of its type.

Three steps, each paid only as far as it is needed: orjson parses (its complaints are turned into those of Go's parser
only once a body is refused); duplicate keys are looked for only when the parsed object, written out again, has a
different number of quotes than the body; and `normalize` walks the object once along its schema (schema.walk).
"""

from __future__ import annotations

import json
from typing import Any

import orjson

from karmada.kube.objects.types import Obj
from karmada.kube.schema.conforming import conforming
from karmada.kube.schema.defaulting import prune
from karmada.kube.schema.gojson import parse_like_go
from karmada.kube.schema.node import Node
from karmada.kube.schema.walk import MOST_UNKNOWN, DecodeError, Mismatch, Path, show_path, walker

__all__ = ["DecodeError", "duplicate_fields", "normalize", "parse_json"]


def parse_json(body: bytes) -> Any:
    """Return the JSON value of a body; raises ValueError with Kubernetes' text."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return parse_like_go(body)


def duplicate_fields(body: bytes, parsed: Any) -> list[str]:
    """Return the paths of fields that stand twice in one object of the body; `parsed` is the body as parsed, unchanged.

    A repeated key is lost in parsing, and its quotes with it. Only an escaped quote could make up for them.
    """
    try:
        dumped = orjson.dumps(parsed)
    except TypeError as error:
        raise ValueError(f"json: {error}") from None
    if body.count(b'"') == dumped.count(b'"') and b"\\u0022" not in body:
        return []
    found: list[str] = []
    _find_duplicates(json.loads(body.decode("utf-8", "replace"), object_pairs_hook=_Pairs), [], found)
    return list(dict.fromkeys(found))


class _Pairs(list[tuple[str, Any]]):
    """An object as it was written, repetitions and all."""


def _find_duplicates(value: Any, path: list[str | int], found: list[str]) -> None:
    if isinstance(value, _Pairs):
        seen = set()
        for key, child in value:
            path.append(key)
            if key in seen and len(found) < MOST_UNKNOWN:
                found.append(show_path(path))
            seen.add(key)
            _find_duplicates(child, path, found)
            path.pop()
    elif isinstance(value, list):
        for index, child in enumerate(value):
            path.append(index)
            _find_duplicates(child, path, found)
            path.pop()


def normalize(node: Node, obj: Obj, *, custom: bool = False, known: Obj | None = None) -> list[str]:
    """In place: bring a freshly parsed object into the form of its type; the paths of unknown fields, now removed.

    Built-in types: nulls and empty optional values go, structs held by value appear, numbers, quantities, times and
    base64 become canonical; a value of the wrong type raises DecodeError. Custom resources are only pruned: what their
    schema says of types and nulls is for validation; their metadata is treated as a built-in. Members that are the very
    ones of an object that is `known` to be in form are passed over.
    """
    path = Path(None if custom else known)
    try:
        if custom:
            prune(node, obj, settled=_settled(node, obj, known), path=path, in_form=_metadata_in_form)
            _metadata_in_form(node, obj, path, (known or {}).get("metadata"))
        else:
            walker(node)(obj, path)
    except Mismatch as error:
        raise DecodeError(error.text(_below_metadata(path) if custom else path), error.converting()) from None
    except RecursionError:
        raise DecodeError("exceeded max depth") from None
    return sorted(path.unknown) if custom else path.unknown


def meant_field(node: Node, path: str) -> str:
    """Return the field whose name differs from that of an unknown one by case only; empty if there is none."""
    *parents, last = (step.partition("[")[0] for step in path.split("."))
    at: Node | None = node
    for step in parents:
        at = None if at is None else at.properties.get(step) or at.values
        while at is not None and at.items is not None:
            at = at.items
    wanted = last.lower()
    return next((name for name in (at.properties if at is not None else ()) if name.lower() == wanted), "")


def _below_metadata(path: Path) -> Path:
    """Return the path as Go has it: the metadata of a custom resource is decoded by itself."""
    below = Path()
    below.extend(path[path.index("metadata") + 1 :] if "metadata" in path else path)
    return below


def _settled(node: Node, obj: Obj, known: Obj | None) -> frozenset[str]:
    """Return the parts of a custom resource that need not be looked at."""
    if known is None:
        return conforming(node, obj)
    other = {key: value for key, value in obj.items() if known.get(key) is not value}
    return frozenset(key for key in obj if key not in other) | conforming(node, other)


def _metadata_in_form(node: Node, obj: Obj, path: Path, known: Obj | None = None) -> None:
    """Treat the metadata of a custom resource, or of an object in it, as a built-in. `known`: checked before."""
    metadata, schema = obj.get("metadata"), node.properties.get("metadata")
    if metadata is not None and schema is not None and schema.definition and not _same_members(metadata, known):
        path.append("metadata")
        walker(schema)(metadata, path)
        path.pop()


def _same_members(obj: Any, known: Obj | None) -> bool:
    """Return whether an object has the very members of one that is known to be in form, or fewer."""
    if known is None or not isinstance(obj, dict):
        return False
    for key, value in obj.items():
        before = known.get(key)
        if before is None or not (before is value or (type(before) is str is type(value) and before == value)):
            return False
    return True
