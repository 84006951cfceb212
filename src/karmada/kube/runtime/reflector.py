"""List once, then watch, for as long as it takes: the loop that keeps a copy of one resource current.

A stream that ends is resumed from the last version seen. When the server no longer has that version (410), the resource
is listed again; failures are retried after growing pauses. What is listed, and what becomes of an event, is the
subclass's: an informer keeps objects and calls handlers, others keep bytes.
"""

from __future__ import annotations

import asyncio
import random
from abc import ABC, abstractmethod

from karmada.kube.client.discovery import NoMatch
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.errors import ApiError, Expired, Gone, NotFound, Timeout
from karmada.kube.objects.gvk import GVK, GVR
from karmada.kube.runtime.back_off import Attempts, BackOff
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.waiting import cancel_and_wait

log = get_logger("informer")
EVENTS_IN_A_ROW = 512
"""Events after which others get their turn on the event loop."""
_SHORT_WATCH = 1.0
_WATCH_TIMEOUT = (300, 600)


class WatchFailed(Exception):
    """A watch stream that is invalid or ends too soon; it is retried after a pause."""


class Reflector(ABC):
    def __init__(self, gvr: GVR | GVK, clock: Clock, *, optional: bool = False) -> None:
        """Make one; `optional` is for kinds that the server may not have: no objects, until a later list has some."""
        self.gvr = gvr
        self.resource_version = ""
        """How far it has come; "" until the first list of a history is complete."""
        self.last_error: Exception | None = None
        self._optional = optional
        self._clock = clock
        self._attempts = Attempts(clock, BackOff(0.2, 30.0))
        self.running = False
        """True from the start until it is stopped."""
        self._task: asyncio.Task[None] | None = None
        self._events = 0
        """Events so far; a watch without any that ends at once is a failure."""

    @abstractmethod
    async def _list(self) -> None:
        """Make the copy equal to a list of the server, and set `resource_version`."""

    @abstractmethod
    async def _watch_once(self) -> None:
        """Apply the events after `resource_version`, and move it, until the server ends the stream."""

    @abstractmethod
    async def _not_served(self) -> None:
        """Drop all objects of an optional resource that the server does not have."""

    @abstractmethod
    def forget_history(self) -> None:
        """Forget versions seen so far: the server may be another one."""

    # life

    def start(self) -> None:
        if self._task is None:
            self.running = True
            self._task = asyncio.create_task(self._run(), name=f"informer {self._named}")

    async def stop(self) -> None:
        """End the watch; what is cached stays as it is, and nothing is notified after this returns."""
        self.running = False
        task, self._task = self._task, None
        if task is not None:
            await cancel_and_wait(task)

    def retry_now(self) -> None:
        """Try again at once: the server is back."""
        self._attempts.cut_short()

    @property
    def _named(self) -> str:
        gvr = self.gvr
        return str(gvr.group_resource) if isinstance(gvr, GVR) else str(gvr.group_kind)

    @staticmethod
    def _watch_seconds() -> int:
        """For how long a stream is requested: at random, so that not all of them end at once."""
        return random.randint(*_WATCH_TIMEOUT)

    async def _run(self) -> None:
        while True:
            try:
                await self._list()
                self._attempts.reset()
                await self._watch_on()
            except (Expired, Gone) as error:
                log.v(2).info("Watch history is gone, listing again", resource=self._named, err=error.message)
            except (ApiError, ConnectionFailed, WatchFailed, NoMatch) as error:
                if self._optional and isinstance(error, NotFound | NoMatch):
                    await self._not_served()
                else:
                    self.last_error = error
                    log.info("List or watch failed, trying again", resource=self._named, err=str(error))
                await self._attempts.pause()
            except Exception as error:
                self.last_error = error
                log.exception("List or watch failed unexpectedly, trying again", error, resource=self._named)
                await self._attempts.pause()

    async def _watch_on(self) -> None:
        """Watch, and resume whenever the server ends the stream; returns only by an exception."""
        while True:
            started = self._clock.monotonic()
            before = self._events
            try:
                await self._watch_once()
            except (Expired, Gone):
                raise
            except Timeout as error:
                if error.has_cause("ResourceVersionTooLarge"):
                    self.forget_history()
                    raise
                await self._pause_watch(error)
            except (ApiError, ConnectionFailed) as error:
                if isinstance(error, ApiError) and error.http_code in (400, 403, 404, 405, 422):
                    raise
                await self._pause_watch(error)
            else:
                if self._events == before and self._clock.monotonic() - started < _SHORT_WATCH:
                    await self._pause_watch(WatchFailed("the watch ended at once and without an event"))

    async def _pause_watch(self, error: Exception) -> None:
        self.last_error = error
        log.v(2).info("Watch failed, resuming", resource=self._named, err=str(error))
        await self._attempts.pause()
