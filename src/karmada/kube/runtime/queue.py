"""The work queue: every key once, one worker per key, delays, back-off and priorities.

A key that is added while it waits is still there once; one that is added while a worker has it comes back when the
worker is done, so no change is lost and no key is ever in two workers. Ready keys leave by priority, then in order of
arrival; a key added again with a higher priority moves up. Delayed keys sit in a heap until the clock reaches them
(one sleeping task per queue, only while something waits); of two delays for a key the earlier one counts.
Failures of a key double its delay, from 5 ms up to 1000 s, until `forget`.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Hashable
from enum import IntEnum
from typing import Generic, Protocol, TypeVar

from karmada.kube.objects.clock import Clock, RealClock

K = TypeVar("K", bound=Hashable)


class Priority(IntEnum):
    """The order in which keys leave a queue; any number above BACKLOG is as urgent as NEW, and a higher one first."""

    NEW = 0
    """A change, or a retry: it waits for no turn of the backlog."""
    BACKLOG = -(1 << 40)
    """An existing object at the start, or one of many that a change concerns: it takes turns with all others."""
    REPLAY = -(1 << 41)
    """As BACKLOG, and not before existing objects have been delivered up to its name."""


class QueueShutDown(Exception):
    """The queue returns no more keys."""


class QueueMetrics(Protocol):
    """What a queue reports; times are in seconds."""

    def added(self, depth: int) -> None: ...

    def taken(self, depth: int, waited: float) -> None: ...

    def finished(self, worked: float) -> None: ...

    def retried(self) -> None: ...


class _Entry(Generic[K]):
    __slots__ = ("key", "priority", "since", "taken")

    def __init__(self, key: K, priority: int, since: float) -> None:
        self.key = key
        self.priority = priority
        self.since = since
        self.taken = False


class Queue(Generic[K]):
    def __init__(
        self,
        name: str = "",
        *,
        clock: Clock | None = None,
        base_delay: float = 0.005,
        max_delay: float = 1000.0,
        metrics: QueueMetrics | None = None,
    ) -> None:
        self.name = name
        self._clock = clock or RealClock()
        self._base_delay = base_delay
        self._max_delay = max_delay
        self._metrics = metrics
        self.on_ready: Callable[[], None] | None = None
        """Called for a key that becomes ready while no caller waits in `get`; it is taken with `take`."""
        self._ready: dict[int, deque[_Entry[K]]] = {}
        self._priorities: list[int] = []
        self._waiting: dict[K, _Entry[K]] = {}
        self._working: dict[K, float] = {}
        self._again: dict[K, int] = {}
        self._delayed: list[tuple[float, int, K, int]] = []
        self._due: dict[K, float] = {}
        self._order = 0
        self._failures: dict[K, int] = {}
        self._getters: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.Task[None] | None = None
        self._timer_due = 0.0
        self._closed = False

    def __len__(self) -> int:
        """Keys ready for a worker."""
        return len(self._waiting)

    @property
    def working(self) -> int:
        """Keys that workers have."""
        return len(self._working)

    @property
    def delayed(self) -> int:
        return len(self._due)

    @property
    def idle(self) -> bool:
        """Nothing is ready and no worker is busy (delayed keys may remain)."""
        return not self._waiting and not self._working

    @property
    def empty(self) -> bool:
        """There is nothing to remember: no key is ready, delayed, with a worker or backing off."""
        return not (self._waiting or self._working or self._due or self._failures)

    @property
    def top(self) -> int | None:
        """The priority of the next key; None when none is ready."""
        for priority in self._priorities:
            line = self._ready[priority]
            while line and line[0].taken:
                line.popleft()
            if line:
                return priority
        return None

    @property
    def first(self) -> K | None:
        """The next key, which stays where it is; None when none is ready."""
        top = self.top
        return None if top is None else self._ready[top][0].key

    def longest_running(self) -> float:
        """How long the oldest key has been with a worker."""
        if not self._working:
            return 0.0
        return self._clock.monotonic() - min(self._working.values())

    def unfinished(self) -> float:
        """Seconds of work under way, over all workers."""
        now = self._clock.monotonic()
        return sum(now - since for since in self._working.values())

    # adding

    def add(self, key: K, priority: int = Priority.NEW) -> None:
        if self._closed:
            return
        if key in self._working:
            before = self._again.get(key)
            self._again[key] = priority if before is None else max(before, priority)
            return
        entry = self._waiting.get(key)
        if entry is not None:
            if priority > entry.priority:
                self._move_up(entry, priority)
                self._wake_one()  # it may have waited behind what nobody takes at the moment
            return
        self._enqueue(_Entry(key, priority, self._clock.monotonic()))
        if self._metrics is not None:
            self._metrics.added(len(self._waiting))
        self._wake_one()

    def _enqueue(self, entry: _Entry[K]) -> None:
        self._waiting[entry.key] = entry
        line = self._ready.get(entry.priority)
        if line is None:
            line = self._ready[entry.priority] = deque()
            self._priorities = sorted(self._ready, reverse=True)
        line.append(entry)

    def _move_up(self, entry: _Entry[K], priority: int) -> None:
        entry.taken = True
        self._enqueue(_Entry(entry.key, priority, entry.since))

    def add_after(self, key: K, seconds: float, priority: int = Priority.NEW) -> None:
        if self._closed:
            return
        if seconds <= 0:
            self.add(key, priority)
            return
        if self._metrics is not None:
            self._metrics.retried()
        due = self._clock.monotonic() + seconds
        before = self._due.get(key)
        if before is not None and before <= due:
            return
        self._due[key] = due
        self._order += 1
        heapq.heappush(self._delayed, (due, self._order, key, priority))
        if self._timer is None or due < self._timer_due:
            self._restart_timer(due)

    def add_rate_limited(self, key: K, priority: int = Priority.NEW) -> None:
        """Again after the key's back-off, which this call counts up."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        self.add_after(key, min(self._max_delay, self._base_delay * 2 ** min(failures, 60)), priority)

    def forget(self, key: K) -> None:
        """The key succeeded: its next failure starts the back-off anew."""
        self._failures.pop(key, None)

    def retry_now(self) -> None:
        """End the back-off of every key: those that wait are ready at once."""
        failures, self._failures = self._failures, {}
        for key in failures:
            if self._due.pop(key, None) is not None:
                self.add(key)

    def retries(self, key: K) -> int:
        return self._failures.get(key, 0)

    # delays

    def _restart_timer(self, due: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_due = due
        self._timer = asyncio.create_task(self._run_timer(), name=f"queue {self.name} timer")

    async def _run_timer(self) -> None:
        while self._delayed:
            self._timer_due = self._delayed[0][0]
            await self._clock.sleep(self._timer_due - self._clock.monotonic())
            self._release_due()
        self._timer = None

    def _release_due(self) -> None:
        now = self._clock.monotonic()
        while self._delayed and self._delayed[0][0] <= now:
            due, _, key, priority = heapq.heappop(self._delayed)
            if self._due.get(key) == due:
                del self._due[key]
                self.add(key, priority)

    # taking

    async def get(self) -> K:
        """The next key; give it back with `done`. QueueShutDown once the queue is shut down."""
        while not self._waiting:
            if self._closed:
                raise QueueShutDown(self.name)
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._getters.append(future)
            try:
                await future
            except asyncio.CancelledError:
                if future.done() and not future.cancelled():
                    self._wake_one()
                raise
        return self._take()

    def take(self) -> K | None:
        """The next key, if one is ready; give it back with `done`."""
        return self._take() if self._waiting else None

    def _take(self) -> K:
        for priority in self._priorities:
            line = self._ready[priority]
            while line:
                entry = line.popleft()
                if entry.taken:
                    continue
                key = entry.key
                del self._waiting[key]
                now = self._clock.monotonic()
                self._working[key] = now
                if self._metrics is not None:
                    self._metrics.taken(len(self._waiting), now - entry.since)
                return key
        raise RuntimeError(f"queue {self.name} counts keys that are in no line")

    def done(self, key: K) -> None:
        since = self._working.pop(key)
        if self._metrics is not None:
            self._metrics.finished(self._clock.monotonic() - since)
        priority = self._again.pop(key, None)
        if priority is not None:
            self.add(key, priority)

    def _wake_one(self) -> None:
        while self._getters:
            future = self._getters.popleft()
            if not future.done():
                future.set_result(None)
                return
        if self.on_ready is not None and self._waiting:
            self.on_ready()

    def shut_down(self) -> None:
        """Accept and return no more keys; a worker may still finish what it has."""
        self._closed = True
        self._waiting.clear()
        self._ready.clear()
        self._priorities = []
        self._again.clear()
        self._delayed.clear()
        self._due.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._getters:
            self._wake_one()
