"""The work queue of a controller: which key is reconciled next, and by how many workers at once.

Every key is there once, and never in two workers: one that is added while a worker has it comes back when the worker is
done, so no change is lost. Ready keys leave by priority, then in order of arrival; a key added again with a higher
priority moves up. Delayed keys sit in a heap until the clock reaches them (one sleeping task, only while something
waits); of two delays for a key the earlier one counts. Failures of a key double its delay, until `forget`.

Keys are divided into lanes by a function of the key, so that one whose work hangs (an unreachable cluster) blocks no
other; without a function there is one lane. Each has up to `limit` workers. These exist only while there are keys: one
starts when a key is ready and its lane has fewer than `limit`, takes keys until none is ready, and ends. An empty lane
is dropped. So neither lanes nor workers cost anything at rest. Many lanes share a number of workers (`total`): of a
thousand clusters, each with a connection for every worker, all are served, by a few workers each; and no more work at a
time than the semaphore allows.

Keys of the priorities BACKLOG and REPLAY are a backlog: a part of the workers handles them, in turns (see backlog),
while the others are there for what is new. `next_step` decides.

A key that cannot be reconciled yet is parked: until what it waits for is there (`park`), or until another key of its
group is done (`enter`), where a group may have only a part of a lane's workers.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterable, Iterator
from enum import Enum, IntEnum
from time import perf_counter
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from karmada.kube.objects.clock import Clock
from karmada.kube.runtime.back_off import BackOff
from karmada.kube.runtime.backlog import KEYS_IN_A_TURN, TURN_SECONDS, Backlog, backlog
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.limits import GroupShares, LeakySemaphore
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.time_slice import in_slices
from karmada.kube.runtime.waiting import cancel_and_wait, finish_within

if TYPE_CHECKING:
    from karmada.kube.runtime.metrics import QueueMetrics

_LEAST = 2
"""Workers of each lane, however many lanes there are."""
_AT_ONCE = 256
"""Keys that are worked on at once, of all lanes, without those that take long (see limits)."""
_BEHIND_LEAST, _BEHIND_SHARE = 4, 8
"""One eighth of a lane's workers, but not fewer than four, may handle its backlog."""
_BACK_OFF = BackOff()
K = TypeVar("K", bound=Hashable)
log = get_logger("controller")


class Priority(IntEnum):
    """The order in which keys leave a queue; any number above BACKLOG is as urgent as NEW, and a higher one first."""

    NEW = 0
    """A change, or a retry: it waits for no turn of the backlog."""
    BACKLOG = -(1 << 40)
    """An existing object at the start, or one of many that a change concerns: it takes turns with all others."""
    REPLAY = -(1 << 41)
    """As BACKLOG, and not before existing objects have been delivered up to its name."""


class Step(Enum):
    """The next step of a worker of a lane that has a key."""

    END = "end"
    TAKE = "take the first key"
    TURN = "wait for a turn of the backlog"


def next_step(top: int, behind: int, replaying: int, most_behind: int) -> Step:
    """Decide what a worker of a lane does next.

    `top` is the priority of the lane's first key. `behind` of its workers handle the backlog, and `replaying` of these
    wait for a delivery; `most_behind` may. Those that wait for one do not count where the first key need not wait for
    it.
    """
    if top > Priority.BACKLOG:
        return Step.TAKE
    counted = behind if top <= Priority.REPLAY else behind - replaying
    return Step.TURN if counted < most_behind else Step.END


