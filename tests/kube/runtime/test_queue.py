"""One queue: every key once and in one worker, by priority, after delays; parts of it in other files beside this."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karmada.kube.objects.clock import FakeClock, RealClock
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.metrics import Metrics, QueueMetrics
from karmada.kube.runtime.queue import Priority, Step, WorkQueue, next_step
from tests.support.eventually import eventually


class Work:
    """Records the keys, and holds them while it is closed."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.open = asyncio.Event()
        self.open.set()

    async def __call__(self, key: str) -> None:
        self.begun.append(key)
        await self.open.wait()


@pytest.fixture
def work() -> Work:
    return Work()


Make = Callable[..., WorkQueue[str]]


@pytest.fixture
def make(work: Work, clock: FakeClock) -> Make:
    def make(*, limit: int = 1, metrics: QueueMetrics | None = None) -> WorkQueue[str]:
        return WorkQueue("test", work, limit=limit, clock=clock, metrics=metrics)

    return make


async def drained(queue: WorkQueue[str], work: Work) -> list[str]:
    """The keys that are ready, in the order in which they leave."""
    before = len(work.begun)
    queue.start()
    await eventually(lambda: queue.idle)
    return work.begun[before:]


async def test_a_key_added_twice_is_worked_on_once(make: Make, work: Work) -> None:
    queue = make()
    for key in "aba":
        queue.add(key)
    assert await drained(queue, work) == ["a", "b"]


async def test_higher_priorities_leave_first_and_equal_ones_in_order(make: Make, work: Work) -> None:
    queue = make()
    for key, priority in (("low", -10), ("first", 0), ("high", 5), ("second", 0)):
        queue.add(key, priority)
    assert await drained(queue, work) == ["high", "first", "second", "low"]


async def test_a_waiting_key_moves_up_with_a_higher_priority_and_never_down(make: Make, work: Work) -> None:
    queue = make()
    queue.add("a")
    queue.add("b")
    queue.add("b", 3)
    queue.add("b", -3)
    assert await drained(queue, work) == ["b", "a"]


async def test_a_key_added_while_it_is_worked_on_comes_back_with_the_highest_priority(make: Make, work: Work) -> None:
    queue = make()
    work.open.clear()
    queue.start()
    queue.add("a")
    await eventually(lambda: work.begun == ["a"])
    queue.add("a", 7)
    queue.add("a", 1)
    queue.add("b", 5)
    assert len(queue) == 1
    work.open.set()
    await eventually(lambda: queue.idle)
    assert work.begun == ["a", "a", "b"]


async def test_a_delayed_key_appears_when_its_time_has_come(make: Make, work: Work, clock: FakeClock) -> None:
    queue = make()
    queue.add_after("late", 60)
    queue.add_after("soon", 10)
    await clock.advance(9.9)
    assert len(queue) == 0
    await clock.advance(0.1)
    assert await drained(queue, work) == ["soon"]
    await clock.advance(50)
    assert work.begun == ["soon", "late"]
    await queue.stop(0)


async def test_of_two_delays_for_a_key_the_earlier_one_counts(make: Make, work: Work, clock: FakeClock) -> None:
    queue = make()
    for seconds in (60, 5, 30):
        queue.add_after("a", seconds)
    await clock.advance(5)
    assert await drained(queue, work) == ["a"]
    await clock.advance(100)
    assert work.begun == ["a"]
    assert queue.delayed == 0


async def test_back_off_doubles_from_five_milliseconds_to_a_thousand_seconds_and_forget_starts_it_over(
    make: Make, work: Work, clock: FakeClock
) -> None:
    queue, waits = make(), []
    queue.start()
    for tries in range(22):
        before = clock.monotonic()
        queue.add_rate_limited("a")
        while len(work.begun) == tries:
            await clock.advance(max(0.0, queue._timer_due - clock.monotonic()))
            await asyncio.sleep(0)
        waits.append(clock.monotonic() - before)
    assert waits[:4] == pytest.approx([0.005, 0.01, 0.02, 0.04], abs=1e-6)
    assert waits[-1] == pytest.approx(1000)
    assert queue.retries("a") == 22
    queue.forget("a")
    assert queue.retries("a") == 0
    await queue.stop(0)


async def test_shutting_down_drops_what_waits(make: Make, work: Work, clock: FakeClock) -> None:
    queue = make()
    queue.add("ready")
    queue.add_after("later", 5)
    queue.shut_down()
    queue.add("x")
    await clock.advance(5)
    assert await drained(queue, work) == []


async def test_metrics_record_wait_and_work(make: Make, work: Work, clock: FakeClock) -> None:
    metrics = Metrics().controller("test").queue
    queue = make(metrics=metrics)
    work.open.clear()
    queue.add("a")
    await clock.advance(2)
    queue.start()
    await eventually(lambda: work.begun == ["a"])
    await clock.advance(3)
    assert queue.longest_running() == queue.unfinished() == 3
    queue.add_rate_limited("a")
    work.open.set()
    await eventually(lambda: queue.idle)
    assert (metrics.adds.value, metrics.retries.value) == (1, 1)
    assert (metrics.waited.counts.count(1), metrics.waited.total) == (1, 2)
    assert (metrics.worked.counts.count(1), metrics.worked.total) == (1, 3)
    await queue.stop(0)


