"""The wire form of a list that is sent while it is read: never more than a few items of it are in memory.

Items go out as the bytes they came as; only Tables, PartialObjectMetadata, YAML and pretty-printing parse them, one at
a time.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import NamedTuple

import orjson

from karmada.kube.kinds.tables import printer_for, table_of
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.time_slice import TimeSlice
from karmada.kube.server.http.encoding import dumps, finish, partial
from karmada.kube.server.http.negotiation import YAML, Form
from karmada.kube.server.http.results import StreamedList

_INDENT = b"    "
"""Indentation of an item within a list."""


class _Shape(NamedTuple):
    """The text around the items, the field that has them, and how one looks; None: as it came."""

    head: Obj
    field: str
    show: Callable[[Obj], Obj] | None


async def stream_list(
    result: StreamedList, form: Form, include: str, pretty: bool, now: float
) -> AsyncGenerator[bytes, None]:
    """Yield the body of the response, piece by piece."""
    shape = _shape(result, form, include, now)
    write, between, opening, end = _writing(shape, form, pretty)
    turn = TimeSlice()
    yield opening
    first = True
    async with aclosing(result.batches) as batches:
        async for batch in batches:
            written: list[bytes] = []
            for item in batch:
                written.append(write(item))
                if turn.is_over():
                    await turn.next()
            if written:
                yield (b"" if first else between) + between.join(written)
                first = False
    yield end(first)


async def collected(result: StreamedList) -> Obj:
    """Return the whole list as one JSON value, for callers in this process."""
    items: list[Obj] = []
    async with aclosing(result.batches) as batches:
        async for batch in batches:
            items += map(orjson.loads, batch)
    return {**_head(result), "items": items}


def _head(result: StreamedList) -> Obj:
    resource = result.resource
    return {"kind": resource.list_kind, "apiVersion": resource.gvk.api_version, "metadata": result.metadata}


def _shape(result: StreamedList, form: Form, include: str, now: float) -> _Shape:
    version = f"meta.k8s.io/{form.version}"
    if form.transform == "Table":
        printer = printer_for(result.resource)

        def row(obj: Obj) -> Obj:
            shown = table_of(printer, (obj,), now=now, list_meta={}, include=include, api_version=version)
            found: Obj = shown["rows"][0]
            return found

        head = {"kind": "Table", "apiVersion": version, "metadata": result.metadata}
        return _Shape({**head, "columnDefinitions": printer.columns}, "rows", row)
    if form.transform:
        head = {"kind": "PartialObjectMetadataList", "apiVersion": version, "metadata": result.metadata}
        return _Shape(head, "items", lambda obj: partial(obj, form.version))
    return _Shape(_head(result), "items", None)


class _Writing(NamedTuple):
    """How an item is written; what is between two, before the first, and (given whether there was none) at the end."""

    write: Callable[[bytes], bytes]
    between: bytes
    opening: bytes
    end: Callable[[bool], bytes]


def _writing(shape: _Shape, form: Form, pretty: bool) -> _Writing:
    show = shape.show or _same
    field = shape.field.encode()
    if form.media == YAML:
        from karmada.kube.schema.yamlio import dump_yaml

        # A sequence may stand at the indentation of its key, so items are written apart and joined.
        return _Writing(
            lambda raw: b"\n" + dump_yaml([show(orjson.loads(raw))]).rstrip(b"\n"),
            b"",
            finish(shape.head, form, pretty) + field + b":",
            lambda empty: b" []\n" if empty else b"\n",
        )
    head = dumps(shape.head, pretty=pretty)
    if pretty:
        opening = head[:-2] + b',\n  "%b": [' % field
        return _Writing(
            lambda raw: b"\n" + _INDENT + dumps(show(orjson.loads(raw)), pretty=True).replace(b"\n", b"\n" + _INDENT),
            b",",
            opening,
            lambda empty: b"]\n}" if empty else b"\n  ]\n}",
        )
    write = _raw if shape.show is None else lambda raw: dumps(show(orjson.loads(raw)))
    return _Writing(write, b",", head[:-1] + b',"%b":[' % field, lambda _empty: b"]}")


def _same(obj: Obj) -> Obj:
    return obj


def _raw(raw: bytes) -> bytes:
    return raw
