"""Lanes: a controller whose keys are divided, so that a part that hangs blocks no other."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable
from operator import attrgetter

import pytest

from karmada.kube.client.client import Client
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import ApiError, Conflict
from karmada.kube.runtime.controller import (
    Controller,
    ControllerOptions,
    Done,
    Reconciler,
    Result,
    Terminal,
    Watch,
    requeue,
)
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.metrics import Metrics
from karmada.kube.runtime.queue import Priority, WorkQueue
from tests.support.eventually import eventually


class Reconciles(Reconciler):
    """Reconciles keys while the test lets it; a lane is a namespace."""

    name = "test"
    watches: tuple[Watch, ...] = ()
    workers = 3
    options = ControllerOptions(lane_of=attrgetter("namespace"))

    def __init__(self) -> None:
        self.started: list[Key] = []
        self.running: Counter[Key] = Counter()
        self.most: Counter[str] = Counter()
        self.closed: dict[str, asyncio.Event] = {}
        self.failures: list[Exception] = []
        self.result: Result = Done
        self.stopped = False

    async def reconcile(self, key: Key) -> Result:
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

    async def stop(self) -> None:
        self.stopped = True


@pytest.fixture
def reconciles() -> Reconciles:
    return Reconciles()


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
async def controller(
    client: Client, clock: FakeClock, reconciles: Reconciles, metrics: Metrics
) -> AsyncIterator[Controller]:
    informers = Informers(client, clock=clock)
    made = Controller(reconciles, informers, clock=clock, metrics=metrics.controller("test"))
    await made.start()
    yield made
    await made.stop(grace=0)


@pytest.fixture
def lanes(controller: Controller) -> WorkQueue[Key]:
    return controller.queue


def at_rest(lanes: WorkQueue[Key]) -> bool:
    return lanes.idle and not lanes.delayed


async def test_a_lane_that_hangs_blocks_no_other(lanes: WorkQueue[Key], reconciles: Reconciles) -> None:
    reconciles.closed["a"] = asyncio.Event()
    for number in range(10):
        lanes.add(Key("a", str(number)))
        lanes.add(Key("b", str(number)))
    await eventually(lambda: sum(key.namespace == "b" for key in reconciles.started) == 10)
    assert sum(key.namespace == "a" for key in reconciles.started) == 3
    assert (len(lanes), lanes.working) == (7, 3)
    reconciles.closed["a"].set()
    await eventually(lambda: at_rest(lanes))
    assert len(reconciles.started) == 20
    assert reconciles.most["a"] == 3


async def test_at_rest_there_are_neither_lanes_nor_workers(lanes: WorkQueue[Key], reconciles: Reconciles) -> None:
    before = asyncio.all_tasks()
    for number in range(50):
        lanes.add(Key(f"n{number}", "x"))
    assert lanes.lanes == 50
    await eventually(lambda: len(reconciles.started) == 50 and at_rest(lanes))
    await eventually(lambda: lanes.lanes == 0)
    assert asyncio.all_tasks() == before


async def test_a_key_that_is_added_while_it_is_reconciled_is_reconciled_again_and_never_twice_at_once(
    lanes: WorkQueue[Key], reconciles: Reconciles
) -> None:
    reconciles.closed["a"] = asyncio.Event()
    key = Key("a", "x")
    lanes.add(key)
    await eventually(lambda: reconciles.started)
    for _ in range(5):
        lanes.add(key)
    reconciles.closed["a"].set()
    await eventually(lambda: at_rest(lanes))
    assert reconciles.started == [key, key]


@pytest.mark.parametrize("error", [Conflict("late"), ApiError("no"), ValueError("broken")])
async def test_a_failed_key_backs_off(
    lanes: WorkQueue[Key], reconciles: Reconciles, clock: FakeClock, error: Exception
) -> None:
    reconciles.failures = [error, error]
    lanes.add(Key("a", "x"))
    await eventually(lambda: len(reconciles.started) == 1 and lanes.idle)
    assert lanes.retries(Key("a", "x")) == 1
    await clock.advance(0.005)
    await eventually(lambda: len(reconciles.started) == 2 and lanes.idle)
    await clock.advance(0.005)
    assert len(reconciles.started) == 2
    await clock.advance(0.005)
    await eventually(lambda: len(reconciles.started) == 3 and at_rest(lanes))
    assert lanes.retries(Key("a", "x")) == 0


async def test_a_terminal_error_is_not_retried(lanes: WorkQueue[Key], reconciles: Reconciles, clock: FakeClock) -> None:
    reconciles.failures = [Terminal("never")]
    lanes.add(Key("a", "x"))
    await eventually(lambda: len(reconciles.started) == 1 and at_rest(lanes))
    await clock.advance(2000)
    assert len(reconciles.started) == 1


async def test_the_back_off_of_one_lane_can_be_ended(
    lanes: WorkQueue[Key], reconciles: Reconciles, clock: FakeClock
) -> None:
    key, other = Key("a", "x"), Key("b", "x")
    reconciles.failures = [ApiError("no")] * 4
    lanes.add(key)
    await eventually(lambda: len(reconciles.started) == 1 and lanes.idle)
    await clock.advance(0.005)
    await eventually(lambda: len(reconciles.started) == 2 and lanes.idle)
    lanes.add(other)
    await eventually(lambda: len(reconciles.started) == 3 and lanes.idle)
    lanes.retry_now("a")
    await eventually(lambda: len(reconciles.started) == 4 and lanes.idle)
    assert reconciles.started.count(other) == 1
    await clock.advance(0.005)
    await eventually(lambda: at_rest(lanes))
    assert reconciles.started.count(key) == 4


async def test_a_result_may_requeue(lanes: WorkQueue[Key], reconciles: Reconciles, clock: FakeClock) -> None:
    reconciles.result = requeue(5)
    lanes.add(Key("a", "x"))
    await eventually(lambda: len(reconciles.started) == 1 and lanes.idle)
    reconciles.result = Done
    await clock.advance(5)
    await eventually(lambda: len(reconciles.started) == 2 and at_rest(lanes))


async def test_a_key_that_is_delayed_several_times_comes_once(
    lanes: WorkQueue[Key], reconciles: Reconciles, clock: FakeClock
) -> None:
    for _ in range(5):
        lanes.add_after(Key("a", "x"), 0.01)
        await clock.advance(0.001)
    assert reconciles.started == []
    await clock.advance(0.01)
    await eventually(lambda: at_rest(lanes))
    assert len(reconciles.started) == 1


async def test_higher_priorities_go_first_within_a_lane(lanes: WorkQueue[Key], reconciles: Reconciles) -> None:
    reconciles.closed["a"] = asyncio.Event()
    for number in range(3):
        lanes.add(Key("a", str(number)))
    await eventually(lambda: len(reconciles.started) == 3)
    lanes.add(Key("a", "low"), Priority.BACKLOG)
    lanes.add(Key("a", "high"))
    reconciles.closed["a"].set()
    await eventually(lambda: at_rest(lanes))
    assert [key.name for key in reconciles.started[3:]] == ["high", "low"]


async def test_keys_that_are_added_before_the_start_wait_for_it(
    client: Client, clock: FakeClock, reconciles: Reconciles
) -> None:
    made = Controller(reconciles, Informers(client, clock=clock), clock=clock)
    for number in range(5):
        made.add(Key("a", str(number)))
    await asyncio.sleep(0)
    assert reconciles.started == []
    await made.start()
    await eventually(lambda: len(reconciles.started) == 5)
    await made.stop()


async def test_a_dropped_lane_forgets_what_waits_and_can_come_back(
    lanes: WorkQueue[Key], reconciles: Reconciles
) -> None:
    reconciles.closed["a"] = asyncio.Event()
    for number in range(5):
        lanes.add(Key("a", str(number)))
    await eventually(lambda: len(reconciles.started) == 3)
    lanes.drop("a")
    assert lanes.lanes == 0
    lanes.add(Key("a", "new"))
    await eventually(lambda: Key("a", "new") in reconciles.started)  # although three workers of the old lane hang
    reconciles.closed["a"].set()
    await eventually(lambda: at_rest(lanes))
    assert len(reconciles.started) == 4


async def test_stopping_waits_for_reconciles_under_way_but_not_for_ever(
    controller: Controller, reconciles: Reconciles, clock: FakeClock
) -> None:
    reconciles.closed["a"] = asyncio.Event()
    controller.add(Key("a", "x"))
    await eventually(lambda: reconciles.started)
    stopping = asyncio.create_task(controller.stop(grace=3))
    await clock.advance(2)
    assert not stopping.done()
    await clock.advance(1)
    await stopping
    assert reconciles.running[Key("a", "x")] == 0
    assert reconciles.stopped
    controller.add(Key("b", "late"))
    await asyncio.sleep(0)
    assert len(reconciles.started) == 1


async def test_the_metrics_of_all_lanes_are_those_of_one_queue(
    lanes: WorkQueue[Key], reconciles: Reconciles, metrics: Metrics, clock: FakeClock
) -> None:
    reconciles.closed |= {"a": asyncio.Event(), "b": asyncio.Event()}
    for namespace in ("a", "b"):
        for number in range(5):
            lanes.add(Key(namespace, str(number)))
    await eventually(lambda: len(reconciles.started) == 6)
    await clock.advance(2)
    text = metrics.expose()[0].decode()
    for line in (
        'workqueue_depth{name="test"} 4.0',
        'workqueue_unfinished_work_seconds{name="test"} 12.0',
        'workqueue_longest_running_processor_seconds{name="test"} 2.0',
        'workqueue_adds_total{name="test"} 10.0',
        'controller_runtime_max_concurrent_reconciles{controller="test"} 3.0',
    ):
        assert line in text
    for event in reconciles.closed.values():
        event.set()
    await eventually(lambda: at_rest(lanes))
    assert 'controller_runtime_reconcile_total{controller="test",result="success"} 10.0' in metrics.expose()[0].decode()


async def test_a_worker_that_fails_is_reported_and_others_go_on(clock: FakeClock) -> None:
    worked: list[Key] = []

    async def work(key: Key) -> None:
        worked.append(key)
        if key.name == "x":
            raise RuntimeError("a bug in the controller itself")

    lanes: WorkQueue[Key] = WorkQueue("test", work, limit=1, clock=clock)
    lanes.start()
    lanes.add(Key("a", "x"))
    await eventually(lambda: lanes.failed)
    lanes.add(Key("a", "y"))
    await eventually(lambda: len(worked) == 2)
    await lanes.stop(grace=0)


class Held:
    """Work that waits until it is let go, counted by lane."""

    def __init__(self) -> None:
        self.running: Counter[str] = Counter()
        self.gates: dict[str, asyncio.Event] = defaultdict(asyncio.Event)

    async def __call__(self, key: Key) -> None:
        self.running[key.namespace] += 1
        await self.gates[key.namespace].wait()
        self.running[key.namespace] -= 1


def fill(lanes: WorkQueue[Key], names: Iterable[str], keys: int) -> None:
    for name in names:
        for number in range(keys):
            lanes.add(Key(name, str(number)))


@pytest.mark.parametrize(("lanes", "each"), [(1, 8), (2, 8), (4, 4), (8, 2), (100, 2)])
async def test_many_lanes_share_the_workers_and_each_has_two(lanes: int, each: int) -> None:
    held, names = Held(), [str(number) for number in range(lanes)]
    queue: WorkQueue[Key] = WorkQueue(
        "test", held, limit=8, total=16, clock=FakeClock(), lane_of=lambda key: key.namespace
    )
    fill(queue, names, 20)
    queue.start()
    await asyncio.sleep(0)
    assert dict(held.running) == dict.fromkeys(names, each)
    await queue.stop(0)


async def test_keys_that_are_added_one_by_one_start_no_more_workers_than_there_are_keys() -> None:
    queue: WorkQueue[Key] = WorkQueue("test", Held(), limit=64, clock=FakeClock())
    queue.start()
    fill(queue, ["a"], 5)
    await asyncio.sleep(0)
    assert sum(task.get_name() == "controller test" for task in asyncio.all_tasks()) == 5
    await queue.stop(0)


async def test_a_lane_gets_the_workers_of_those_that_have_ended() -> None:
    held, names = Held(), [str(number) for number in range(8)]
    queue: WorkQueue[Key] = WorkQueue(
        "test", held, limit=8, total=16, clock=FakeClock(), lane_of=lambda key: key.namespace
    )
    fill(queue, names, 20)
    queue.start()
    await asyncio.sleep(0)
    for name in names[1:]:
        held.gates[name].set()
    await eventually(lambda: queue.lanes == 1)
    assert held.running["0"] == 2
    held.gates["0"].set()
    held.gates["0"] = asyncio.Event()
    await eventually(lambda: held.running["0"] == 8)
    await queue.stop(0)
