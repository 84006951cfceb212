"""Lanes: a controller's work queue, divided by a function of the key, with workers for each part.

A lane has a queue of its own and up to `limit` workers, so that one whose work hangs (an unreachable cluster) blocks no
other. Without a function there is one lane. Workers exist only while there are keys: one starts when a key is ready and
its lane has fewer than `limit`, takes keys until none is ready, and ends. An empty lane is dropped. So neither lanes
nor workers cost anything at rest. Many lanes share a number of workers (`total`): of a thousand clusters, each with a
connection for every worker, all are served, by a few workers each; and no more work at a time than there are slots.

Keys of the priorities BACKLOG and REPLAY are a backlog: a part of the workers handles them, in turns (see backlog),
while the others are there for what is new.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from functools import partial
from time import perf_counter
from typing import Generic, TypeVar

from karmada.kube.objects.clock import Clock
from karmada.kube.runtime.backlog import KEYS_IN_A_TURN, TURN_SECONDS, BacklogTurns, backlog_turns
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.queue import Priority, Queue, QueueMetrics
from karmada.kube.runtime.slots import Slots
from karmada.kube.runtime.waiting import finish_within

_LEAST = 2
"""Workers of each lane, however many lanes there are."""
_SLOTS = 256
"""Keys that are worked on at once, of all lanes, without those that take long (see slots)."""
_BEHIND_LEAST, _BEHIND_SHARE = 4, 8
"""Of a lane's workers one eighth, but not fewer than four, may handle its backlog."""
K = TypeVar("K", bound=Hashable)
log = get_logger("controller")


class _Lane(Generic[K]):
    __slots__ = ("behind", "following", "queue", "starting", "workers")

    def __init__(self, queue: Queue[K]) -> None:
        self.queue = queue
        self.workers = 0
        self.starting = 0
        """How many of the workers have not looked for a key yet."""
        self.behind = 0
        """How many of the workers handle the backlog."""
        self.following = 0
        """How many of these wait for a delivery."""

    @property
    def has_backlog_only(self) -> bool:
        top = self.queue.top
        return top is not None and top <= Priority.BACKLOG


