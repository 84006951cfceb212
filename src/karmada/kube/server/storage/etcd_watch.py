"""One watch on one member, and how it learns how far it is.

A watch starts at the last revision that was delivered, not the one after it, and drops that one: etcd then
refuses exactly those starts whose history is not whole any more (after a compaction at C it would still accept a start
at C, although a deletion at C is forgotten). A response is never split (no fragments), so a revision is delivered whole
and the next watch can go on behind it.

etcd counts the writes of all its users. When a revision was handed to somebody and the watch has not reached it a
moment later, the last writes may just not concern us: then progress is requested. etcd 3.4.25, 3.5.8 and later answer a
progress request in the order of the events. Older ones answer it at once, even before events that are still to be sent,
which would be a gap; there a mark is written under our own prefix, and the watch takes in the whole prefix and waits
for it. A stream that does not come forward in spite of that is given up for one to another member.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from karmada.kube.client.grpc_library import grpc
from karmada.kube.server.storage.etcd_connection import Connection, Member, Unanswered
from karmada.kube.server.storage.etcd_messages import (
    DELETE,
    STATUS,
    WATCH,
    StatusRequest,
    WatchCreateRequest,
    WatchProgressRequest,
    WatchRequest,
)
from karmada.kube.server.storage.interface import Compacted, Event, Progress, Stored, StoreUnavailable

_PROGRESS_SECONDS = 0.1
_ORDERED_PROGRESS = ((3, 4, 25), (3, 5, 8))
INTERNAL = "\0"
"""Prefix of keys of the store's own."""
log = logging.getLogger(__name__)


class Keys(Protocol):
    """How keys and values lie in etcd."""

    def range(self, prefix: str) -> tuple[bytes, bytes]: ...

    def key(self, raw: bytes) -> str: ...

    def value(self, key: str, raw: bytes) -> bytes: ...


class Wanted:
    """The highest revision that was returned to any caller, and so may be waited for."""

    def __init__(self) -> None:
        self.revision = 0
        self._waiting: set[asyncio.Event] = set()

    def add(self, revision: int) -> None:
        if revision > self.revision:
            self.revision = revision
            for event in self._waiting:
                event.set()

    async def beyond(self, position: Callable[[], int]) -> int:
        """Wait until a revision behind the position is wanted."""
        event = asyncio.Event()
        self._waiting.add(event)
        try:
            while self.revision <= position():
                event.clear()
                await event.wait()
            return self.revision
        finally:
            self._waiting.discard(event)


def answers_progress_in_order(version: str) -> bool:
    """Return whether this etcd sends the answer to a progress request behind the events it covers."""
    numbers = tuple(int(n) for n in re.findall(r"\d+", version)[:3])
    if len(numbers) < 3:
        return False
    return any(numbers[:2] == since[:2] and numbers >= since for since in _ORDERED_PROGRESS) or numbers[:2] >= (3, 6)


