"""A queue and workers for every member cluster, so that none waits for another.

Keys of a lane are worked on at the same time, up to `at_once`, never twice at once for a key; a failure is tried again
with the key's back-off. Lanes are made when a key for them comes and cost one sleeping task when there is nothing to
do; a worker exists only while it has a key. A member that answers slowly or not at all fills its own lane and no other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from karmada.kube.client.discovery import NoMatch
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.errors import ApiError, Conflict
from karmada.kube.runtime.controller import Done, Result
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.queue import Queue, QueueShutDown
from karmada.kube.runtime.waiting import cancel_and_wait, finish_within

K = TypeVar("K", bound=Hashable)


class _Lane(Generic[K]):
    __slots__ = ("dispatcher", "free", "queue")

    def __init__(self, queue: Queue[K], at_once: int) -> None:
        self.queue = queue
        self.free = asyncio.Semaphore(at_once)
        self.dispatcher: asyncio.Task[None] | None = None


class Lanes(Generic[K]):
    def __init__(
        self,
        name: str,
        reconcile: Callable[[K], Awaitable[Result | None]],
        lane_of: Callable[[K], str],
        clock: Clock,
        *,
        at_once: int = 64,
        base_delay: float = 0.005,
        max_delay: float = 1000.0,
    ) -> None:
        self.name = name
        self._reconcile = reconcile
        self._lane_of = lane_of
        self._clock = clock
        self._at_once = at_once
        self._delays = (base_delay, max_delay)
        self._lanes: dict[str, _Lane[K]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._running = False
        self.log = get_logger("controller").bind(controller=name)

    def add(self, key: K, priority: int = 0) -> None:
        self._lane(self._lane_of(key)).queue.add(key, priority)

    def add_after(self, key: K, seconds: float, priority: int = 0) -> None:
        self._lane(self._lane_of(key)).queue.add_after(key, seconds, priority)

    def retry_now(self, name: str) -> None:
        """What made the keys of a lane fail may be over: none of them waits any longer."""
        lane = self._lanes.get(name)
        if lane is not None:
            lane.queue.retry_now()

    def __len__(self) -> int:
        """Lanes there are."""
        return len(self._lanes)

    @property
    def idle(self) -> bool:
        """Nothing is ready and nobody works (delayed keys may remain)."""
        return all(lane.queue.idle for lane in self._lanes.values())

    @property
    def settled(self) -> bool:
        """Nothing is left to do at all."""
        return all(lane.queue.idle and not lane.queue.delayed for lane in self._lanes.values())

    # life

    def start(self) -> None:
        self._running = True
        for name, lane in self._lanes.items():
            self._start(name, lane)

    async def stop(self, grace: float = 2.0) -> None:
        """Take no new keys; what is under way may finish within `grace` seconds."""
        self._running = False
        dispatchers = [lane.dispatcher for lane in self._lanes.values() if lane.dispatcher is not None]
        for name in list(self._lanes):
            self.drop(name)
        await cancel_and_wait(*dispatchers)
        await finish_within(self._clock, list(self._tasks), grace)

    def drop(self, name: str) -> None:
        """Forget a lane and what waits in it; what is under way goes on."""
        lane = self._lanes.pop(name, None)
        if lane is not None:
            lane.queue.shut_down()
            if lane.dispatcher is not None:
                lane.dispatcher.cancel()

    def _lane(self, name: str) -> _Lane[K]:
        lane = self._lanes.get(name)
        if lane is None:
            first, most = self._delays
            queue: Queue[K] = Queue(f"{self.name} {name}", clock=self._clock, base_delay=first, max_delay=most)
            lane = self._lanes[name] = _Lane(queue, self._at_once)
            if self._running:
                self._start(name, lane)
        return lane

    def _start(self, name: str, lane: _Lane[K]) -> None:
        lane.dispatcher = asyncio.get_running_loop().create_task(self._dispatch(lane), name=f"{self.name} {name}")

    # work

    async def _dispatch(self, lane: _Lane[K]) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await lane.free.acquire()
            try:
                key = await lane.queue.get()
            except QueueShutDown:
                return
            task = loop.create_task(self._work(lane, key))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _work(self, lane: _Lane[K], key: K) -> None:
        try:
            await self._outcome(lane.queue, key)
        finally:
            lane.queue.done(key)
            lane.free.release()

    async def _outcome(self, queue: Queue[K], key: K) -> None:
        try:
            result = await self._reconcile(key) or Done
        except Conflict as error:
            self.log.v(1).info("Conflict, trying again", key=str(key), err=error.message)
            queue.add_rate_limited(key)
        except (ApiError, ConnectionFailed, NoMatch, TimeoutError) as error:
            self.log.error("Reconcile failed", error, key=str(key), retries=queue.retries(key))
            queue.add_rate_limited(key)
        except Exception as error:
            self.log.exception("Reconcile failed", error, key=str(key), retries=queue.retries(key))
            queue.add_rate_limited(key)
        else:
            queue.forget(key)
            if result.after is not None:
                queue.add_after(key, result.after)
