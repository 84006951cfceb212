"""Writes events, in batches and behind the work that emits them.

Recorders only queue; events that equal one that waits raise its count. One task takes a batch of those that wait,
correlates them (see event_correlation) and writes them concurrently, so that a server's store commits them as a group:
a fifth of the CPU that they cost one by one.

Work comes first. A writer `behind` it lets Normal events gather, and while the event loop is busy writes few of them:
a burst of work is over sooner, and its events follow. When half the queue is used it writes on, busy or not, so that
none is lost. Warnings wait for nothing. What does not fit into the queue is dropped and counted.
"""

from __future__ import annotations

import asyncio
import itertools
import uuid
from collections import Counter, OrderedDict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from karmada.kube.client.client import Client
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.clock import Clock, RealClock
from karmada.kube.objects.errors import ApiError, NotFound, ServerTimeout, ServiceUnavailable, Timeout, TooManyRequests
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.names import dns1123_subdomain
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.event_correlation import Correlator, Recent, Subject
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.waiting import cancel_and_wait, with_timeout

EVENTS = GVR("", "v1", "events")
NORMAL: Final = "Normal"
QUEUE_FULL, TOO_MANY, NOT_WRITTEN = "queue-full", "too-many-of-one-object", "not-written"
"""Why an event was dropped."""

_WAITING = 100_000
_SMALL_BATCH, _LARGE_BATCH = 16, 128
_SHARE = 32
"""In between, a batch has this part of those that wait: one 32nd."""
_GATHER = 0.1
_BUSY_PAUSE = 0.25
"""Seconds between two small batches on a busy event loop."""
_BUSY_TURN = 0.001
"""Seconds that a turn of a busy event loop takes, on the average of some."""
_TURNS = 4
_LOG_EVERY = 10_000
_RETRIES = 12
_RETRY_PAUSE = 10.0
_PASSING = (ServiceUnavailable, ServerTimeout, Timeout, TooManyRequests, ConnectionFailed)

log = get_logger("events")
_SERIALS = itertools.count(1)


class Event(NamedTuple):
    """An event without its time. Less than half of what the object of the API takes, which is made to be written."""

    about: Subject
    type: str
    reason: str
    message: str
    host: str


@dataclass(slots=True)
class _Due:
    """An event that waits to be written, and how many equal ones it stands for."""

    event: Event
    version: str
    """The resourceVersion of the object."""
    first: float
    last: float
    count: int = 1
    serial: int = field(default_factory=_SERIALS.__next__)

    def add(self, other: _Due) -> None:
        """A later one that is to be written in one object with this."""
        self.event, self.version, self.last = other.event, other.version, other.last
        self.count += other.count


