"""The event recorder: emits Events about objects, which are written in batches and behind the work that emits them.

Recorders only queue. Events are correlated when they are emitted, as Kubernetes' own recorder does it:
 - an event equal to an earlier one raises that one's count instead of becoming a new object, without a write of its own
   if the earlier one still waits;
 - more than ten different messages with the same reason on the same object within ten minutes are combined into one;
 - an object may have bursts of 25 events and one more every five minutes; what is beyond is dropped.
What is remembered for this is bounded; the oldest is forgotten first.

One task writes what waits, a batch at a time, as one group for each namespace: a server in this process stores that in
one transaction, and each event costs less than alone. So a batch has all that waits of some namespaces, not one of
each; namespaces take turns, and the events of each keep their order.

Work comes first. A writer `behind` it lets Normal events gather for a moment, and for some seconds while the event loop
is busy: a burst of work is over sooner, and its events follow. When a fifth of the queue is used it writes on, busy or
not, in batches that grow with what waits, so that none is lost. Warnings wait for nothing. What does not fit into the
queue is dropped and counted.
"""

from __future__ import annotations

import asyncio
import itertools
import socket
import uuid
from collections import Counter
from collections.abc import Callable, Container, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from operator import attrgetter
from typing import Final

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

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
from karmada.kube.objects.gvrs import EVENTS
from karmada.kube.objects.memo import Memo
from karmada.kube.objects.names import is_dns1123_subdomain
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.waiting import cancel_and_wait, with_timeout

NORMAL: Final = "Normal"
WARNING: Final = "Warning"
QUEUE_FULL, TOO_MANY, NOT_WRITTEN = "queue-full", "too-many-of-one-object", "not-written"
"""Why an event was dropped."""

_COMBINE_AFTER = 10
_COMBINE_WINDOW = 600.0
_BURST = 25
_REFILL_SECONDS = 300.0
_REMEMBERED = 4096
_WAITING = 100_000
_GATHERED_SHARE = 5
"""One fifth of the queue may gather behind the work: 20,000 events that wait take 17 MB."""
_BATCH, _LARGEST_BATCH = 256, 4_096
"""Events: the larger a batch, the less CPU for each; one of 256 has the event loop for some milliseconds."""
_BATCH_SHARE = 4
"""A batch has a quarter of the events beyond those that may gather: it settles where as many are written as emitted."""
_GATHER, _LONGEST_GATHER = 0.1, 40
"""Seconds, and how many times so long at most while the event loop is busy."""
_BUSY_TURN = 0.001
"""Seconds that a turn of a busy event loop takes, on the average of some."""
_TURNS = 4
_DIGITS = 16
"""The time in an event's name has so many: nanoseconds in hexadecimal, until the year 2554."""
_LOG_EVERY = 10_000
_RETRIES = 12
_RETRY_PAUSE = 10.0
_PASSING = (ServiceUnavailable, ServerTimeout, Timeout, TooManyRequests, ConnectionFailed)

log = get_logger("events")
_NUMBER = attrgetter("number")


@dataclass(slots=True, eq=False)
class Event:
    """Less than half of what the object of the API takes, which is made to be written."""

    component: str
    """The source."""
    api_version: str
    """This, the next four and `version` are those of the object that it is about."""
    kind: str
    namespace: str
    name: str
    uid: str
    version: str
    type: str
    reason: str
    message: str
    host: str
    last: float
    """The time of the last of those that it stands for."""
    first: float
    target: str
    """The namespace in which it is written."""
    count: int = 1
    """How many it stands for that correlate."""
    key: int = 0
    """What it correlates by."""
    written_as: str = ""
    """The name of the object that it becomes; kept, so that a create whose outcome is unknown can be repeated."""
    sent: bool = False
    """True if there was such a create."""
    number: int = field(default_factory=itertools.count().__next__)
    """Its place in the order of emission."""

    def repeat(self, later: Event) -> None:
        """Let it stand for a later one, too, which is written in one object with this."""
        self.version, self.message, self.host, self.last = later.version, later.message, later.host, later.last
        self.count += 1

    def object(self) -> Obj:
        involved = {
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
            "apiVersion": self.api_version,
            "resourceVersion": self.version,
        }
        first = rfc3339(self.first)
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"namespace": self.target, "name": self.written_as},
            "involvedObject": {key: value for key, value in involved.items() if value},
            "reason": self.reason,
            "message": self.message,
            "source": {"component": self.component, **({"host": self.host} if self.host else {})},
            "firstTimestamp": first,
            "lastTimestamp": first if self.last == self.first else rfc3339(self.last),
            "count": self.count,
            "type": self.type,
            "reportingComponent": self.component,
            "reportingInstance": self.host,
        }


