"""Lists as bytes: those of stored objects are their bytes joined, and in every other form each item is written apart.

So however long a list is, others run while it is written, and its items are parsed one at a time; what is large of them
is written aside.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import orjson

from karmada.kube.kinds.resource import Resource
from karmada.kube.kinds.tables import printer_for, table_of
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.aside import ASIDE, is_large
from karmada.kube.runtime.time_slice import in_slices
from karmada.kube.server.http.encoding import dumps, finish, partial, type_prefix
from karmada.kube.server.http.negotiation import JSON, YAML, Form
from karmada.kube.server.http.pieces import Bytes, Part
from karmada.kube.server.http.protobuf_form import ProtobufForm
from karmada.kube.server.http.results import ListResult

_INDENT = b"    "
"""Indentation of an item within a list."""


class ListWriting(NamedTuple):
    """How an item is written; what is between two, before the first, and (given whether there was none) at the end."""

    write: Callable[[Obj], bytes]
    between: bytes
    opening: bytes
    end: Callable[[bool], bytes]


def list_parts(result: ListResult, form: Form, include: str, pretty: bool, now: float) -> Iterator[Part]:
    """Return the parts of a list in every form but protobuf: each item is written when it is requested."""
    if form.media == JSON and not pretty and not form.transform and result.objects is None:
        return _stored_parts(result)
    resource, metadata = result.resource, result.metadata
    if not form.transform:
        metadata = _list_meta(resource, metadata)
    show = _same if resource.custom else _without_type
    writing = list_writing(resource, metadata, form, include, pretty=pretty, now=now, show=show)
    return _written_parts(writing, _objects(result))


async def protobuf_list(result: ListResult, form: Form, protobuf: ProtobufForm) -> bytes:
    objects = _objects(result)
    if form.transform:
        return await protobuf.metadata_list(result.metadata, objects, form.version)
    return await protobuf.list(result, objects)


def _written_parts(writing: ListWriting, objects: Iterable[Obj]) -> Iterator[Part]:
    yield writing.opening
    empty = True
    for obj in objects:
        if not empty:
            yield writing.between
        yield functools.partial(ASIDE.run, writing.write, obj) if is_large(obj) else writing.write(obj)
        empty = False
    yield writing.end(empty)


def list_writing(
    resource: Resource, metadata: Obj, form: Form, include: str, *, pretty: bool, now: float, show: Callable[[Obj], Obj]
) -> ListWriting:
    """Return how a list is written in a form; `show` is how an object looks where the form does not transform it."""
    version = f"meta.k8s.io/{form.version}"
    if form.transform == "Table":
        printer = printer_for(resource)

        def row(obj: Obj) -> Obj:
            shown = table_of(printer, (obj,), now=now, list_meta={}, include=include, api_version=version)
            found: Obj = shown["rows"][0]
            return found

        head = {"kind": "Table", "apiVersion": version, "metadata": metadata, "columnDefinitions": printer.columns}
        return _writing(head, "rows", row, form, pretty)
    if form.transform:
        head = {"kind": "PartialObjectMetadataList", "apiVersion": version, "metadata": metadata}
        return _writing(head, "items", lambda obj: partial(obj, form.version), form, pretty)
    head = {"kind": resource.list_kind, "apiVersion": resource.api_version, "metadata": metadata}
    return _writing(head, "items", show, form, pretty)


def _writing(head: Obj, name: str, show: Callable[[Obj], Obj], form: Form, pretty: bool) -> ListWriting:
    field = name.encode()
    if form.media == YAML:
        before, after = ({k: v for k, v in head.items() if (k > name) is later} for later in (False, True))
        rest = finish(after, form, pretty) if after else b""
        # A sequence may stand at the indentation of its key, so items are written apart and joined.
        return ListWriting(
            lambda obj: b"\n" + finish([show(obj)], form, pretty).rstrip(b"\n"),
            b"",
            finish(before, form, pretty) + field + b":",
            lambda empty: (b" []\n" if empty else b"\n") + rest,
        )
    text = dumps(head, pretty=pretty)
    if pretty:
        return ListWriting(
            lambda obj: b"\n" + _INDENT + dumps(show(obj), pretty=True).replace(b"\n", b"\n" + _INDENT),
            b",",
            text[:-2] + b',\n  "%b": [' % field,
            lambda empty: b"]\n}" if empty else b"\n  ]\n}",
        )
    return ListWriting(lambda obj: dumps(show(obj)), b",", text[:-1] + b',"%b":[' % field, lambda _empty: b"]}")


async def plain_list(result: ListResult) -> bytes:
    """Return a list in JSON: of stored objects the bytes as they are."""
    if result.objects is not None:
        return dumps(list_object(result))
    return b"".join([part async for part in in_slices(_stored_parts(result))])


def _stored_parts(result: ListResult) -> Iterator[Bytes]:
    """Yield the parts of a list of stored objects: the bytes that everybody shares."""
    resource = result.resource
    metadata = _list_meta(resource, result.metadata)
    head = orjson.dumps({"kind": resource.list_kind, "apiVersion": resource.api_version, "metadata": metadata})
    yield head[:-1] + b',"items":['
    opening, cut = (b"", 0) if resource.custom else (b"{", len(type_prefix(resource)))
    for entry in result.entries:
        yield opening
        yield memoryview(entry.raw)[cut:]
        opening = b"," if resource.custom else b",{"
    yield b"]}"


def list_object(result: ListResult) -> Obj:
    """Return the list as one JSON value; items of built-in kinds go without apiVersion and kind, as clients expect."""
    items = result.items()
    return list_of(result, items if result.resource.custom else list(map(_without_type, items)))


def list_of(result: ListResult, items: Sequence[Obj]) -> Obj:
    """Return a list with these items."""
    resource = result.resource
    return {
        "kind": resource.list_kind,
        "apiVersion": resource.api_version,
        "metadata": _list_meta(resource, result.metadata),
        "items": items,
    }


def _objects(result: ListResult) -> Iterable[Obj]:
    """Return one at a time, so that a long Table does not hold every parsed object at once."""
    return (entry.object() for entry in result.entries) if result.objects is None else result.objects


def _list_meta(resource: Resource, metadata: Obj) -> Obj:
    """Return the metadata; lists of custom resources have a continue token even when it is empty."""
    return {"continue": "", **metadata} if resource.custom and not resource.native else metadata


def _same(obj: Obj) -> Obj:
    return obj


def _without_type(obj: Obj) -> Obj:
    return {key: value for key, value in obj.items() if key not in ("apiVersion", "kind")}
