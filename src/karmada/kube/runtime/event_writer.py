"""Writes events, in batches and behind the work that emits them.

Recorders only queue. Events are correlated before they wait (see event_correlation), some at a time, which costs each
half as much as in the midst of other work: one that correlates with another that waits raises its count, and there is
one write for both. One task takes batches of those that wait and creates them as one group for each namespace, which a
server in this process stores in one transaction; over the network there are some at a time on their way.

Work comes first. A writer `behind` it lets Normal events gather, and while the event loop is busy writes few of them:
a burst of work is over sooner, and its events follow. When a fifth of the queue is used it writes on, busy or not, so
that none is lost: a batch with each turn of the loop, the larger the more wait. It does not wait for those under way,
which takes some turns, and those of a busy loop are long. Warnings wait for nothing. What does not fit into the queue
is dropped and counted.
"""

from __future__ import annotations

import asyncio
import itertools
import uuid
from collections import Counter
from collections.abc import Awaitable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Final, TypeVar

from karmada.kube.client.client import Client
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.clock import Clock, RealClock
from karmada.kube.objects.errors import (
    AlreadyExists,
    ApiError,
    NotFound,
    ServerTimeout,
    ServiceUnavailable,
    Timeout,
    TooManyRequests,
)
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.memo import Memo
from karmada.kube.objects.names import dns1123_subdomain
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.event_correlation import REMEMBERED, Correlator, identity
from karmada.kube.runtime.event_queue import Event, EventQueue
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.waiting import cancel_and_wait, with_timeout

EVENTS = GVR("", "v1", "events")
NORMAL: Final = "Normal"
QUEUE_FULL, TOO_MANY, NOT_WRITTEN = "queue-full", "too-many-of-one-object", "not-written"
"""Why an event was dropped."""

_WAITING = 100_000
_UNCORRELATED = 128
"""Normal events that are correlated together, at the latest when they are to be written."""
_SMALL_BATCH, _LARGE_BATCH, _LARGEST_BATCH = 16, 256, 4_096
"""Events: the larger a batch, the less CPU for each; one of 256 has the event loop for some milliseconds."""
_BATCH_SHARE = 16
"""Of the events beyond those that may gather, so many in a batch: it settles where as many are written as emitted."""
_GATHERED_SHARE = 5
"""Of the queue, one fifth may gather behind the work: 20,000 events that wait take 17 MB. As many may be under way."""
_GATHER = 0.1
_BUSY_PAUSE = 0.25
"""Seconds between two small batches on a busy event loop."""
_BUSY_TURN = 0.001
"""Seconds that a turn of a busy event loop takes, on the average of some."""
_TURNS = 4
_DIGITS = 16
"""Of the time in an event's name: nanoseconds in hexadecimal, until the year 2554."""
_LOG_EVERY = 10_000
_RETRIES = 12
_RETRY_PAUSE = 10.0
_Failure = ApiError | ConnectionFailed
_PASSING = (ServiceUnavailable, ServerTimeout, Timeout, TooManyRequests, ConnectionFailed)

log = get_logger("events")
_SERIALS = itertools.count(1)
T = TypeVar("T")


@dataclass(slots=True)
class _Written:
    name: str
    count: int
    first: float


