from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from karmada.kube.client.client import Client
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import Conflict, ServiceUnavailable
from karmada.kube.objects.gvrs import CONFIG_MAPS, PODS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime import time_slice
from karmada.kube.runtime.controller import (
    Controller,
    Done,
    Enqueue,
    Parked,
    Reconciler,
    Result,
    Retry,
    Terminal,
    Watch,
    requeue,
)
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.metrics import Metrics
from tests.support.cases import cases
from tests.support.eventually import LIMIT, eventually
from tests.support.fake_api import FakeApi


def pod(name: str, config: str = "", phase: str = "") -> Obj:
    return {"metadata": {"name": name, "namespace": "ns"}, "spec": {"config": config}, "status": {"phase": phase}}


def config_of(obj: Obj) -> Iterable[Key]:
    return [Key("ns", obj["spec"]["config"])] if obj["spec"]["config"] else []


def _other_spec(old: Obj | None, new: Obj | None) -> bool:
    return old is None or new is None or old["spec"] != new["spec"]


class Recorder(Reconciler):
    """A reconciler that records its keys and returns what the test sets."""

    name = "recorder"

    def __init__(self, *watches: Watch, answer: Callable[[Key, int], Result | None] = lambda *_: None) -> None:
        self.watches = watches
        self.answer = answer
        self.keys: list[str] = []

    async def reconcile(self, key: Key) -> Result | None:
        self.keys.append(key.name)
        return self.answer(key, self.keys.count(key.name))


class Running:
    def __init__(self, client: Client, clock: FakeClock) -> None:
        self.informers = Informers(client, clock=clock)
        self.controllers: list[Controller] = []

    async def __call__(self, reconciler: Any, **options: Any) -> Controller:
        controller = Controller(reconciler, self.informers, **options)
        self.controllers.append(controller)
        self.informers.start()
        await controller.start()
        return controller


@pytest.fixture
async def run(client: Client, clock: FakeClock) -> Any:
    running = Running(client, clock)
    yield running
    for controller in running.controllers:
        await controller.stop(grace=0)
    await running.informers.stop()


async def test_every_object_there_and_every_change_reaches_reconcile(client: Client, run: Any) -> None:
    await client.create(PODS, pod("before"))
    recorder = Recorder(Watch(PODS))
    await run(recorder)
    await eventually(lambda: recorder.keys == ["before"])
    await client.create(PODS, pod("after"))
    await eventually(lambda: recorder.keys == ["before", "after"])
    await client.delete(PODS, "before", "ns")
    await eventually(lambda: recorder.keys == ["before", "after", "before"])


@cases(Watch(PODS, changed=("spec",)), Watch(PODS, when=_other_spec))
async def test_changes_that_do_not_matter_trigger_nothing(watch: Watch, client: Client, run: Any) -> None:
    recorder = Recorder(watch)
    await run(recorder)
    await client.create(PODS, pod("a"))
    await eventually(lambda: recorder.keys == ["a"])
    await client.patch(PODS, "a", "ns", {"status": {"phase": "Running"}})
    await client.patch(PODS, "a", "ns", {"spec": {"config": "c"}})
    await client.create(PODS, pod("b"))
    await eventually(lambda: recorder.keys == ["a", "a", "b"])


async def test_only_objects_with_the_value_trigger_a_reconcile_before_the_change_or_after_it(
    client: Client, run: Any
) -> None:
    await client.create(PODS, pod("before", phase="Ready"))
    recorder = Recorder(Watch(PODS, having=(lambda obj: [obj["status"]["phase"]], "Ready")))
    await run(recorder)
    await eventually(lambda: recorder.keys == ["before"])
    await client.create(PODS, pod("a"))
    for phase, keys in (("Ready", ["before", "a"]), ("Failed", ["before", "a", "a"]), ("Gone", ["before", "a", "a"])):
        await client.patch(PODS, "a", "ns", {"status": {"phase": phase}})
        await eventually(lambda keys=keys: recorder.keys == keys)
    await client.create(PODS, pod("b", phase="Ready"))
    await eventually(lambda: recorder.keys == ["before", "a", "a", "b"])


