"""The wire form of a watch: one JSON event a line, or length-prefixed protobuf; encoded once per change.

Events are sent in whatever batches they come in. A bookmark names the revision up to which the client has received
everything: at the end of the initial objects if requested, about every minute, and before the server ends the stream.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterable, Iterator
from functools import partial

import orjson

from karmada.kube.kinds.tables import table
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.doc import Doc
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.aside import ASIDE, LARGE, is_large
from karmada.kube.runtime.time_slice import TimeSlice
from karmada.kube.schema.zero_value import zero_value
from karmada.kube.server.http.encoding import partial as metadata_of
from karmada.kube.server.http.negotiation import PROTOBUF, Form
from karmada.kube.server.http.pieces import PIECE, Bytes, Part, in_pieces
from karmada.kube.server.http.protobuf_form import ProtobufForm
from karmada.kube.server.http.protobuf_form import frame as protobuf_frame
from karmada.kube.server.http.results import Changes, WatchResult
from karmada.kube.server.watchcache.entry import Change

BOOKMARK_SECONDS = 60.0
BEFORE_END_SECONDS = 2.0
AHEAD_SECONDS = 60.0
"""How long a watch from a version that is still to come may wait for it."""
INITIAL_EVENTS_END = "k8s.io/initial-events-end"
_TOGETHER = 64
"""Objects that are encoded in a row at most, where that takes more than copying their bytes."""


def frame(kind: str, raw: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (kind.encode(), raw)


class Frames:
    """Encodes one watch's events."""

    def __init__(self, watch: WatchResult, form: Form, include: str, clock: Clock, protobuf: ProtobufForm) -> None:
        self._watch = watch
        self._form = form
        self._include = include
        self._clock = clock
        self._protobuf = protobuf
        self._is_protobuf = form.media == PROTOBUF
        self._first_table = True
        self.plain = not form.transform and watch.convert is None

    async def initial(self) -> AsyncIterator[Bytes]:
        """Yield the initial objects, in pieces: the bytes of stored objects are shared by all who watch them."""
        entries = self._watch.initial
        self._watch.initial = []
        if self.plain and not self._is_protobuf:
            frames = (part for entry in entries for part in (b'{"type":"ADDED","object":', entry.raw, b"}\n"))
            shown: AsyncIterator[Bytes] = in_pieces(frames)
        else:
            shown = self._shown(("ADDED", entry) for entry in entries)
        async for piece in shown:
            yield piece

    def batch(self, changes: list[Change]) -> AsyncIterator[Bytes]:
        """Return the changes in pieces."""
        if not self.plain:
            return self._shown((change.type, change.entry) for change in changes)
        if self._is_protobuf:
            return in_pieces(map(self._protobuf_frame, changes))
        return in_pieces(change.frame() for change in changes)

    async def _shown(self, events: Iterable[tuple[str, Doc]]) -> AsyncIterator[Bytes]:
        """Yield events that are encoded for this watch: a few at a time, so that others run in between."""
        turn = TimeSlice()
        for some in _groups(events):
            objects: list[Obj] = [entry.object() for _, entry in some]
            if self._watch.convert is not None:
                objects = await self._watch.convert(objects)
            async for piece in in_pieces(self._made(kind, obj) for (kind, _), obj in zip(some, objects, strict=True)):
                yield piece
            if turn.is_over():
                await turn.next()

    def _made(self, kind: str, obj: Obj) -> Part:
        return partial(ASIDE.run, self._event, kind, obj) if is_large(obj) else self._event(kind, obj)

    def _protobuf_frame(self, change: Change) -> Part:
        encode = partial(change.protobuf_frame, self._protobuf.event)
        return partial(ASIDE.run, encode) if change.entry.weight >= LARGE else encode()

    def _event(self, kind: str, obj: Obj) -> bytes:
        if not self._is_protobuf:
            return frame(kind, orjson.dumps(self._transform(obj)))
        if self._form.transform:
            return protobuf_frame(kind, self._protobuf.metadata(obj, self._form.version))
        return self._protobuf.event(kind, obj)

    def _transform(self, obj: Obj) -> Obj:
        if self._form.transform == "Table":
            version = f"meta.k8s.io/{self._form.version}"
            meta = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
            shown = table(
                self._watch.resource, [obj], now=self._clock.now(), list_meta=meta, include=self._include,
                columns=self._first_table, api_version=version,
            )  # fmt: skip
            self._first_table = False
            return shown
        return metadata_of(obj, self._form.version) if self._form.transform else obj

    def bookmark(self, revision: int | str, *, end_of_initial: bool = False) -> bytes:
        resource = self._watch.resource
        gvk = resource.gvk
        meta: Obj = {"resourceVersion": str(revision)}
        if end_of_initial:
            meta["annotations"] = {INITIAL_EVENTS_END: "true"}
        empty = {} if resource.custom else zero_value(resource.schema())
        obj: Obj = {"kind": gvk.kind, "apiVersion": gvk.api_version, **empty, "metadata": meta}
        if self._form.transform == "Table":
            obj = {
                "kind": "Table", "apiVersion": f"meta.k8s.io/{self._form.version}",
                "metadata": {"resourceVersion": str(revision)},
                "columnDefinitions": None, "rows": [{"cells": [], "object": metadata_of(obj, self._form.version)}],
            }  # fmt: skip
            return frame("BOOKMARK", orjson.dumps(obj))
        return self._event("BOOKMARK", obj)

    def error(self, error: ApiError) -> bytes:
        return error_frame(error, self._form, self._protobuf)


