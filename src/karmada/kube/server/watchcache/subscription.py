"""Watchers: who gets which change, and how it reaches them.

`Subscribers` files each subscription under the namespace and name it wants ("" is any), so a change looks at four
places and touches only those that can want it. Delivering is an append to a list; the first append of a loop turn also
schedules the wake-up of the reader, once, for the next turn. A subscription is read either as an async iterator of
batches, or by `drain()` from a wake callback, which lets the HTTP side write frames straight to its transport. A
subscription whose reader lags by more than its buffer ends: its client resumes from what it has.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Protocol, TypeAlias

from karmada.kube.objects.doc import Doc
from karmada.kube.runtime.time_slice import in_slices
from karmada.kube.server.watchcache.entry import ADDED, DELETED, Change

log = logging.getLogger(__name__)

Matches: TypeAlias = Callable[[Doc], bool]


MAX_PENDING_BYTES = 64 << 20
"""Bytes that may wait for a reader: large objects end a slow watch before they fill the memory."""


class Revisions(Protocol):
    """Where the cache stands."""

    revision: int


class Subscription:
    """Changes of one resource in strictly rising revision order, as the selector makes them look."""

    __slots__ = (
        "_after", "_bytes", "_leave", "_limit", "_matches", "_pending", "_position", "_progress", "_waiter",
        "_woken", "buffer", "ended", "name", "namespace",
    )  # fmt: skip

    def __init__(
        self,
        position: Revisions,
        leave: Callable[[Subscription], None],
        *,
        namespace: str,
        name: str,
        matches: Matches | None,
        buffer: int,
        after: int = -1,
    ) -> None:
        """`after` is a revision that may be still to come: changes up to it are left out.

        By default none are, not even those of an aggregated server, whose revision is 0 here.
        """
        self.namespace = namespace
        self.name = name
        self.buffer = buffer
        self.ended = False
        self._position = position
        self._leave = leave
        self._matches = matches
        self._after = after
        self._pending: list[Change] = []
        self._limit = buffer
        self._bytes = 0
        self._woken = False
        self._waiter: asyncio.Future[None] | None = None
        self._progress = 0

    @property
    def progress(self) -> int:
        """Return the revision up to which the reader has taken every change; what a bookmark may say."""
        if self.ended:
            return self._progress
        pending = self._pending
        return pending[0].revision - 1 if pending else max(self._position.revision, self._after)

    def drain(self) -> list[Change]:
        """Return what came since the last call."""
        pending, self._pending = self._pending, []
        self._limit = self.buffer
        self._bytes = 0
        return pending

    def close(self) -> None:
        """Stop; what is pending is dropped."""
        self._end()
        self.wake()

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> list[Change]:
        while not self._pending:
            if self.ended:
                raise StopAsyncIteration
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        return self.drain()

    # The giving side

    def push(self, change: Change) -> None:
        """Take the change if it concerns the selector, and have the reader woken in the next turn of the loop."""
        if change.revision <= self._after:
            return
        if self._matches is not None:
            seen = self._as_seen(change)
            if seen is None:
                return
            change = seen
        pending = self._pending
        pending.append(change)
        self._bytes += change.size
        if len(pending) > self._limit or self._bytes > MAX_PENDING_BYTES:
            self._end()  # too slow
        if not self._woken:
            self._woken = True
            asyncio.get_running_loop().call_soon(self.wake)

    async def replay(self, changes: Iterable[Change]) -> None:
        """Put what of the history concerns this subscription before what came meanwhile; it does not count as lag."""
        replayed: list[Change] = []
        async for change in in_slices(change for change in changes if self._wants(change)):
            seen = change if self._matches is None else self._as_seen(change)
            if seen is not None:
                replayed.append(seen)
        if not self.ended:
            self._pending[:0] = replayed
            self._limit = self.buffer + len(self._pending)

    def wake(self) -> None:
        self._woken = False
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def _wants(self, change: Change) -> bool:
        entry = change.entry
        return self.namespace in ("", entry.namespace) and self.name in ("", entry.name)

    def _as_seen(self, change: Change) -> Change | None:
        matches = self._matches
        assert matches is not None
        previous = change.previous
        before = previous is not None and matches(previous)
        if change.type == DELETED:
            return change if before else None
        if matches(change.entry):
            return change if before or change.type == ADDED else change.appearance()
        return change.disappearance() if before else None

    def _end(self) -> None:
        if not self.ended:
            self._progress = self.progress
            self.ended = True
            self._pending = []
            self._leave(self)


class Subscribers:
    """The subscriptions of one resource, filed by (namespace, name)."""

    __slots__ = ("_filed",)

    def __init__(self) -> None:
        self._filed: dict[tuple[str, str], dict[Subscription, None]] = {}

    def __len__(self) -> int:
        return sum(len(subscriptions) for subscriptions in self._filed.values())

    def add(self, subscription: Subscription) -> None:
        self._filed.setdefault((subscription.namespace, subscription.name), {})[subscription] = None

    def remove(self, subscription: Subscription) -> None:
        place = (subscription.namespace, subscription.name)
        subscriptions = self._filed.get(place, {})
        subscriptions.pop(subscription, None)
        if not subscriptions:
            self._filed.pop(place, None)

    def dispatch(self, change: Change) -> None:
        filed = self._filed
        if not filed:
            return
        namespace, name = change.entry.namespace, change.entry.name
        places = (("", ""), ("", name), (namespace, ""), (namespace, name)) if namespace else (("", ""), ("", name))
        for subscription in [subscription for place in places if place in filed for subscription in filed[place]]:
            try:
                subscription.push(change)
            except Exception:  # a selector that fails must not keep the change from the others
                log.exception("a watcher's selector failed on %s", change)
                subscription.close()

    def end(self) -> None:
        """End all of them: their clients have to start again."""
        for subscriptions in list(self._filed.values()):
            for subscription in list(subscriptions):
                subscription.close()