class Stream:
    """`await open()`, then `next()` again and again; `close()` in any case."""

    def __init__(
        self, connection: Connection, keys: Keys, wanted: Wanted, mark: Callable[[], Awaitable[None]], prefix: str
    ) -> None:
        self.position = 0
        """Everything up to this revision has been delivered."""
        self.seen = 0
        """The latest revision that the member has reported."""
        self._connection = connection
        self._keys = keys
        self._wanted = wanted
        self._mark = mark
        self._prefix = prefix
        self._member: Member | None = None
        self._call: Any = None
        self._prompter: asyncio.Task[None] | None = None
        self._ordered = False
        self._stalled = False

    async def open(self, since: int, *, impatient: bool = False) -> None:
        """`impatient`: request a progress notification at once."""
        connection = self._connection
        self.position = since
        self._member = member = await connection.member(connection.deadline())
        try:
            status = await member.call(STATUS, StatusRequest(), connection.attempt)
            self._ordered = answers_progress_in_order(status.version)
            self._call = member.stream(WATCH)
            low, high = self._keys.range(self._prefix if self._ordered else "")
            create = WatchCreateRequest(
                key=low, range_end=high, start_revision=max(since, 1), prev_kv=True, progress_notify=True
            )
            async with asyncio.timeout(connection.attempt):
                await self._call.write(WatchRequest(create=create))
                self._accept(await self._call.read())
        except grpc.aio.AioRpcError as error:
            raise connection.failure(member, error) from error
        except TimeoutError:
            connection.leave(member)
            raise Unanswered(f"{member.address} does not respond to a watch") from None
        except asyncio.CancelledError:
            connection.check_cancelled()
            raise
        self._prompter = asyncio.create_task(self._prompt(0.0 if impatient else _PROGRESS_SECONDS))

    def close(self) -> None:
        if self._prompter is not None:
            self._prompter.cancel()
        if self._call is not None:
            self._call.cancel()

    async def next(self) -> list[list[Event]]:
        """Return what the next response says: events, progress, or nothing of interest."""
        assert self._member is not None
        try:
            response = await self._call.read()
        except grpc.aio.AioRpcError as error:
            raise self._connection.failure(self._member, error) from error
        except asyncio.CancelledError:
            self._connection.check_cancelled()
            if self._stalled:
                self._connection.leave(self._member)
                raise Unanswered(f"{self._member.address} does not keep up") from None
            raise
        return self._accept(response)

    def _accept(self, response: Any) -> list[list[Event]]:
        assert self._member is not None
        if response is grpc.aio.EOF:
            self._connection.leave(self._member)
            raise Unanswered(f"{self._member.address} has ended the watch")
        self.seen = max(self.seen, response.header.revision)
        if response.canceled:
            if response.compact_revision:
                raise Compacted(response.compact_revision)
            self._connection.leave(self._member)
            raise Unanswered(f"{self._member.address} has cancelled the watch: {response.cancel_reason}")
        if response.created:
            return []
        if not response.events:
            return self._reached(response.header.revision)
        events = []
        for raw in response.events:
            revision = raw.kv.mod_revision
            if revision > self.position:
                key = self._keys.key(raw.kv.key)
                if key.startswith(self._prefix) and not key.startswith(INTERNAL):
                    events.append(self._event(key, raw, revision))
        progress = self._reached(response.events[-1].kv.mod_revision)
        if not events:
            return progress
        return [events] if events[-1].revision == self.position else [events, *progress]

    def _reached(self, revision: int) -> list[list[Event]]:
        if revision <= self.position:
            return []
        self.position = revision
        return [Progress(revision)]

    def _event(self, key: str, raw: Any, revision: int) -> Event:
        deleted = raw.type == DELETE
        previous = None
        if raw.HasField("prev_kv"):
            previous = Stored(key, self._keys.value(key, raw.prev_kv.value), raw.prev_kv.mod_revision)
        elif deleted or raw.kv.create_revision != revision:
            raise Compacted(revision)  # it had a value, which is forgotten
        return Event(key, None if deleted else self._keys.value(key, raw.kv.value), revision, previous)

    # Requesting progress

    async def _prompt(self, patience: float) -> None:
        loop = asyncio.get_running_loop()
        while True:
            target = await self._wanted.beyond(lambda: self.position)
            await asyncio.sleep(patience)
            patience, pause = _PROGRESS_SECONDS, _PROGRESS_SECONDS
            requested, seen, since = False, self.position, loop.time()
            while self.position < target:
                if self.position > seen:
                    seen, since = self.position, loop.time()
                if loop.time() - since > self._connection.timeout / 2:
                    self._stalled = True
                    self._call.cancel()
                    return
                requested = await self._request_progress(requested)
                await asyncio.sleep(pause)
                pause = min(pause * 2, 1.0)

    async def _request_progress(self, requested: bool) -> bool:
        """Return whether an answer will come for sure: a mark does, a request gets none while events are behind."""
        try:
            if self._ordered:
                await self._call.write(WatchRequest(progress=WatchProgressRequest()))
            elif not requested:
                await self._mark()
                return True
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError) as error:
            log.debug("the watch has ended, which its reader gets as an error: %s", error)
        except StoreUnavailable as error:
            log.debug("no mark could be written, trying again: %s", error)
        return requested