def _groups(events: Iterable[tuple[str, Doc]]) -> Iterator[list[tuple[str, Doc]]]:
    """Yield the events, few or small ones together."""
    group: list[tuple[str, Doc]] = []
    size = 0
    for event in events:
        group.append(event)
        size += len(event[1].raw)
        if len(group) == _TOGETHER or size > PIECE:
            yield group
            group, size = [], 0
    if group:
        yield group


def error_frame(error: ApiError, form: Form, protobuf: ProtobufForm) -> bytes:
    """Return an ERROR event, whose object is a plain Status in every form of watch."""
    if form.media == PROTOBUF:
        return protobuf.event("ERROR", error.status())
    return frame("ERROR", orjson.dumps(error.status()))


async def stream(
    watch: WatchResult, form: Form, include: str, clock: Clock, protobuf: ProtobufForm
) -> AsyncIterator[Bytes]:
    """Yield the body of a watch, piece by piece; ends with the watch's time-out or the subscription."""
    frames = Frames(watch, form, include, clock, protobuf)
    subscription = watch.subscription
    ends = clock.monotonic() + watch.timeout
    try:
        async for piece in frames.initial():
            yield piece
        if watch.end_of_initial:
            yield frames.bookmark(watch.revision, end_of_initial=True)
        bookmark = _next_bookmark(clock.monotonic(), ends) if watch.bookmarks else ends
        ahead_until = clock.monotonic() + AHEAD_SECONDS if watch.overdue is not None else ends
        while (now := clock.monotonic()) < ends:
            batch = await _next(subscription, min(bookmark, ahead_until, ends) - now)
            if batch is None:
                return
            if batch:
                async for piece in frames.batch(batch):
                    yield piece
            elif watch.overdue is not None and clock.monotonic() >= ahead_until:
                error, watch.overdue, ahead_until = watch.overdue(), None, ends
                if error is not None:
                    raise error
            elif bookmark < ends and clock.monotonic() >= bookmark:
                yield frames.bookmark(subscription.progress)
                bookmark = _next_bookmark(clock.monotonic(), ends)
    except ApiError as error:
        yield frames.error(error)
    finally:
        subscription.close()


def _next_bookmark(now: float, ends: float) -> float:
    """About a minute on, or shortly before the end if that comes first."""
    due = now + random.uniform(0.75, 1.25) * BOOKMARK_SECONDS
    last = ends - BEFORE_END_SECONDS
    return min(due, last) if now < last else due


async def _next(subscription: Changes, seconds: float) -> list[Change] | None:
    """Return the next batch, [] when the time is up first, None when the subscription has ended."""
    try:
        async with asyncio.timeout(max(seconds, 0)):
            batch: list[Change] = await anext(subscription)
            return batch
    except TimeoutError:
        return []
    except StopAsyncIteration:
        return None
