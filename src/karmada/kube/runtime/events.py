"""The event recorder: emits Events about objects without flooding the server.

`event` only queues; one task writes. Before writing, events are correlated as Kubernetes' own recorder does it:
 - an event equal to an earlier one raises that one's count instead of becoming a new object;
 - more than ten different messages with the same reason on the same object within ten minutes are combined into one;
 - an object may have bursts of 25 events and one more every five minutes; what is beyond is dropped.
What is remembered for this is bounded; the oldest is forgotten first.

A controller that changes thousands of objects would write as many Normal events, each a request like those of its work.
A recorder with a `backlog` writes them for a tenth of the time only: the slower the server, the fewer. Warnings pass.
"""

from __future__ import annotations

import asyncio
import itertools
import socket
import uuid
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Generic, NamedTuple, TypeVar

from karmada.kube.client.client import Client
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.clock import Clock, RealClock
from karmada.kube.objects.errors import ApiError, NotFound, ServerTimeout, ServiceUnavailable, Timeout, TooManyRequests
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.names import dns1123_subdomain
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.waiting import cancel_and_wait, with_timeout

EVENTS = GVR("", "v1", "events")
NORMAL: Final = "Normal"
WARNING: Final = "Warning"

_COMBINE_AFTER = 10
_COMBINE_WINDOW = 600.0
_BURST = 25
_REFILL_SECONDS = 300.0
_REMEMBERED = 4096
_QUEUE_SIZE = 1000
_PAUSE = 9.0
"""How many times as long as the writing of a Normal event took passes before the next."""
_LONGEST_PAUSE = 1.0
_RETRIES = 12
_RETRY_PAUSE = 10.0
_PASSING = (ServiceUnavailable, ServerTimeout, Timeout, TooManyRequests, ConnectionFailed)

log = get_logger("events")
_SERIALS = itertools.count(1)
K = TypeVar("K")
V = TypeVar("V")