async def test_a_mapping_is_called_with_the_old_and_the_new_object(client: Client, run: Any) -> None:
    recorder = Recorder(Watch(CONFIG_MAPS, on=("DELETED",)), Watch(PODS, map_to=config_of))
    await run(recorder)
    await client.create(PODS, pod("a", "one"))
    await eventually(lambda: recorder.keys == ["one"])
    await client.patch(PODS, "a", "ns", {"spec": {"config": "two"}})
    await eventually(lambda: recorder.keys == ["one", "one", "two"])


async def test_a_failure_is_tried_again_with_back_off_until_it_works(
    client: Client, run: Any, clock: FakeClock
) -> None:
    def answer(key: Key, count: int) -> Result | None:
        if count == 1:
            raise RuntimeError("broken")
        if count == 2:
            raise ServiceUnavailable("down")
        if count == 3:
            raise Conflict("stale")
        return Retry if count == 4 else Done

    recorder = Recorder(Watch(PODS), answer=answer)
    controller = await run(recorder)
    await client.create(PODS, pod("a"))
    await eventually(lambda: len(recorder.keys) == 1)
    await clock.advance(0.005)
    assert len(recorder.keys) == 2
    await clock.advance(0.009)
    assert len(recorder.keys) == 2
    await clock.advance(1)
    assert len(recorder.keys) == 5
    assert controller.queue.retries(Key("ns", "a")) == 0
    await clock.advance(10_000)
    assert len(recorder.keys) == 5


async def test_a_key_that_is_set_aside_is_not_tried_again_and_keeps_its_back_off(
    client: Client, run: Any, clock: FakeClock
) -> None:
    def answer(key: Key, count: int) -> Result | None:
        if count == 1:
            raise ServiceUnavailable("down")
        return Parked if count == 2 else Done

    recorder = Recorder(Watch(PODS), answer=answer)
    controller = await run(recorder)
    await client.create(PODS, pod("a"))
    await eventually(lambda: len(recorder.keys) == 1)
    await clock.advance(10_000)
    assert len(recorder.keys) == 2
    assert controller.queue.retries(Key("ns", "a")) == 1
    controller.add(Key("ns", "a"))
    await eventually(lambda: len(recorder.keys) == 3)
    assert controller.queue.retries(Key("ns", "a")) == 0


async def test_a_terminal_failure_is_not_tried_again(client: Client, run: Any, clock: FakeClock) -> None:
    def answer(key: Key, count: int) -> Result | None:
        raise Terminal("never")

    recorder = Recorder(Watch(PODS), answer=answer)
    await run(recorder)
    await client.create(PODS, pod("a"))
    await eventually(lambda: recorder.keys == ["a"])
    await clock.advance(10_000)
    assert recorder.keys == ["a"]


async def test_a_result_may_requeue_after_a_time(client: Client, run: Any, clock: FakeClock) -> None:
    recorder = Recorder(Watch(PODS), answer=lambda _, count: requeue(after=300) if count == 1 else Done)
    await run(recorder)
    await client.create(PODS, pod("a"))
    await eventually(lambda: recorder.keys == ["a"])
    await clock.advance(299)
    assert recorder.keys == ["a"]
    await clock.advance(1)
    assert recorder.keys == ["a", "a"]


async def test_many_workers_run_at_once_but_never_on_the_same_key(client: Client, run: Any) -> None:
    class Slow(Reconciler):
        name, watches, workers = "slow", [Watch(PODS)], 3

        def __init__(self) -> None:
            self.busy: list[str] = []
            self.most = 0
            self.open = asyncio.Event()

        async def reconcile(self, key: Key) -> None:
            assert key.name not in self.busy
            self.busy.append(key.name)
            self.most = max(self.most, len(self.busy))
            await self.open.wait()
            self.busy.remove(key.name)

    slow = Slow()
    controller = await run(slow)
    for name in ("a", "b", "c", "d"):
        await client.create(PODS, pod(name))
    await eventually(lambda: len(slow.busy) == 3)
    await client.patch(PODS, "a", "ns", {"spec": {"config": "x"}})
    await eventually(lambda: len(controller.queue) == 1)
    slow.open.set()
    await eventually(lambda: controller.queue.idle)
    assert slow.most == 3