class Lanes(Generic[K]):
    def __init__(
        self,
        name: str,
        work: Callable[[K], Awaitable[None]],
        *,
        limit: int,
        total: int = 2_048,
        clock: Clock,
        lane_of: Callable[[K], str] | None = None,
        order_of: Callable[[K], str] = lambda _key: "",
        base_delay: float = 0.005,
        max_delay: float = 1000.0,
        metrics: QueueMetrics | None = None,
    ) -> None:
        """`work` reconciles one key and must not raise; delays are those of Queue, and `metrics` are of all lanes.

        `order_of` a key: the name by which its turn comes, if it is of the backlog.
        `limit` is the number of workers of one lane, `total` of all, but each lane has two.
        """
        self.name = name
        self.limit = limit
        self._total = total
        self._slots = Slots(_SLOTS, clock)
        self._behind_limit = min(limit, max(_BEHIND_LEAST, limit // _BEHIND_SHARE))
        self.failed = False
        """A worker ended with an exception."""
        self._work = work
        self._lane_of = lane_of
        self._order_of = order_of
        self._clock = clock
        self._make_queue = partial(Queue[K], name, clock=clock, base_delay=base_delay, max_delay=max_delay)
        self._metrics = metrics
        self._lanes: dict[str, _Lane[K]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._task_name = f"controller {name}"
        self._loop: asyncio.AbstractEventLoop
        """That it is started in."""
        self._turns: BacklogTurns
        """Those of the loop."""
        self._running = False
        self._closed = False

    @property
    def takes_keys(self) -> bool:
        """Started, and not shut down."""
        return self._running and not self._closed

    # figures

    def __len__(self) -> int:
        """Keys ready for a worker."""
        return sum(len(lane.queue) for lane in self._lanes.values())

    @property
    def lanes(self) -> int:
        """Lanes in use."""
        return len(self._lanes)

    @property
    def working(self) -> int:
        return sum(lane.queue.working for lane in self._lanes.values())

    @property
    def delayed(self) -> int:
        return sum(lane.queue.delayed for lane in self._lanes.values())

    @property
    def idle(self) -> bool:
        """Nothing is ready and no worker is busy (delayed keys may remain)."""
        return all(lane.queue.idle for lane in self._lanes.values())

    def longest_running(self) -> float:
        """How long the oldest key has been with a worker."""
        return max((lane.queue.longest_running() for lane in self._lanes.values()), default=0.0)

    def unfinished(self) -> float:
        """Seconds of work under way, over all workers."""
        return sum(lane.queue.unfinished() for lane in self._lanes.values())

    def retries(self, key: K) -> int:
        lane = self._lanes.get(self._name_of(key))
        return 0 if lane is None else lane.queue.retries(key)

    # keys

    def add(self, key: K, priority: int = Priority.NEW) -> None:
        self._lane(key).queue.add(key, priority)

    def add_after(self, key: K, seconds: float, priority: int = Priority.NEW) -> None:
        self._lane(key).queue.add_after(key, seconds, priority)

    def add_rate_limited(self, key: K, priority: int = Priority.NEW) -> None:
        """Again after the key's back-off, which this call counts up."""
        self._lane(key).queue.add_rate_limited(key, priority)

    def forget(self, key: K) -> None:
        """The key succeeded: its next failure starts the back-off anew."""
        lane = self._lanes.get(self._name_of(key))
        if lane is not None:
            lane.queue.forget(key)

    def retry_now(self, lane: str) -> None:
        """What made the keys of a lane fail may be over: their back-off ends now."""
        found = self._lanes.get(lane)
        if found is not None:
            found.queue.retry_now()

    def drop(self, lane: str) -> None:
        """Forget a lane and what waits in it; what its workers have they finish."""
        found = self._lanes.pop(lane, None)
        if found is not None:
            found.queue.shut_down()

    def _name_of(self, key: K) -> str:
        return "" if self._lane_of is None else self._lane_of(key)

    def _lane(self, key: K) -> _Lane[K]:
        name = "" if self._lane_of is None else self._lane_of(key)
        lane = self._lanes.get(name)
        if lane is None:
            lane = _Lane(self._make_queue(metrics=self._metrics))
            lane.queue.on_ready = partial(self._wake, name, lane)
            if self._closed:
                lane.queue.shut_down()
            else:
                self._lanes[name] = lane
        return lane

    # workers

    def start(self) -> None:
        """Keys that were added before are worked on from now on."""
        self._loop = asyncio.get_running_loop()
        self._turns = backlog_turns()
        self._running = True
        for name, lane in self._lanes.items():
            for _ in range(min(self.limit, len(lane.queue))):
                self._wake(name, lane)

    def shut_down(self) -> None:
        """Take no key any more; a worker may finish what it has."""
        self._closed = True
        for lane in self._lanes.values():
            lane.queue.shut_down()

    async def stop(self, grace: float) -> None:
        """Shut down; what is under way may finish within `grace` seconds."""
        self.shut_down()
        await finish_within(self._clock, list(self._tasks), grace)

    def _wake(self, name: str, lane: _Lane[K]) -> None:
        if self._running and lane.workers < self._share and not self._has_enough(lane):
            lane.workers += 1
            lane.starting += 1
            self._tasks.add(self._loop.create_task(self._run(name, lane), name=self._task_name))

    @property
    def _share(self) -> int:
        """How many workers a lane may have now."""
        return min(self.limit, max(_LEAST, self._total // max(1, len(self._lanes))))

    def _has_enough(self, lane: _Lane[K]) -> bool:
        """Whether all is left to the workers of the backlog: what follows no delivery, to those that wait for none."""
        if lane.behind < self._behind_limit:
            return False
        top = lane.queue.top
        if top is None or top > Priority.BACKLOG:
            return False
        return top <= Priority.REPLAY or lane.behind - lane.following >= self._behind_limit

    async def _run(self, name: str, lane: _Lane[K]) -> None:
        queue = lane.queue
        lane.starting -= 1
        try:
            while len(queue) and not self._has_enough(lane):
                if len(queue) > 1 + lane.starting:
                    self._wake(name, lane)  # other lanes may have ended since: there are more workers for this one
                if lane.has_backlog_only:
                    await self._run_behind(lane)
                else:
                    BacklogTurns.urgent += 1
                    await self._take_one(queue)
        except Exception as error:
            self.failed = True
            log.exception("A worker failed", error, controller=self.name)
        finally:
            lane.workers -= 1
            if self._lane_of is not None and queue.empty and self._lanes.get(name) is lane:
                del self._lanes[name]
            task = asyncio.current_task(self._loop)
            if task is not None:
                self._tasks.discard(task)

    async def _run_behind(self, lane: _Lane[K]) -> None:
        """Some keys of the backlog, or what is more urgent when the turn comes; more only while none has waited."""
        lane.behind += 1
        first, top = lane.queue.first, lane.queue.top
        try:
            await self._next_turn("" if first is None else self._order_of(first), lane, top)
            granted = self._turns.iteration
            if self._goes_ahead(lane):
                return  # others have taken the key that it waited for
            end = perf_counter() + TURN_SECONDS
            for _ in range(KEYS_IN_A_TURN):
                await self._take_one(lane.queue)
                if granted != self._turns.iteration or perf_counter() > end:
                    break
                if not lane.has_backlog_only or self._goes_ahead(lane):
                    break
        finally:
            lane.behind -= 1

    def _goes_ahead(self, lane: _Lane[K]) -> bool:
        """Whether the next key would go ahead of a delivery that it follows."""
        first, top = lane.queue.first, lane.queue.top
        if first is None or top is None or top > Priority.REPLAY:
            return False
        return self._turns.goes_ahead(self._order_of(first))

    async def _next_turn(self, name: str, lane: _Lane[K], priority: int | None) -> None:
        if priority is None or priority > Priority.REPLAY:
            await self._turns.next(name)
            return
        lane.following += 1
        try:
            await self._turns.next(name, following=True)
        finally:
            lane.following -= 1

    async def _take_one(self, queue: Queue[K]) -> None:
        key = queue.take()
        if key is None:
            return
        try:
            slot = self._slots.take() or await self._slots.enter()
            try:
                await self._work(key)
            finally:
                self._slots.leave(slot)
        finally:
            queue.done(key)