class Correlator:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tokens: Memo[int, tuple[float, float]] = Memo(_REMEMBERED)
        """Tokens by object and source: how many are left, and since when."""
        self._similar: Memo[int, tuple[float, tuple[int, ...]]] = Memo(_REMEMBERED)
        """The time of the last one, and hashes of the messages."""

    def key_of(self, event: Event, waiting: Container[int]) -> int | None:
        """Return the key that the event has in common with those it correlates with; None if its object has too many.

        Keys are hashes. An event with a key that is `waiting` is written with the earlier one, and counts no more.
        """
        about = hash((event.component, event.api_version, event.kind, event.namespace, event.name, event.uid))
        similar = hash((about, event.type, event.reason))
        message = hash(event.message)
        key = hash((similar, message))
        if key in waiting:
            return key
        now = self._clock.monotonic()
        tokens, at = self._tokens.get(about) or (_BURST, now)
        tokens = min(_BURST, tokens + (now - at) / _REFILL_SECONDS)
        self._tokens.put(about, (tokens - 1 if tokens >= 1 else tokens, now))
        if tokens < 1:
            return None
        last, messages = self._similar.get(similar) or (now, ())
        if now - last > _COMBINE_WINDOW:
            messages = ()
        if len(messages) < _COMBINE_AFTER and message not in messages:
            messages += (message,)
        self._similar.put(similar, (now, messages))
        if len(messages) < _COMBINE_AFTER:
            return key
        event.message = f"(combined from similar events): {event.message}"
        return similar


class _Queue:
    """Events that wait, by namespace; those of one namespace in their order, and by their key."""

    def __init__(self) -> None:
        self.by_namespace: dict[str, dict[int, Event]] = {}
        self.size = 0

    def take(self, most: int) -> list[Event]:
        """Remove and return up to so many events of the namespaces whose turn it is."""
        taken: list[Event] = []
        while self.by_namespace and len(taken) < most:
            namespace = next(iter(self.by_namespace))
            events = self.by_namespace.pop(namespace)
            some = [*itertools.islice(events, most - len(taken))]
            taken += [events.pop(key) for key in some]
            if events:
                self.by_namespace[namespace] = events
        self.size -= len(taken)
        return taken


@dataclass(slots=True)
class _Written:
    name: str
    count: int
    first: float