class EventWriter:
    """A component: start it to have events written."""

    name = "event-writer"

    def __init__(
        self, client: Client, *, clock: Clock | None = None, waiting: int = _WAITING, behind: bool = False
    ) -> None:
        """`waiting`: how many Normal events, and how many Warnings, may wait before further ones are dropped."""
        self.clock = clock or RealClock()
        self.dropped: Counter[tuple[str, str]] = Counter()
        """Events by component and cause."""
        self.merged: Counter[str] = Counter()
        """Events that raised the count of one that waited, by component."""
        self._client = client
        self._most = waiting
        self._gathered = waiting // _GATHERED_SHARE
        self._behind = behind
        self._uncorrelated: list[Event] = []
        self._warnings = EventQueue()
        self._normal = EventQueue()
        self._batches: dict[asyncio.Task[None], Counter[str]] = {}
        """Those under way: how many events of which namespaces. None is in two: a repeated event finds the first."""
        self._correlator = Correlator(self.clock)
        self._written: Memo[int, _Written] = Memo(REMEMBERED)
        self._emitted = asyncio.Event()
        self._urgent = asyncio.Event()
        """Set while there is a Warning, or somebody waits for the events: nothing gathers."""
        self._idle = asyncio.Event()
        self._idle.set()
        self._flushing = 0
        self._task: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        return len(self._uncorrelated) + len(self._warnings) + len(self._normal)

    def takes(self, component: str, type: str, reason: str) -> bool:  # noqa: A002 - the API's word
        """Whether there is space for an event; counted as dropped if not."""
        line = self._line(type)
        if len(self._uncorrelated) + len(line) < self._most:
            return True
        self._correlate()
        if len(line) < self._most:
            return True
        self._drop(component, QUEUE_FULL, reason)
        return False

    def add(self, event: Event) -> None:
        events = self._uncorrelated
        if not events:  # else it is known that there are some
            self._idle.clear()
            self._emitted.set()
        events.append(event)
        if event.type != NORMAL or len(events) >= _UNCORRELATED:
            self._correlate()

    def _correlate(self) -> None:
        events, self._uncorrelated = self._uncorrelated, []
        for event in events:
            self._correlate_one(event)

    def _correlate_one(self, event: Event) -> None:
        line = self._line(event.type)
        about, similar, key = identity(event)
        waits = line.get(key)
        if waits is None:
            if not self._correlator.allows(about):
                self._drop(event.component, TOO_MANY, event.reason)
                return
            if self._correlator.combines(similar, event.message):
                key, event.message = similar, f"(combined from similar events): {event.message}"
                waits = line.get(key)
        if waits is not None:
            waits.repeat(event)
            self.merged[event.component] += 1
            return
        event.key = key
        line.add(event)
        if event.type != NORMAL:
            self._urgent.set()

    def _line(self, type: str) -> EventQueue:  # noqa: A002
        return self._normal if type == NORMAL else self._warnings

    def _drop(self, component: str, cause: str, reason: str, count: int = 1) -> None:
        """Logged once in a while, not each time."""
        before = self.dropped[component, cause]
        after = self.dropped[component, cause] = before + count
        if before == 0 or before // _LOG_EVERY != after // _LOG_EVERY:
            log.warning("Events are dropped", component=component, cause=cause, dropped=after, last=reason)

    # life

    async def start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=self.name)

    async def stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            await cancel_and_wait(task, *self._batches)

    async def flush(self) -> None:
        """Wait until every event emitted so far is written or dropped."""
        self._flushing += 1
        self._urgent.set()
        try:
            await self._idle.wait()
        finally:
            self._flushing -= 1
            self._calm()

    def _calm(self) -> None:
        if not (self._warnings or self._flushing):
            self._urgent.clear()

    async def _run(self) -> None:
        while True:
            await self._emitted.wait()
            busy = self._behind and await self._let_work_go_first()
            self._correlate()
            batch = self._take(busy)
            if batch:
                self._begin(batch)
            if not self.waiting:
                self._emitted.clear()
            if not self._batches:
                self._idle.set()  # what was emitted is dropped
            elif not batch or not self._has_many or self._under_way() >= self._gathered:
                await asyncio.wait(self._batches, return_when=asyncio.FIRST_COMPLETED)
            else:
                await asyncio.sleep(0)

    @property
    def _has_many(self) -> bool:
        """More Normal events wait than may gather."""
        return len(self._normal) > self._gathered

    def _under_way(self) -> int:
        return sum(namespaces.total() for namespaces in self._batches.values())

    async def _let_work_go_first(self) -> bool:
        """Wait as long as that loses nothing; whether the event loop is busy."""
        if self._urgent.is_set() or self._has_many:
            return False
        busy = await _is_busy(self.clock)
        if busy or self.waiting < _SMALL_BATCH:
            with suppress(TimeoutError):
                await with_timeout(self.clock, _set(self._urgent), _BUSY_PAUSE if busy else _GATHER)
        return busy

    def _take(self, busy: bool) -> list[Event]:
        """Warnings first; in the order they were emitted in. None if all that wait are of namespaces under way."""
        beyond = (len(self._normal) - self._gathered) // _BATCH_SHARE
        size = _SMALL_BATCH if busy else min(max(beyond, _LARGE_BATCH), _LARGEST_BATCH)
        under_way = set[str]().union(*self._batches.values())
        taken = self._warnings.take(size, under_way)
        taken += self._normal.take(size - len(taken), under_way)
        taken.sort(key=attrgetter("serial"))
        return taken

    def _begin(self, batch: Sequence[Event]) -> None:
        task = asyncio.get_running_loop().create_task(self._write_batch(batch), name=self.name)
        self._batches[task] = Counter(event.target for event in batch)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._batches[task]
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log.error("Events could not be written", error)
        if not (self.waiting or self._batches):
            self._idle.set()
        self._calm()

    # writing

    async def _write_batch(self, batch: Sequence[Event]) -> None:
        for attempt in range(_RETRIES):
            if attempt:
                await self.clock.sleep(_RETRY_PAUSE)
            batch = await self._sent(batch)
            if not batch:
                return
            log.v(1).info("Events not written, trying again", events=len(batch), attempt=attempt + 1)
        for event in batch:
            self._drop(event.component, NOT_WRITTEN, event.reason, event.count)

    async def _sent(self, batch: Iterable[Event]) -> list[Event]:
        """Write these; those to be tried again later are returned."""
        new: list[Event] = []
        repeated: list[tuple[Event, _Written]] = []
        for event in batch:
            written = self._written.get(event.key)
            if written is None:
                new.append(event)
            else:
                repeated.append((event, written))
        left: list[Event] = []
        for (event, _), error in zip(repeated, await _each(self._raise_count(*one) for one in repeated), strict=True):
            if isinstance(error, NotFound):
                log.v(2).info("The earlier event is gone, writing a new one", reason=event.reason)
                new.append(event)
            elif _is_passing(event, error):
                left.append(event)
        for some in await _each(self._create(namespace, group) for namespace, group in _by_namespace(new).items()):
            left += some
        return left

    async def _raise_count(self, event: Event, written: _Written) -> _Failure | None:
        patch = {
            "count": written.count + event.count,
            "lastTimestamp": rfc3339(event.last),
            "firstTimestamp": rfc3339(written.first),
            "message": event.message,
        }
        try:
            await self._client.patch(EVENTS, written.name, event.target, patch, type="strategic")
        except (ApiError, ConnectionFailed) as error:
            return error
        except Exception as error:
            log.exception("An event could not be written", error, reason=event.reason)
            return None
        written.count += event.count
        return None

    async def _create(self, namespace: str, group: Sequence[Event]) -> list[Event]:
        """Those to be tried again later."""
        for event in group:
            event.written_as = event.written_as or self._new_name(event.name)
        objects = [_object(event) for event in group]
        outcomes: Sequence[_Failure | None]
        try:
            outcomes = await self._client.create_all(EVENTS, objects, namespace)
        except (ApiError, ConnectionFailed) as failure:
            outcomes = [failure] * len(group)
        except Exception as error:
            log.exception("Events could not be written", error, events=len(group))
            return []
        left: list[Event] = []
        for event, outcome in zip(group, outcomes, strict=True):
            if outcome is None or (isinstance(outcome, AlreadyExists) and event.sent):
                self._written.put(event.key, _Written(event.written_as, event.count, event.first))
            elif _is_passing(event, outcome):
                event.sent = True
                left.append(event)
        return left

    def _new_name(self, subject: str) -> str:
        """Unique by the time in nanoseconds; events of the same moment differ by a serial number.

        A subject whose name could not begin an event's (a role's colons, too long a name) is left out of it.
        """
        if not _begins_a_name(subject):
            return str(uuid.uuid4())
        return f"{subject}.{int(self.clock.now() * 1_000_000) * 1000 + next(_SERIALS) % 1000:x}"