async def test_stopping_lets_a_reconcile_under_way_finish(client: Client, run: Any, clock: FakeClock) -> None:
    class Slow(Reconciler):
        name, watches = "slow", [Watch(PODS)]
        finished = False
        entered, leave = asyncio.Event(), asyncio.Event()

        async def reconcile(self, _: Key) -> None:
            self.entered.set()
            await self.leave.wait()
            self.finished = True

    slow = Slow()
    slow.entered, slow.leave = asyncio.Event(), asyncio.Event()
    controller = await run(slow)
    await client.create(PODS, pod("a"))
    await client.create(PODS, pod("b"))
    await slow.entered.wait()
    stopping = asyncio.ensure_future(controller.stop(grace=10))
    await clock.advance(1)
    assert not stopping.done()
    slow.leave.set()
    await stopping
    assert slow.finished


async def test_stopping_ends_a_reconcile_that_takes_too_long(client: Client, run: Any, clock: FakeClock) -> None:
    class Stuck(Reconciler):
        name, watches = "stuck", [Watch(PODS)]

        def __init__(self) -> None:
            self.entered = asyncio.Event()

        async def reconcile(self, _: Key) -> None:
            self.entered.set()
            await asyncio.Event().wait()

    stuck = Stuck()
    controller = await run(stuck)
    before = asyncio.all_tasks()
    await client.create(PODS, pod("a"))
    await stuck.entered.wait()
    stopping = asyncio.ensure_future(controller.stop(grace=10))
    await clock.advance(10)
    await asyncio.wait_for(stopping, LIMIT)
    assert asyncio.all_tasks() == before


async def test_its_metrics_carry_the_names_kubernetes_uses(client: Client, run: Any, fake: FakeApi) -> None:
    metrics = Metrics()

    def answer(key: Key, count: int) -> Result | None:
        if count == 1:
            raise Terminal("first")
        return None

    recorder = Recorder(Watch(PODS), answer=answer)
    controller = await run(recorder, metrics=metrics.controller("recorder"))
    await client.create(PODS, pod("a"))
    await eventually(lambda: recorder.keys == ["a"])
    controller.add(Key("ns", "a"))
    await eventually(lambda: recorder.keys == ["a", "a"] and controller.queue.idle)
    page, content_type = metrics.expose()
    text = page.decode()
    assert content_type.startswith("text/plain; version=0.0.4")
    for line in (
        'workqueue_adds_total{name="recorder"} 2.0',
        'workqueue_depth{name="recorder"} 0.0',
        'workqueue_work_duration_seconds_count{name="recorder"} 2.0',
        'controller_runtime_reconcile_total{controller="recorder",result="success"} 1.0',
        'controller_runtime_reconcile_total{controller="recorder",result="error"} 1.0',
        'controller_runtime_reconcile_errors_total{controller="recorder"} 1.0',
        'controller_runtime_max_concurrent_reconciles{controller="recorder"} 1.0',
    ):
        assert line in text.splitlines()


async def test_what_changes_now_is_reconciled_before_the_backlog(client: Client, run: Any) -> None:
    for number in range(5):
        await client.create(PODS, pod(f"old{number}"))
    recorder = Recorder(Watch(PODS))
    controller = await run(recorder)
    controller.add(Key("ns", "new"))
    await eventually(lambda: len(recorder.keys) == 6)
    assert recorder.keys[0] == "new"