class EventWriter(Collector):
    """A component, and a collector of metrics: start it to have events written."""

    name = "event-writer"

    def __init__(
        self, client: Client, *, clock: Clock | None = None, waiting: int = _WAITING, behind: bool = False
    ) -> None:
        """Make a writer; `waiting`: how many Normal events, and how many Warnings, may wait; others are dropped."""
        self.clock = clock or RealClock()
        self.dropped: Counter[tuple[str, str]] = Counter()
        """Events by component and cause."""
        self.merged: Counter[str] = Counter()
        """Events that raised the count of one that waited, by component."""
        self._client = client
        self._most = waiting
        self._gathered = waiting // _GATHERED_SHARE
        self._behind = behind
        self._warnings = _Queue()
        self._normal = _Queue()
        self._correlator = Correlator(self.clock)
        self._written: Memo[int, _Written] = Memo(_REMEMBERED)
        self._emitted = asyncio.Event()
        self._urgent = asyncio.Event()
        """Set while there is a Warning, or somebody waits for the events: nothing gathers."""
        self._idle = asyncio.Event()
        self._idle.set()
        self._flushing = 0
        self._task: asyncio.Task[None] | None = None

    def collect(self) -> Iterable[Metric]:
        dropped = CounterMetricFamily(
            "event_recorder_dropped_events", "Events that were not written", labels=["component", "cause"]
        )
        for labels, count in sorted(self.dropped.items()):
            dropped.add_metric(labels, count)
        merged = CounterMetricFamily(
            "event_recorder_merged_events",
            "Events that were written as a count of one that was still queued",
            labels=["component"],
        )
        for component, count in sorted(self.merged.items()):
            merged.add_metric([component], count)
        return dropped, merged

    def emit(
        self,
        component: str,
        host: str,
        obj: Obj,
        type: str,  # noqa: A002 - the API's word
        reason: str,
        message: str | Callable[[], str],
    ) -> None:
        """Queue an event about `obj`, or count it as dropped."""
        queue = self._normal if type == NORMAL else self._warnings
        if queue.size >= self._most:
            self._drop(component, QUEUE_FULL, reason)
            return
        metadata, now = obj["metadata"], self.clock.now()
        namespace = metadata.get("namespace") or ""
        event = Event(
            component,
            obj.get("apiVersion") or "",
            obj.get("kind") or "",
            namespace,
            metadata.get("name") or "",
            metadata.get("uid") or "",
            metadata.get("resourceVersion") or "",
            type,
            reason,
            message if isinstance(message, str) else message(),
            host,
            now,
            now,
            namespace or "default",
        )
        waiting = queue.by_namespace.setdefault(event.target, {})
        key = self._correlator.key_of(event, waiting)
        if key is None:
            self._drop(component, TOO_MANY, reason)
        elif key in waiting:
            waiting[key].repeat(event)
            self.merged[component] += 1
        else:
            event.key = key
            waiting[key] = event
            queue.size += 1
            self._idle.clear()
            self._emitted.set()
            if type != NORMAL:
                self._urgent.set()

    def _drop(self, component: str, cause: str, reason: str, count: int = 1) -> None:
        """Count what is dropped; it is logged once in a while, not each time."""
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
        if not (self._warnings.size or self._flushing):
            self._urgent.clear()

    async def _run(self) -> None:
        while True:
            await self._emitted.wait()
            if self._behind:
                await self._let_work_go_first()
            await self._write_batch(self._take())
            if not (self._warnings.size or self._normal.size):
                self._emitted.clear()
                self._idle.set()
            self._calm()

    async def _let_work_go_first(self) -> None:
        """Wait for more events as long as that loses nothing: a moment, or until the event loop is not busy."""
        for waited in range(_LONGEST_GATHER):
            if self._urgent.is_set() or self._normal.size > self._gathered:
                return
            if (waited or self._normal.size >= _BATCH) and not await _is_busy(self.clock):
                return
            with suppress(TimeoutError):
                await with_timeout(self.clock, self._urgent.wait(), _GATHER)

    def _take(self) -> list[Event]:
        """Return the next batch, in the order of emission: all Warnings that fit into it, and Normal events."""
        beyond = self._normal.size - self._gathered
        size = min(max(beyond // _BATCH_SHARE, _BATCH), _LARGEST_BATCH)
        warnings = self._warnings.take(size)
        return sorted(warnings + self._normal.take(size - len(warnings)), key=_NUMBER)

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
        """Write these; return those to be tried again later."""
        groups: dict[str, list[Event]] = {}
        repeated: list[tuple[Event, _Written]] = []
        for event in batch:
            written = self._written.get(event.key)
            if written is None:
                groups.setdefault(event.target, []).append(event)
            else:
                repeated.append((event, written))
        left: list[Event] = []
        raised = await asyncio.gather(*(self._raise_count(*one) for one in repeated), return_exceptions=True)
        for (event, _), error in zip(repeated, raised, strict=True):
            if isinstance(error, NotFound):
                log.v(2).info("The earlier event is gone, writing a new one", reason=event.reason)
                groups.setdefault(event.target, []).append(event)
            elif _is_passing(event, error):
                left.append(event)
        for some in await asyncio.gather(*(self._create(*one) for one in groups.items())):
            left += some
        return left

    async def _raise_count(self, event: Event, written: _Written) -> None:
        patch = {
            "count": written.count + event.count,
            "lastTimestamp": rfc3339(event.last),
            "firstTimestamp": rfc3339(written.first),
            "message": event.message,
        }
        await self._client.patch(EVENTS, written.name, event.target, patch, type="strategic")
        written.count += event.count

    async def _create(self, namespace: str, group: Sequence[Event]) -> list[Event]:
        """Create the events of a namespace and remember them; return those to be created again later."""
        self._give_names(group)
        outcomes: Sequence[BaseException | None]
        try:
            outcomes = await self._client.create_all(EVENTS, [event.object() for event in group], namespace)
            if len(outcomes) != len(group):
                raise ValueError(f"{len(outcomes)} outcomes for {len(group)} events")
        except Exception as error:  # noqa: BLE001 - it is the outcome of each
            outcomes = [error] * len(group)
        left: list[Event] = []
        for event, outcome in zip(group, outcomes, strict=True):
            if outcome is None or (isinstance(outcome, AlreadyExists) and event.sent):
                self._written.put(event.key, _Written(event.written_as, event.count, event.first))
                continue
            event.sent = _is_passing(event, outcome)
            if event.sent:
                left.append(event)
        return left

    def _give_names(self, events: Iterable[Event]) -> None:
        """Give names that are unique by the time in nanoseconds, to which the number of the event is added.

        A subject whose name could not begin an event's (a role's colons, too long a name) is left out of it.
        """
        moment = int(self.clock.now() * 1_000_000) * 1000
        for event in events:
            if not event.written_as:
                prefixed = _begins_a_name(event.name)
                event.written_as = f"{event.name}.{moment + event.number:x}" if prefixed else str(uuid.uuid4())


@lru_cache(maxsize=4096)
def _begins_a_name(subject: str) -> bool:
    """Return whether it can, with a dot and the digits of a time after it: there are many events of one object."""
    return is_dns1123_subdomain(f"{subject}.{'f' * _DIGITS}") is not None


def _is_passing(event: Event, error: BaseException | None) -> bool:
    """Return whether there was an error after which it is worth trying again; another one is logged."""
    if error is None or isinstance(error, _PASSING):
        return error is not None
    if isinstance(error, ApiError):
        log.info("Event refused", reason=event.reason, err=str(error))
    else:
        log.exception("An event could not be written", error, reason=event.reason)
    return False


async def _is_busy(clock: Clock) -> bool:
    """Return whether others use the event loop, by how long its next turns take."""
    began = clock.monotonic()
    for _ in range(_TURNS):
        await asyncio.sleep(0)
    return clock.monotonic() - began > _TURNS * _BUSY_TURN


class EventRecorder:
    """`component` is the source of its events; start it (or its writer) to have them written."""

    name = "event-recorder"

    def __init__(
        self,
        client: Client,
        component: str,
        *,
        clock: Clock | None = None,
        host: str | None = None,
        writer: EventWriter | None = None,
    ) -> None:
        """`writer`: one that several recorders share; else it has one of its own."""
        self.component = component
        self.host = socket.gethostname() if host is None else host
        self._writer = writer or EventWriter(client, clock=clock)

    def event(
        self,
        obj: Obj,
        type: str,  # noqa: A002 - the API's word
        reason: str,
        message: str | Callable[[], str],
        *,
        host: str = "",
    ) -> None:
        """Emit an event about `obj`; `type` is Normal or Warning. Never waits, never fails.

        `host` is where it happened, if that is not where the recorder runs. A message that is a function is not made
        for an event that is dropped.
        """
        self._writer.emit(self.component, host or self.host, obj, type, reason, message)

    @property
    def dropped(self) -> int:
        return sum(count for (component, _), count in self._writer.dropped.items() if component == self.component)

    async def start(self) -> None:
        await self._writer.start()

    async def stop(self) -> None:
        await self._writer.stop()

    async def flush(self) -> None:
        """Wait until every event emitted so far is written or dropped."""
        await self._writer.flush()