@lru_cache(maxsize=4096)
def _begins_a_name(subject: str) -> bool:
    """Whether it can, with a dot and the digits of a time after it: there are many events of one object."""
    return not dns1123_subdomain(f"{subject}.{'f' * _DIGITS}")


def _by_namespace(events: Iterable[Event]) -> dict[str, list[Event]]:
    groups: dict[str, list[Event]] = {}
    for event in events:
        groups.setdefault(event.target, []).append(event)
    return groups


def _is_passing(event: Event, error: _Failure | None) -> bool:
    """Whether there was an error after which it is worth trying again; another one is logged."""
    if error is None or isinstance(error, _PASSING):
        return error is not None
    log.info("Event refused", reason=event.reason, err=str(error))
    return False


async def _each(work: Iterable[Awaitable[T]]) -> list[T]:
    """At the same time."""
    return await asyncio.gather(*work)


def _object(event: Event) -> Obj:
    involved = {
        "kind": event.kind,
        "namespace": event.namespace,
        "name": event.name,
        "uid": event.uid,
        "apiVersion": event.api_version,
        "resourceVersion": event.version,
    }
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": event.target, "name": event.written_as},
        "involvedObject": {key: value for key, value in involved.items() if value},
        "reason": event.reason,
        "message": event.message,
        "source": {"component": event.component, **({"host": event.host} if event.host else {})},
        "firstTimestamp": rfc3339(event.first),
        "lastTimestamp": rfc3339(event.last),
        "count": event.count,
        "type": event.type,
        "reportingComponent": event.component,
        "reportingInstance": event.host,
    }


async def _is_busy(clock: Clock) -> bool:
    """Whether others use the event loop: how long its next turns take."""
    began = clock.monotonic()
    for _ in range(_TURNS):
        await asyncio.sleep(0)
    return clock.monotonic() - began > _TURNS * _BUSY_TURN


async def _set(event: asyncio.Event) -> None:
    await event.wait()
