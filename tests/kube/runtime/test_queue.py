from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karmada.kube.objects.clock import FakeClock
from karmada.kube.runtime.queue import Queue, QueueShutDown
from tests.support.eventually import eventually


async def drain(queue: Queue[str]) -> list[str]:
    keys = []
    while len(queue):
        key = await queue.get()
        queue.done(key)
        keys.append(key)
    return keys


async def test_a_key_added_twice_is_given_out_once() -> None:
    queue: Queue[str] = Queue()
    queue.add("a")
    queue.add("b")
    queue.add("a")
    assert await drain(queue) == ["a", "b"]


async def test_a_key_added_while_a_worker_has_it_comes_back_when_the_worker_is_done() -> None:
    queue: Queue[str] = Queue()
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    assert len(queue) == 0
    queue.done("a")
    assert await drain(queue) == ["a"]


async def test_higher_priorities_leave_first_and_equal_ones_in_order() -> None:
    queue: Queue[str] = Queue()
    for key, priority in (("low", -10), ("first", 0), ("high", 5), ("second", 0)):
        queue.add(key, priority)
    assert await drain(queue) == ["high", "first", "second", "low"]


async def test_adding_a_waiting_key_with_a_higher_priority_moves_it_up_and_a_lower_one_does_not_move_it_down() -> None:
    queue: Queue[str] = Queue()
    queue.add("a")
    queue.add("b")
    queue.add("b", 3)
    queue.add("b", -3)
    assert await drain(queue) == ["b", "a"]


async def test_a_key_requested_again_while_worked_on_keeps_the_highest_priority_requested() -> None:
    queue: Queue[str] = Queue()
    queue.add("a")
    await queue.get()
    queue.add("a", 7)
    queue.add("a", 1)
    queue.add("b", 5)
    queue.done("a")
    assert await drain(queue) == ["a", "b"]


async def test_a_delayed_key_appears_when_its_time_has_come(clock: FakeClock) -> None:
    queue: Queue[str] = Queue(clock=clock)
    queue.add_after("late", 60)
    queue.add_after("soon", 10)
    await clock.advance(9.9)
    assert len(queue) == 0
    await clock.advance(0.1)
    assert await drain(queue) == ["soon"]
    await clock.advance(50)
    assert await drain(queue) == ["late"]
    queue.shut_down()


async def test_of_two_delays_for_a_key_the_earlier_one_counts(clock: FakeClock) -> None:
    queue: Queue[str] = Queue(clock=clock)
    queue.add_after("a", 60)
    queue.add_after("a", 5)
    queue.add_after("a", 30)
    await clock.advance(5)
    assert await drain(queue) == ["a"]
    await clock.advance(100)
    assert len(queue) == 0
    assert queue.delayed == 0


async def test_back_off_doubles_from_five_milliseconds_to_a_thousand_seconds_and_forget_starts_it_over(
    clock: FakeClock,
) -> None:
    queue: Queue[str] = Queue(clock=clock)
    waits = []
    for _ in range(22):
        before = clock.monotonic()
        queue.add_rate_limited("a")
        getter = asyncio.ensure_future(queue.get())
        while not getter.done():
            await clock.advance(max(0.0, queue._timer_due - clock.monotonic()))
        waits.append(clock.monotonic() - before)
        queue.done(getter.result())
    assert waits[:4] == pytest.approx([0.005, 0.01, 0.02, 0.04], abs=1e-6)
    assert waits[-1] == pytest.approx(1000)
    assert queue.retries("a") == 22
    queue.forget("a")
    assert queue.retries("a") == 0


async def test_shutting_down_wakes_waiting_workers_and_drops_what_waits(clock: FakeClock) -> None:
    queue: Queue[str] = Queue(clock=clock)
    waiting = asyncio.ensure_future(queue.get())
    await asyncio.sleep(0)
    queue.add_after("later", 5)
    queue.shut_down()
    queue.add("x")
    with pytest.raises(QueueShutDown):
        await waiting
    with pytest.raises(QueueShutDown):
        await queue.get()


async def test_a_cancelled_worker_passes_its_wake_up_on() -> None:
    queue: Queue[str] = Queue()
    first, second = asyncio.ensure_future(queue.get()), asyncio.ensure_future(queue.get())
    await asyncio.sleep(0)
    queue.add("a")
    first.cancel()
    assert await asyncio.wait_for(second, 30) == "a"


class Recorded:
    def __init__(self) -> None:
        self.seen: list[tuple[str, float]] = []

    def added(self, depth: int) -> None:
        self.seen.append(("added", depth))

    def taken(self, _: int, waited: float) -> None:
        self.seen.append(("taken", waited))

    def finished(self, worked: float) -> None:
        self.seen.append(("finished", worked))

    def retried(self) -> None:
        self.seen.append(("retried", 0))


async def test_metrics_record_depth_wait_and_work(clock: FakeClock) -> None:
    metrics = Recorded()
    queue: Queue[str] = Queue(clock=clock, metrics=metrics)
    queue.add("a")
    await clock.advance(2)
    await queue.get()
    await clock.advance(3)
    assert queue.longest_running() == queue.unfinished() == 3
    queue.add_rate_limited("a")
    queue.done("a")
    assert metrics.seen == [("added", 1), ("taken", 2), ("retried", 0), ("finished", 3)]
    queue.shut_down()


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(-2, 2), st.booleans()), max_size=40), st.integers(1, 4))
def test_no_key_is_lost_and_none_is_ever_in_two_workers(steps: list[tuple[int, int, bool]], workers: int) -> None:
    async def run() -> None:
        queue: Queue[int] = Queue()
        versions: dict[int, int] = {}
        handled: dict[int, int] = {}
        busy: set[int] = set()

        async def work() -> None:
            while True:
                try:
                    key = await queue.get()
                except QueueShutDown:
                    return
                assert key not in busy
                busy.add(key)
                seen = versions[key]
                await asyncio.sleep(0)
                handled[key] = seen
                busy.discard(key)
                queue.done(key)

        tasks = [asyncio.ensure_future(work()) for _ in range(workers)]
        for key, priority, let_run in steps:
            versions[key] = versions.get(key, 0) + 1
            queue.add(key, priority)
            if let_run:
                await asyncio.sleep(0)
        await eventually(lambda: queue.idle)
        queue.shut_down()
        await asyncio.gather(*tasks)
        assert handled == versions

    asyncio.run(run())
