"""The wire form of a list that is sent while it is read: never more than a few items of it are in memory.

Items go out as the bytes they came as; only Tables, PartialObjectMetadata, YAML and pretty-printing parse them, one at
a time.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

import orjson

from karmada.kube.objects.types import Obj
from karmada.kube.runtime.time_slice import TimeSlice
from karmada.kube.server.http.list_encoding import list_writing
from karmada.kube.server.http.negotiation import JSON, Form
from karmada.kube.server.http.results import StreamedList


async def stream_list(
    result: StreamedList, form: Form, include: str, pretty: bool, now: float
) -> AsyncGenerator[bytes, None]:
    """Yield the body of the response, piece by piece."""
    resource, metadata = result.resource, result.metadata
    writing = list_writing(resource, metadata, form, include, pretty=pretty, now=now, show=lambda obj: obj)
    as_they_came = form.media == JSON and not pretty and not form.transform
    turn = TimeSlice()
    yield writing.opening
    first = True
    async with aclosing(result.batches) as batches:
        async for batch in batches:
            written: list[bytes] = []
            for item in batch:
                written.append(item if as_they_came else writing.write(orjson.loads(item)))
                if turn.is_over():
                    await turn.next()
            if written:
                yield (b"" if first else writing.between) + writing.between.join(written)
                first = False
    yield writing.end(first)


async def collected(result: StreamedList) -> Obj:
    """Return the whole list as one JSON value, for callers in this process."""
    items: list[Obj] = []
    async with aclosing(result.batches) as batches:
        async for batch in batches:
            items += map(orjson.loads, batch)
    return {**_head(result), "items": items}


def _head(result: StreamedList) -> Obj:
    resource = result.resource
    return {"kind": resource.list_kind, "apiVersion": resource.api_version, "metadata": result.metadata}
