"""Lanes: a queue and workers for every cluster."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from karmada.controllers.lanes import Lanes
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import ApiError, Conflict
from karmada.kube.runtime.controller import Done, Result, requeue
from karmada.kube.runtime.keys import Key
from tests.support.eventually import eventually


class Worker:
    """Works on keys while the test lets it."""

    def __init__(self) -> None:
        self.started: list[Key] = []
        self.running: Counter[Key] = Counter()
        self.most: Counter[str] = Counter()
        self.closed: dict[str, asyncio.Event] = {}
        self.failures: list[Exception] = []
        self.result: Result = Done

    async def __call__(self, key: Key) -> Result:
        self.started.append(key)
        self.running[key] += 1
        assert self.running[key] == 1, "a key is in two workers"
        lane = [k for k in self.running if self.running[k] and k.namespace == key.namespace]
        self.most[key.namespace] = max(self.most[key.namespace], len(lane))
        try:
            if key.namespace in self.closed:
                await self.closed[key.namespace].wait()
            if self.failures:
                raise self.failures.pop(0)
            return self.result
        finally:
            self.running[key] -= 1


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def worker() -> Worker:
    return Worker()


@pytest.fixture
async def lanes(clock: FakeClock, worker: Worker) -> Lanes[Key]:
    made: Lanes[Key] = Lanes("test", worker, lambda key: key.namespace, clock, at_once=3)
    made.start()
    return made


async def test_a_lane_that_is_stuck_holds_no_other_up(lanes: Lanes[Key], worker: Worker) -> None:
    worker.closed["a"] = asyncio.Event()
    for number in range(10):
        lanes.add(Key("a", str(number)))
        lanes.add(Key("b", str(number)))
    await eventually(lambda: sum(key.namespace == "b" for key in worker.started) == 10)
    assert sum(key.namespace == "a" for key in worker.started) == 3
    worker.closed["a"].set()
    await eventually(lambda: lanes.settled)
    assert len(worker.started) == 20
    assert worker.most["a"] == 3
    await lanes.stop()


async def test_a_key_that_comes_while_it_is_worked_on_is_worked_on_again_and_never_twice_at_once(
    lanes: Lanes[Key], worker: Worker
) -> None:
    worker.closed["a"] = asyncio.Event()
    key = Key("a", "x")
    lanes.add(key)
    await eventually(lambda: worker.started)
    for _ in range(5):
        lanes.add(key)
    worker.closed["a"].set()
    await eventually(lambda: lanes.settled)
    assert worker.started == [key, key]
    await lanes.stop()


@pytest.mark.parametrize("error", [Conflict("late"), ApiError("no"), ValueError("broken")])
async def test_a_failure_is_tried_again_after_growing_pauses(
    lanes: Lanes[Key], worker: Worker, clock: FakeClock, error: Exception
) -> None:
    worker.failures = [error, error]
    lanes.add(Key("a", "x"))
    await eventually(lambda: len(worker.started) == 1 and lanes.idle)
    await clock.advance(0.005)
    await eventually(lambda: len(worker.started) == 2 and lanes.idle)
    await clock.advance(0.005)
    assert len(worker.started) == 2
    await clock.advance(0.005)
    await eventually(lambda: len(worker.started) == 3 and lanes.settled)
    await lanes.stop()


async def test_what_waits_after_failures_can_be_tried_at_once(
    lanes: Lanes[Key], worker: Worker, clock: FakeClock
) -> None:
    key, other = Key("a", "x"), Key("b", "x")
    worker.failures = [ApiError("no")] * 4
    lanes.add(key)
    await eventually(lambda: len(worker.started) == 1 and lanes.idle)
    await clock.advance(0.005)
    await eventually(lambda: len(worker.started) == 2 and lanes.idle)
    lanes.add(other)
    await eventually(lambda: len(worker.started) == 3 and lanes.idle)
    lanes.retry_now("a")
    await eventually(lambda: len(worker.started) == 4 and lanes.idle)
    assert worker.started.count(other) == 1
    await clock.advance(0.005)
    await eventually(lambda: lanes.settled)
    assert worker.started.count(key) == 4
    await lanes.stop()


async def test_a_result_may_ask_to_be_called_again(lanes: Lanes[Key], worker: Worker, clock: FakeClock) -> None:
    worker.result = requeue(5)
    lanes.add(Key("a", "x"))
    await eventually(lambda: len(worker.started) == 1 and lanes.idle)
    worker.result = Done
    await clock.advance(5)
    await eventually(lambda: len(worker.started) == 2 and lanes.settled)
    await lanes.stop()


async def test_delayed_keys_come_once(lanes: Lanes[Key], worker: Worker, clock: FakeClock) -> None:
    for _ in range(5):
        lanes.add_after(Key("a", "x"), 0.01)
        await clock.advance(0.001)
    assert worker.started == []
    await clock.advance(0.01)
    await eventually(lambda: lanes.settled)
    assert len(worker.started) == 1
    await lanes.stop()


async def test_what_comes_before_the_start_waits_for_it(clock: FakeClock, worker: Worker) -> None:
    made: Lanes[Key] = Lanes("test", worker, lambda key: key.namespace, clock)
    made.add(Key("a", "x"))
    await asyncio.sleep(0)
    assert worker.started == []
    made.start()
    await eventually(lambda: worker.started)
    await made.stop()


async def test_a_dropped_lane_forgets_what_waits_and_can_come_back(lanes: Lanes[Key], worker: Worker) -> None:
    worker.closed["a"] = asyncio.Event()
    for number in range(5):
        lanes.add(Key("a", str(number)))
    await eventually(lambda: len(worker.started) == 3)
    lanes.drop("a")
    assert len(lanes) == 0
    worker.closed["a"].set()
    lanes.add(Key("a", "new"))
    await eventually(lambda: Key("a", "new") in worker.started)
    await eventually(lambda: lanes.settled)
    assert len(worker.started) == 4
    await lanes.stop()


async def test_stopping_waits_for_work_under_way_but_not_for_ever(
    lanes: Lanes[Key], worker: Worker, clock: FakeClock
) -> None:
    worker.closed["a"] = asyncio.Event()
    lanes.add(Key("a", "x"))
    await eventually(lambda: worker.started)
    stopping = asyncio.create_task(lanes.stop(grace=3))
    await clock.advance(2)
    assert not stopping.done()
    await clock.advance(1)
    await stopping
    assert worker.running[Key("a", "x")] == 0