class _Recent(Generic[K, V]):
    """A dict of bounded size that forgets what was not used for longest."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._entries: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        if key in self._entries:
            self._entries.move_to_end(key)
        return self._entries.get(key)

    def set(self, key: K, value: V) -> None:
        self._entries[key] = value
        self._entries.move_to_end(key)
        if len(self._entries) > self._size:
            self._entries.popitem(last=False)

    def __len__(self) -> int:
        return len(self._entries)


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


@dataclass(slots=True)
class _Similar:
    messages: list[int] = field(default_factory=list)
    """Hashes of them."""
    last: float = 0.0


@dataclass(slots=True)
class _Written:
    name: str
    count: int
    first: str


class _Waiting(NamedTuple):
    """Of those that wait, the least is written first."""

    behind: bool
    """Warnings first."""
    serial: int
    event: Obj


async def _set(event: asyncio.Event) -> None:
    await event.wait()


def reference(obj: Obj) -> Obj:
    """An ObjectReference to an object."""
    metadata = obj["metadata"]
    found = {
        "kind": obj.get("kind"),
        "namespace": metadata.get("namespace"),
        "name": metadata.get("name"),
        "uid": metadata.get("uid"),
        "apiVersion": obj.get("apiVersion"),
        "resourceVersion": metadata.get("resourceVersion"),
    }
    return {key: value for key, value in found.items() if value}


class EventRecorder:
    """`component` is the source of its events; start it (or give it to a Manager) to have them written."""

    name = "event-recorder"

    def __init__(
        self,
        client: Client,
        component: str,
        *,
        clock: Clock | None = None,
        host: str | None = None,
        waiting: int = _QUEUE_SIZE,
        backlog: int | None = None,
    ) -> None:
        """`waiting`: how many events may wait to be written before further ones are dropped.

        `backlog`: for sources whose work comes first: while so many wait, Normal events are left out, minor ones while
        half as many do, and there is a pause after each. None: Normal events are written like others.
        """
        self._backlog = waiting if backlog is None else backlog
        self._pause = 0.0 if backlog is None else _PAUSE
        self._resume_at = 0.0
        self._warnings = 0
        self._warned = asyncio.Event()
        self.component = component
        self.host = socket.gethostname() if host is None else host
        self.dropped = 0
        self._client = client
        self._clock = clock or RealClock()
        self._queue: asyncio.PriorityQueue[_Waiting] = asyncio.PriorityQueue(waiting)
        self._buckets: _Recent[int, _Bucket] = _Recent(_REMEMBERED)
        self._similar: _Recent[int, _Similar] = _Recent(_REMEMBERED)
        self._written: _Recent[int, _Written] = _Recent(_REMEMBERED)
        self._task: asyncio.Task[None] | None = None

    def event(
        self,
        obj: Obj,
        type: str,  # noqa: A002 - the API's word
        reason: str,
        message: str | Callable[[], str],
        *,
        host: str = "",
        minor: bool = False,
    ) -> None:
        """Emit an event about `obj`; `type` is Normal or Warning. Never waits, never fails.

        `host` is where it happened, if that is not where the recorder runs. A `minor` event is left out first.
        A message that is a function is made only if it is written.
        """
        most = self._backlog // 2 if minor else self._backlog
        if self._queue.full() or (type == NORMAL and self._queue.qsize() >= most):
            self._drop(reason)
            return
        host = host or self.host
        now = rfc3339(self._clock.now())
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"namespace": obj["metadata"].get("namespace") or "default"},
            "involvedObject": reference(obj),
            "reason": reason,
            "message": message if isinstance(message, str) else message(),
            "source": {"component": self.component, **({"host": host} if host else {})},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
            "type": type,
            "reportingComponent": self.component,
            "reportingInstance": host,
        }
        self._queue.put_nowait(_Waiting(self._pause > 0 and type == NORMAL, next(_SERIALS), event))
        if type != NORMAL:
            self._warnings += 1
            self._warned.set()

    def _drop(self, reason: str) -> None:
        """Logged once in a while, not each time."""
        self.dropped += 1
        if self.dropped == 1 or self.dropped % 10_000 == 0:
            log.warning("Too many events at once, some are dropped", dropped=self.dropped, last=reason)

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
        await self._queue.join()

    async def _run(self) -> None:
        while True:
            await self._rest()
            event = (await self._queue.get()).event
            began = self._clock.monotonic()
            try:
                await self._record(event)
            except Exception as error:
                log.exception("An event could not be written", error, reason=event["reason"])
            finally:
                self._queue.task_done()
                self._written_in(self._clock.monotonic() - began, event["type"])

    def _written_in(self, seconds: float, type: str) -> None:  # noqa: A002 - the API's word
        if type == NORMAL:
            self._resume_at = self._clock.monotonic() + min(seconds * self._pause, _LONGEST_PAUSE)
        else:
            self._warnings -= 1

    async def _rest(self) -> None:
        """Until the pause after a Normal event is over, or there is a Warning to write."""
        left = self._resume_at - self._clock.monotonic()
        if left <= 0 or self._warnings:
            return
        self._warned.clear()
        with suppress(TimeoutError):
            await with_timeout(self._clock, _set(self._warned), left)

    # correlation

    async def _record(self, event: Obj) -> None:
        about = tuple(
            str(event["involvedObject"].get(k, "")) for k in ("apiVersion", "kind", "namespace", "name", "uid")
        )
        if not self._has_token(hash(about)):
            self.dropped += 1
            return
        group = (*about, event["type"], event["reason"])
        if self._combined(hash(group), event["message"]):
            event = {**event, "message": f"(combined from similar events): {event['message']}"}
            key = hash(group)
        else:
            key = hash((*group, event["message"]))
        await self._write(key, event)

    def _has_token(self, about: int) -> bool:
        now = self._clock.monotonic()
        bucket = self._buckets.get(about) or _Bucket(float(_BURST), now)
        tokens = min(float(_BURST), bucket.tokens + (now - bucket.at) / _REFILL_SECONDS)
        allowed = tokens >= 1
        self._buckets.set(about, _Bucket(tokens - 1 if allowed else tokens, now))
        return allowed

    def _combined(self, group: int, text: str) -> bool:
        now = self._clock.monotonic()
        message = hash(text)
        similar = self._similar.get(group)
        if similar is None or now - similar.last > _COMBINE_WINDOW:
            similar = _Similar()
        similar.last = now
        if len(similar.messages) < _COMBINE_AFTER and message not in similar.messages:
            similar.messages.append(message)
        self._similar.set(group, similar)
        return len(similar.messages) >= _COMBINE_AFTER

    # writing

    async def _write(self, key: int, event: Obj) -> None:
        for attempt in range(_RETRIES):
            try:
                await self._send(key, event)
                return
            except _PASSING as error:
                log.v(1).info("Event not written, trying again", attempt=attempt + 1, err=str(error))
                await self._clock.sleep(_RETRY_PAUSE)
            except ApiError as error:
                log.info("Event refused", reason=event["reason"], err=error.message)
                return
        self.dropped += 1

    async def _send(self, key: int, event: Obj) -> None:
        namespace = event["metadata"]["namespace"]
        written = self._written.get(key)
        if written is not None:
            patch = {
                "count": written.count + 1,
                "lastTimestamp": event["lastTimestamp"],
                "firstTimestamp": written.first,
                "message": event["message"],
            }
            try:
                await self._client.patch(EVENTS, written.name, namespace, patch, type="strategic")
            except NotFound:
                log.v(2).info("The earlier event is gone, writing a new one", event=written.name)
            else:
                written.count += 1
                return
        name = self._new_name(event["involvedObject"].get("name", ""))
        await self._client.create(EVENTS, {**event, "metadata": {**event["metadata"], "name": name}})
        self._written.set(key, _Written(name, 1, event["firstTimestamp"]))

    def _new_name(self, subject: str) -> str:
        """Unique by the time in nanoseconds; events of the same moment differ by a serial number.

        A subject whose name could not begin an event's (a role's colons, too long a name) is left out of it.
        """
        name = f"{subject}.{int(self._clock.now() * 1_000_000) * 1000 + next(_SERIALS) % 1000:x}"
        return str(uuid.uuid4()) if dns1123_subdomain(name) else name