@dataclass(slots=True)
class _Written:
    name: str
    count: int
    first: str


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
        self._client = client
        self._most = waiting
        self._behind = behind
        self._warnings: OrderedDict[Event, _Due] = OrderedDict()
        self._normal: OrderedDict[Event, _Due] = OrderedDict()
        self._correlator = Correlator(self.clock)
        self._written: Recent[int, _Written] = Recent()
        self._emitted = asyncio.Event()
        self._urgent = asyncio.Event()
        """Set while there is a Warning, or somebody waits for the events: nothing gathers."""
        self._idle = asyncio.Event()
        self._idle.set()
        self._flushing = 0
        self._task: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        return len(self._warnings) + len(self._normal)

    def takes(self, component: str, type: str, reason: str) -> bool:  # noqa: A002 - the API's word
        """Whether there is space for an event; counted as dropped if not."""
        if len(self._line(type)) < self._most:
            return True
        self._drop(component, QUEUE_FULL, reason)
        return False

    def add(self, event: Event, version: str) -> None:
        """`version` is the resourceVersion of the object."""
        line, now = self._line(event.type), self.clock.now()
        due, known = _Due(event, version, now, now), line.get(event)
        if known is None:
            line[event] = due
        else:
            known.add(due)
        if event.type != NORMAL:
            self._urgent.set()
        self._idle.clear()
        self._emitted.set()

    def _line(self, type: str) -> OrderedDict[Event, _Due]:  # noqa: A002
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
            await cancel_and_wait(task)

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
            await self._write_batch(self._take(busy))
            if not self.waiting:
                self._emitted.clear()
                self._idle.set()
            self._calm()

    async def _let_work_go_first(self) -> bool:
        """Wait as long as that loses nothing; whether the event loop is busy."""
        if self._urgent.is_set() or len(self._normal) > self._most // 2:
            return False
        busy = await _is_busy(self.clock)
        if busy or self.waiting < _SMALL_BATCH:
            with suppress(TimeoutError):
                await with_timeout(self.clock, _set(self._urgent), _BUSY_PAUSE if busy else _GATHER)
        return busy

    def _take(self, busy: bool) -> list[_Due]:
        """Warnings first; in the order they were emitted in."""
        taken: list[_Due] = []
        size = _SMALL_BATCH if busy else min(max(_SMALL_BATCH, self.waiting // _SHARE), _LARGE_BATCH)
        for line in (self._warnings, self._normal):
            while line and len(taken) < size:
                taken.append(line.popitem(last=False)[1])
        taken.sort(key=_serial)
        return taken

    # writing

    async def _write_batch(self, batch: Iterable[_Due]) -> None:
        await asyncio.gather(*(self._write(key, due) for key, due in self._correlated(batch).items()))

    def _correlated(self, batch: Iterable[_Due]) -> dict[int, _Due]:
        """The writes that a batch needs, by the identity of the event that is written."""
        found: dict[int, _Due] = {}
        for due in batch:
            event = due.event
            correlated = self._correlator.correlate(event.about, event.type, event.reason, event.message)
            if correlated is None:
                self._drop(event.about.component, TOO_MANY, event.reason, due.count)
                continue
            due.event = event._replace(message=correlated.message)
            earlier = found.setdefault(correlated.key, due)
            if earlier is not due:
                earlier.add(due)
        return found

    async def _write(self, key: int, due: _Due) -> None:
        event = due.event
        for attempt in range(_RETRIES):
            try:
                await self._send(key, due)
                return
            except _PASSING as error:
                log.v(1).info("Event not written, trying again", attempt=attempt + 1, err=str(error))
                await self.clock.sleep(_RETRY_PAUSE)
            except ApiError as error:
                log.info("Event refused", reason=event.reason, err=error.message)
                return
            except Exception as error:
                log.exception("An event could not be written", error, reason=event.reason)
                return
        self._drop(event.about.component, NOT_WRITTEN, event.reason, due.count)

    async def _send(self, key: int, due: _Due) -> None:
        namespace = due.event.about.namespace or "default"
        written = self._written.get(key)
        if written is not None:
            patch = {
                "count": written.count + due.count,
                "lastTimestamp": rfc3339(due.last),
                "firstTimestamp": written.first,
                "message": due.event.message,
            }
            try:
                await self._client.patch(EVENTS, written.name, namespace, patch, type="strategic")
            except NotFound:
                log.v(2).info("The earlier event is gone, writing a new one", event=written.name)
            else:
                written.count += due.count
                return
        obj = _object(due, self._new_name(due.event.about.name), namespace)
        await self._client.create(EVENTS, obj)
        self._written.set(key, _Written(obj["metadata"]["name"], due.count, obj["firstTimestamp"]))

    def _new_name(self, subject: str) -> str:
        """Unique by the time in nanoseconds; events of the same moment differ by a serial number.

        A subject whose name could not begin an event's (a role's colons, too long a name) is left out of it.
        """
        name = f"{subject}.{int(self.clock.now() * 1_000_000) * 1000 + next(_SERIALS) % 1000:x}"
        return str(uuid.uuid4()) if dns1123_subdomain(name) else name


def _serial(due: _Due) -> int:
    return due.serial


def _object(due: _Due, name: str, namespace: str) -> Obj:
    event, about = due.event, due.event.about
    involved = {
        "kind": about.kind,
        "namespace": about.namespace,
        "name": about.name,
        "uid": about.uid,
        "apiVersion": about.api_version,
        "resourceVersion": due.version,
    }
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": namespace, "name": name},
        "involvedObject": {key: value for key, value in involved.items() if value},
        "reason": event.reason,
        "message": event.message,
        "source": {"component": about.component, **({"host": event.host} if event.host else {})},
        "firstTimestamp": rfc3339(due.first),
        "lastTimestamp": rfc3339(due.last),
        "count": due.count,
        "type": event.type,
        "reportingComponent": about.component,
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
