"""What the stores inside this process share: listeners, and watches made of history reads.

A backend calls `_publish` with each batch of durable writes before it answers the writers, so whoever listens (the
watch cache) is never behind what a writer knows. A watch keeps no queue: it only remembers how far it got, and when
something is published it reads on from there. A slow watcher therefore costs no memory; if it falls behind a
compaction it gets Compacted, like one that starts too late.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable

from karmada.kube.server.storage.interface import (
    Compacted,
    Event,
    FutureRevision,
    Listener,
    Stored,
    StoreUnavailable,
)

_BATCH = 500


class LocalStore(ABC):
    def __init__(self) -> None:
        self._listeners: dict[int, Listener] = {}
        self._next_listener = 0
        self._compacted = 0
        self._closed = False

    @property
    @abstractmethod
    def revision(self) -> int: ...

    @abstractmethod
    def peek(self, key: str) -> Stored | None: ...

    async def get(self, key: str) -> Stored | None:
        return self.peek(key)

    @abstractmethod
    async def history(self, prefix: str, *, since: int, until: int, limit: int = 0) -> list[Event]: ...

    @property
    def healthy(self) -> bool:
        return self.last_error is None

    @property
    def last_error(self) -> Exception | None:
        return StoreUnavailable("the store is closed") if self._closed else None

    def has_given(self, _revision: int) -> bool:
        """For a store whose state ends with its process."""
        return True

    def earlier(self, revision: int, writes: int) -> int:
        return max(self._compacted, revision - writes)

    def is_stale(self, _key: str, /) -> bool:
        """For a store that knows only one form."""
        return False

    def listen(self, listener: Listener) -> Callable[[], None]:
        number = self._next_listener
        self._next_listener += 1
        self._listeners[number] = listener

        def stop() -> None:
            self._listeners.pop(number, None)

        return stop

    def _publish(self, events: list[Event]) -> None:
        for listener in list(self._listeners.values()):
            listener(events)

    def _end(self) -> None:
        """Close; an empty batch wakes whoever waits for more."""
        self._closed = True
        self._publish([])

    async def watch(self, prefix: str, *, since: int) -> AsyncIterator[list[Event]]:
        """Yield batches; end with StoreUnavailable when the store is closed."""
        changed = asyncio.Event()
        stop = self.listen(lambda _: changed.set())
        try:
            while not self._closed:
                changed.clear()
                until = self.revision
                while since < until:
                    events = await self.history(prefix, since=since, until=until, limit=_BATCH)
                    since = events[-1].revision if len(events) == _BATCH else until
                    if events:
                        yield events
                await changed.wait()
            raise StoreUnavailable("the store is closed")
        finally:
            stop()

    def _readable(self, revision: int) -> int:
        """Return the revision to read at for the requested one (0: the latest)."""
        if revision <= 0:
            return self.revision
        if revision > self.revision:
            raise FutureRevision(self.revision)
        self._check_compacted(revision)
        return revision

    def _check_compacted(self, revision: int) -> None:
        if revision < self._compacted:
            raise Compacted(self._compacted)