# --- parking ---------------------------------------------------------------------------------------------------------


async def test_parked_keys_wait_for_what_they_are_parked_until() -> None:
    begun: list[Key] = []

    async def work(key: Key) -> None:
        begun.append(key)

    queue: WorkQueue[Key] = WorkQueue("test", work, limit=1, clock=RealClock())
    queue.start()
    for until, key in (("m1", Key("a", "x")), ("m1", Key("b", "x")), ("m2", Key("a", "y")), ("m3", Key("a", "z"))):
        queue.park(key, until)
    queue.drop_parked("m3")
    for until in ("m1", "m3", "nothing"):
        queue.resume(until)
    await eventually(lambda: len(begun) == 2)
    assert set(begun) == {Key("a", "x"), Key("b", "x")}
    queue.resume("m1")
    queue.resume("m2")
    await eventually(lambda: len(begun) == 3)
    assert begun[2] == Key("a", "y")
    await queue.stop(0)


async def test_a_group_has_a_share_of_the_workers_and_passes_it_on() -> None:
    begun: list[str] = []
    gates = {key: asyncio.Event() for key in "abcd"}

    async def work(key: str) -> None:
        if key == "d" or queue.enter(key, "slow", 4):
            begun.append(key)
            await gates[key].wait()

    queue: WorkQueue[str] = WorkQueue("test", work, limit=8, clock=RealClock())
    queue.start()
    for key in "abcd":
        queue.add(key)
    await eventually(lambda: begun == ["a", "b", "d"])
    gates["a"].set()
    await eventually(lambda: begun == ["a", "b", "d", "c"])
    for gate in gates.values():
        gate.set()
    await eventually(lambda: queue.idle)
    await queue.stop(0)


# --- what is next ----------------------------------------------------------------------------------------------------

_PRIORITIES = st.sampled_from([1, Priority.NEW, -5])


@given(st.lists(st.tuples(st.integers(0, 9), _PRIORITIES), max_size=60))
def test_the_next_key_is_the_oldest_of_the_highest_priority(added: list[tuple[int, int]]) -> None:
    wanted: dict[int, tuple[int, int]] = {}
    for at, (key, priority) in enumerate(added):
        if key not in wanted or -priority < wanted[key][0]:
            wanted[key] = (-priority, at)
    begun: list[int] = []

    async def work(key: int) -> None:
        begun.append(key)

    async def run() -> None:
        queue: WorkQueue[int] = WorkQueue("test", work, limit=1, clock=RealClock())
        for key, priority in added:
            queue.add(key, priority)
        queue.start()
        await eventually(lambda: queue.idle)

    asyncio.run(run())
    assert begun == sorted(wanted, key=wanted.__getitem__)


@given(
    st.sampled_from([1, Priority.NEW, -5, Priority.BACKLOG, Priority.REPLAY]),
    st.integers(0, 10),
    st.integers(0, 10),
    st.integers(1, 8),
)
def test_what_a_worker_does_next(top: int, behind: int, replaying: int, most_behind: int) -> None:
    replaying = min(replaying, behind)
    step = next_step(top, behind, replaying, most_behind)
    if top > Priority.BACKLOG:
        assert step is Step.TAKE, "what is new waits for no turn, however long the backlog"
    elif behind < most_behind:
        assert step is Step.TURN, "a backlog has its part of the workers"
    elif top == Priority.REPLAY or not replaying:
        assert step is Step.END, "and no more"
    else:
        assert (step is Step.TURN) == (behind - replaying < most_behind), "but for those that wait for a delivery"


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(-2, 2), st.booleans()), max_size=40), st.integers(1, 4))
def test_no_key_is_lost_and_none_is_ever_in_two_workers(steps: list[tuple[int, int, bool]], workers: int) -> None:
    async def run() -> None:
        versions: dict[int, int] = {}
        handled: dict[int, int] = {}
        busy: set[int] = set()

        async def work(key: int) -> None:
            assert key not in busy
            busy.add(key)
            seen = versions[key]
            await asyncio.sleep(0)
            handled[key] = seen
            busy.discard(key)

        queue: WorkQueue[int] = WorkQueue("test", work, limit=workers, clock=RealClock())
        queue.start()
        for key, priority, let_run in steps:
            versions[key] = versions.get(key, 0) + 1
            queue.add(key, priority)
            if let_run:
                await asyncio.sleep(0)
        await eventually(lambda: queue.idle)
        assert not queue.failed
        await queue.stop(0)
        assert handled == versions

    asyncio.run(run())