async def test_existing_objects_that_are_pending_are_reconciled_before_those_that_are_checked_again(
    client: Client, run: Any
) -> None:
    for number in range(5):
        await client.create(PODS, pod(f"old{number}"))
    await client.create(PODS, pod("pending", config="pending"))
    recorder = Recorder(Watch(PODS, pending=lambda obj: obj["spec"]["config"] == "pending"))
    await run(recorder)
    await eventually(lambda: len(recorder.keys) == 6)
    assert recorder.keys[0] == "pending"


class Holding(Recorder):
    """The first key is held until `released`."""

    def __init__(self, *watches: Watch) -> None:
        super().__init__(*watches)
        self.released = asyncio.Event()

    async def reconcile(self, key: Key) -> Result | None:
        self.keys.append(key.name)
        await self.released.wait()
        return None


@cases(
    (lambda obj: int(obj["spec"]["config"]), ["a", "b", "new"]),
    (0, ["a", "new", "b"]),
    ids=["by the object", "fixed"],
)
async def test_changes_come_before_existing_objects_unless_the_object_decides(
    priority: Any, order: list[str], run: Any, client: Client
) -> None:
    for name, value in (("a", "99"), ("b", "10")):
        await client.create(PODS, pod(name, config=value))
    holding = Holding(Watch(PODS, priority=priority))
    await run(holding, workers=1)
    await eventually(lambda: holding.keys == ["a"])
    await client.create(PODS, pod("new", config="0"))
    informer = run.informers.of(PODS)
    await eventually(lambda: informer.get(Key("ns", "new")))
    holding.released.set()
    await eventually(lambda: len(holding.keys) == 3)
    assert holding.keys == order


class Walking(Reconciler):
    """Reconciles every Pod when a ConfigMap changes."""

    name = "walking"

    def __init__(self, pods: Informer) -> None:
        self.pods = pods
        self.watches = (Watch(CONFIG_MAPS, walk=self.requeue),)
        self.found: list[str] = []
        self.reconciled: list[str] = []

    async def requeue(self, old: Obj | None, _new: Obj | None, add: Enqueue) -> None:
        if old is not None:
            raise ValueError("a change that cannot be mapped")
        async for found in self.pods.scan():
            self.found.append(found["metadata"]["name"])
            add(Key("ns", found["metadata"]["name"]))

    async def reconcile(self, key: Key) -> None:
        self.reconciled.append(key.name)


async def test_a_walk_enqueues_what_a_change_concerns_and_existing_objects_start_none(client: Client, run: Any) -> None:
    await client.create(CONFIG_MAPS, {"metadata": {"name": "existing", "namespace": "ns"}})
    for number in range(3):
        await client.create(PODS, pod(f"p{number}"))
    pods = run.informers.of(PODS)
    walking = Walking(pods)
    await run(walking)
    await pods.wait_synced()
    assert walking.found == []
    metadata = (await client.get(CONFIG_MAPS, "existing", "ns"))["metadata"]
    await client.update(CONFIG_MAPS, {"metadata": metadata, "data": {"changed": "yes"}})
    await client.create(CONFIG_MAPS, {"metadata": {"name": "new", "namespace": "ns"}})
    await eventually(lambda: sorted(walking.reconciled) == ["p0", "p1", "p2"])
    assert walking.found == ["p0", "p1", "p2"]


@cases(200, 400)
async def test_a_walk_handles_as_many_objects_at_once_whatever_their_number(
    number: int, client: Client, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pods = run.informers.of(PODS)
    for at in range(number):
        pods._store(Key("ns", f"p{at}"), {**pod(f"p{at}"), "metadata": {"name": f"p{at}", "namespace": "ns"}})
    ticks, slices = itertools.count(step=0.0001), [0]
    monkeypatch.setattr(time_slice, "perf_counter", lambda: next(ticks))

    async def other() -> None:
        while True:
            slices.append(0)
            await asyncio.sleep(0)

    def add(_key: Key, _priority: int = 0, /) -> None:
        slices[-1] += 1

    task = asyncio.create_task(other())
    await Walking(pods).requeue(None, None, add)
    task.cancel()
    assert sum(slices) == number
    assert max(slices) <= 21