class _Lane(Generic[K]):
    """The keys of one lane in every state, and who works on them."""

    __slots__ = (
        "again", "behind", "due", "failures", "lines", "name", "priorities", "replaying", "starting", "waiting",
        "workers", "working",
    )  # fmt: skip

    def __init__(self, name: str) -> None:
        self.name = name
        self.waiting: dict[K, int] = {}
        """The priorities of the keys that are ready."""
        self.lines: dict[int, OrderedDict[K, float]] = {}
        """The same keys by priority, in order of arrival, with the time since when; none is empty."""
        self.priorities: list[int] = []
        """Those of the lines, the highest first."""
        self.working: dict[K, float] = {}
        """Since when."""
        self.again: dict[K, int] = {}
        """The priorities of those that were added while a worker has them."""
        self.due: dict[K, float] = {}
        self.failures: dict[K, int] = {}
        self.workers = 0
        self.starting = 0
        """How many of the workers have not looked for a key yet."""
        self.behind = 0
        """How many of the workers handle the backlog."""
        self.replaying = 0
        """How many of these wait for a delivery."""

    @property
    def first(self) -> K:
        """Return the next key, which stays where it is."""
        return next(iter(self.lines[self.priorities[0]]))

    def put(self, key: K, priority: int, since: float) -> None:
        """Add a key that is ready at the end of its line."""
        self.waiting[key] = priority
        line = self.lines.get(priority)
        if line is None:
            line = self.lines[priority] = OrderedDict()
            self.priorities = sorted(self.lines, reverse=True)
        line[key] = since

    def take(self, key: K) -> float:
        """Remove a key that is ready; return since when it is."""
        priority = self.waiting.pop(key)
        line = self.lines[priority]
        since = line.pop(key)
        if not line:
            del self.lines[priority]
            self.priorities.remove(priority)
        return since

    def clear(self) -> None:
        """Forget everything but what workers have."""
        self.waiting.clear()
        self.lines.clear()
        self.priorities = []
        self.again.clear()
        self.due.clear()
        self.failures.clear()


class WorkQueue(Generic[K]):
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
        back_off: BackOff = _BACK_OFF,
        metrics: QueueMetrics | None = None,
    ) -> None:
        """`work` reconciles one key and must not raise.

        `order_of` a key: the name by which its turn comes, if it is of the backlog.
        `limit` is the number of workers of one lane, `total` of all, but each lane has two.
        """
        self.name = name
        self.limit = limit
        self.failed = False
        """A worker ended with an exception."""
        self._total = total
        self._semaphore = LeakySemaphore(_AT_ONCE, clock)
        self._most_behind = min(limit, max(_BEHIND_LEAST, limit // _BEHIND_SHARE))
        self._work = work
        self._lane_of = lane_of
        self._order_of = order_of
        self._clock = clock
        self._back_off = back_off
        self._metrics = metrics
        self._lanes: dict[str, _Lane[K]] = {}
        self._delayed: list[tuple[float, int, _Lane[K], K, int]] = []
        self._order = 0
        self._timer: asyncio.Task[None] | None = None
        self._timer_due = 0.0
        self._parked: dict[str, dict[str, set[str]]] = {}
        """Parked names by what they wait for and by namespace: there may be a million, and caches have names anyway."""
        self._groups: GroupShares[K] = GroupShares(self.add)
        self._walks: deque[Callable[[], Awaitable[None]]] = deque()
        self._adding: set[asyncio.Task[None]] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._task_name = f"controller {name}"
        self._loop: asyncio.AbstractEventLoop
        """That it is started in."""
        self._backlog: Backlog
        """That of the loop."""
        self._running = False
        self._closed = False

    @property
    def takes_keys(self) -> bool:
        """Started, and not shut down."""
        return self._running and not self._closed

    # figures

    def __len__(self) -> int:
        """Keys ready for a worker."""
        return sum(len(lane.waiting) for lane in self._lanes.values())

    @property
    def lanes(self) -> int:
        """Lanes in use."""
        return len(self._lanes)

    @property
    def working(self) -> int:
        return sum(len(lane.working) for lane in self._lanes.values())

    @property
    def delayed(self) -> int:
        return sum(len(lane.due) for lane in self._lanes.values())

    @property
    def idle(self) -> bool:
        """Return whether nothing is being added or ready and no worker is busy (delayed keys may remain)."""
        return not self._adding and not any(lane.waiting or lane.working for lane in self._lanes.values())

    def longest_running(self) -> float:
        """Return how long the oldest key has been with a worker."""
        now = self._clock.monotonic()
        return max((now - since for since in self._begun()), default=0.0)

    def unfinished(self) -> float:
        """Seconds of work under way, over all workers."""
        now = self._clock.monotonic()
        return sum(now - since for since in self._begun())

    def _begun(self) -> Iterator[float]:
        return (since for lane in self._lanes.values() for since in lane.working.values())

    def retries(self, key: K) -> int:
        lane = self._lanes.get("" if self._lane_of is None else self._lane_of(key))
        return 0 if lane is None else lane.failures.get(key, 0)

    # keys

    def add(self, key: K, priority: int = Priority.NEW) -> None:
        if self._closed:
            return
        lane = self._lane(key)
        if key in lane.working:
            before = lane.again.get(key)
            lane.again[key] = priority if before is None else max(before, priority)
            return
        before = lane.waiting.get(key)
        if before is None:
            lane.put(key, priority, self._clock.monotonic())
            if self._metrics is not None:
                self._metrics.adds.value += 1
        elif priority > before:
            lane.put(key, priority, lane.take(key))
        else:
            return
        self._wake(lane)

    def add_all(
        self, keys: Iterable[K], priority: int = Priority.NEW, *, when: Callable[[K], bool] = lambda _key: True
    ) -> None:
        """Add those of many keys for which `when` holds, in slices; `keys` must stay as they are until then."""
        if not self._closed:
            self._start_adding(self._add_all(keys, priority, when))

    def add_from(self, walk: Callable[[], Awaitable[None]]) -> None:
        """Let a walk find keys and add them: one walk after the other."""
        if self._closed:
            return
        self._walks.append(walk)
        if len(self._walks) == 1:
            self._start_adding(self._run_walks())

    def _start_adding(self, adding: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(adding, name=f"{self._task_name} adding")
        self._adding.add(task)
        task.add_done_callback(self._adding.discard)

    async def _run_walks(self) -> None:
        while self._walks:
            try:
                await self._walks[0]()
            except Exception as error:
                log.exception("Keys could not be found", error, controller=self.name)
            self._walks.popleft()

    async def _add_all(self, keys: Iterable[K], priority: int, when: Callable[[K], bool]) -> None:
        async for key in in_slices(keys):
            if when(key):
                self.add(key, priority)

    def add_after(self, key: K, seconds: float, priority: int = Priority.NEW) -> None:
        if self._closed:
            return
        if seconds <= 0:
            self.add(key, priority)
            return
        if self._metrics is not None:
            self._metrics.retries.value += 1
        lane, due = self._lane(key), self._clock.monotonic() + seconds
        before = lane.due.get(key)
        if before is not None and before <= due:
            return
        lane.due[key] = due
        self._order += 1
        heapq.heappush(self._delayed, (due, self._order, lane, key, priority))
        if self._timer is None or due < self._timer_due:
            self._restart_timer(due)

    def add_rate_limited(self, key: K, priority: int = Priority.NEW) -> None:
        """Again after the key's back-off, which this call counts up."""
        lane = self._lane(key)
        failures = lane.failures.get(key, 0)
        lane.failures[key] = failures + 1
        self.add_after(key, self._back_off.pause(failures), priority)

    def forget(self, key: K) -> None:
        """Record that the key succeeded: its next failure starts the back-off anew."""
        lane = self._lanes.get("" if self._lane_of is None else self._lane_of(key))
        if lane is not None:
            lane.failures.pop(key, None)

    def retry_now(self, name: str) -> None:
        """End the back-off of the keys of a lane: what made them fail may be over."""
        lane = self._lanes.get(name)
        if lane is None:
            return
        failures, lane.failures = lane.failures, {}
        for key in failures:
            if lane.due.pop(key, None) is not None:
                self.add(key)

    def drop(self, name: str) -> None:
        """Forget a lane and what waits in it; what its workers have they finish."""
        lane = self._lanes.pop(name, None)
        if lane is not None:
            lane.clear()

    def _lane(self, key: K) -> _Lane[K]:
        name = "" if self._lane_of is None else self._lane_of(key)
        lane = self._lanes.get(name)
        if lane is None:
            lane = self._lanes[name] = _Lane(name)
        return lane

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
            due, _, lane, key, priority = heapq.heappop(self._delayed)
            if lane.due.get(key) == due:
                del lane.due[key]
                self.add(key, priority)

    # parking

    def park(self: WorkQueue[Key], key: Key, until: str) -> None:
        """Keep a key until `resume` is called with what it waits for."""
        self._parked.setdefault(until, {}).setdefault(key.namespace, set()).add(key.name)

    def resume(self: WorkQueue[Key], until: str) -> None:
        """Add the keys that are parked until this."""
        parked = self._parked.pop(until, None)
        if parked:
            self.add_all(Key(namespace, name) for namespace, names in parked.items() for name in names)

    def drop_parked(self, until: str) -> None:
        """Forget the keys that are parked until this."""
        self._parked.pop(until, None)

    def enter(self, key: K, group: Hashable, share: int) -> bool:
        """Return whether a key may be worked on now: no more keys of its group than one of `share` workers of a lane.

        One that may not is added when another of its group is done.
        """
        return self._groups.take(key, group, max(1, self.limit // share))

    def drop_groups(self, concerns: Callable[[Hashable], bool]) -> None:
        """Forget groups, with the keys that are parked in them."""
        self._groups.drop(concerns)

    # life

    def start(self) -> None:
        """Keys that were added before are worked on from now on."""
        self._loop = asyncio.get_running_loop()
        self._backlog = backlog()
        self._running = True
        for lane in list(self._lanes.values()):
            for _ in range(min(self.limit, len(lane.waiting))):
                self._wake(lane)

    def shut_down(self) -> None:
        """Take no key any more; a worker may finish what it has."""
        self._closed = True
        for lane in self._lanes.values():
            lane.clear()
        self._delayed.clear()
        self._walks.clear()
        for adding in self._adding:
            adding.cancel()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def stop(self, grace: float) -> None:
        """Shut down; what is under way may finish within `grace` seconds."""
        self.shut_down()
        await cancel_and_wait(*self._adding)
        await finish_within(self._clock, list(self._tasks), grace)

    # workers

    def _wake(self, lane: _Lane[K]) -> None:
        """Start another worker for a lane that has a key, unless it has its share of the workers."""
        share = min(self.limit, max(_LEAST, self._total // max(1, len(self._lanes))))
        if not self._running or lane.workers >= share:
            return
        if next_step(lane.priorities[0], lane.behind, lane.replaying, self._most_behind) is not Step.END:
            lane.workers += 1
            lane.starting += 1
            self._tasks.add(self._loop.create_task(self._run(lane), name=self._task_name))

    async def _run(self, lane: _Lane[K]) -> None:
        lane.starting -= 1
        try:
            while lane.priorities:
                step = next_step(lane.priorities[0], lane.behind, lane.replaying, self._most_behind)
                if step is Step.END:
                    break
                if len(lane.waiting) > 1 + lane.starting:
                    self._wake(lane)  # other lanes may have ended since: there are more workers for this one
                if step is Step.TURN:
                    await self._run_behind(lane)
                else:
                    Backlog.urgent += 1
                    await self._take_one(lane)
        except Exception as error:
            self.failed = True
            log.exception("A worker failed", error, controller=self.name)
        finally:
            lane.workers -= 1
            is_empty = not (lane.waiting or lane.working or lane.due or lane.failures)
            if self._lane_of is not None and is_empty and self._lanes.get(lane.name) is lane:
                del self._lanes[lane.name]
            task = asyncio.current_task(self._loop)
            if task is not None:
                self._tasks.discard(task)

    async def _run_behind(self, lane: _Lane[K]) -> None:
        """Run some keys of the backlog, or what is more urgent when the turn comes; more only while none has waited."""
        lane.behind += 1
        try:
            await self._next_turn(lane)
            granted = self._backlog.iteration
            if self._goes_ahead(lane):
                return  # others have taken the key that it waited for
            end = perf_counter() + TURN_SECONDS
            for _ in range(KEYS_IN_A_TURN):
                if lane.priorities:
                    await self._take_one(lane)
                if granted != self._backlog.iteration or perf_counter() > end or not lane.priorities:
                    break
                if lane.priorities[0] > Priority.BACKLOG or self._goes_ahead(lane):
                    break
        finally:
            lane.behind -= 1

    def _goes_ahead(self, lane: _Lane[K]) -> bool:
        """Return whether the next key would go ahead of a delivery that it follows."""
        if not lane.priorities or lane.priorities[0] > Priority.REPLAY:
            return False
        return self._backlog.goes_ahead(self._order_of(lane.first))

    async def _next_turn(self, lane: _Lane[K]) -> None:
        name = self._order_of(lane.first)
        if lane.priorities[0] > Priority.REPLAY:
            await self._backlog.turn(name)
            return
        lane.replaying += 1
        try:
            await self._backlog.turn(name, replay=True)
        finally:
            lane.replaying -= 1

    async def _take_one(self, lane: _Lane[K]) -> None:
        key, begun = lane.first, self._clock.monotonic()
        since = lane.take(key)
        lane.working[key] = begun
        if self._metrics is not None:
            self._metrics.waited.observe(begun - since)
        try:
            slot = self._semaphore.take() or await self._semaphore.enter()
            try:
                await self._work(key)
            finally:
                self._semaphore.leave(slot)
        finally:
            del lane.working[key]
            if self._metrics is not None:
                self._metrics.worked.observe(self._clock.monotonic() - begun)
            self._groups.give_up(key)
            priority = lane.again.pop(key, None)
            if priority is not None:
                self.add(key, priority)
