"""The metrics of queues, and their names."""

from __future__ import annotations

import asyncio
import gc

from karmada.kube.client.client import Client
from karmada.kube.objects.clock import FakeClock
from karmada.kube.runtime.controller import ControllerOptions, Reconciler, Result, Watch
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.manager import Manager
from karmada.kube.runtime.metrics import Metrics
from karmada.kube.runtime.queue import WorkQueue


def lines(metrics: Metrics, *names: str) -> list[str]:
    return [line for line in metrics.expose()[0].decode().splitlines() if line.startswith(names)]


async def test_queues_of_one_name_are_reported_as_one(clock: FakeClock) -> None:
    metrics = Metrics()
    first, second = (metrics.controller(name, "shared") for name in ("first", "second"))
    held = asyncio.Event()

    async def work(_key: str) -> None:
        await held.wait()

    queues = [WorkQueue[str]("shared", work, limit=1, clock=clock, metrics=one.queue) for one in (first, second)]
    for one, queue in zip((first, second), queues, strict=True):
        one.follow(queue, 1)
        queue.start()
        queue.add("a")
        queue.add("b")
        await asyncio.sleep(0)
        await clock.advance(2)
    gauges = ("workqueue_depth{", "workqueue_unfinished_work_seconds{", "workqueue_longest_running")
    assert lines(metrics, "workqueue_adds_total{", *gauges) == [
        'workqueue_depth{name="shared"} 2.0',
        'workqueue_unfinished_work_seconds{name="shared"} 6.0',
        'workqueue_longest_running_processor_seconds{name="shared"} 4.0',
        'workqueue_adds_total{name="shared"} 4.0',
    ]
    for queue in queues:
        await queue.stop(0)
    del queues, queue
    await asyncio.sleep(0)
    gc.collect()
    assert lines(metrics, *gauges) == []


async def test_putting_in_for_later_is_a_retry_and_putting_in_now_is_none(clock: FakeClock) -> None:
    metrics = Metrics()

    async def work(_key: str) -> None:
        raise AssertionError("it was not started")

    queue: WorkQueue[str] = WorkQueue("one", work, limit=1, clock=clock, metrics=metrics.controller("one").queue)
    queue.add("a")
    queue.add_after("b", 0)
    assert lines(metrics, "workqueue_retries_total{") == ['workqueue_retries_total{name="one"} 0.0']
    queue.add_after("c", 1)
    queue.add_rate_limited("d")
    assert lines(metrics, "workqueue_retries_total{") == ['workqueue_retries_total{name="one"} 2.0']
    queue.shut_down()


class Named(Reconciler):
    """A reconciler with a named queue, to which it is attached."""

    name = "named"
    options = ControllerOptions(queue_name="its-queue")
    watches: tuple[Watch, ...] = ()

    def follow_queue(self, queue: WorkQueue[Key]) -> None:
        self.queue = queue

    async def reconcile(self, key: Key) -> Result | None:
        raise AssertionError(key)


async def test_a_reconciler_may_name_its_queue_and_follow_it(client: Client, clock: FakeClock) -> None:
    metrics, named = Metrics(), Named()
    controller = Manager(client, clock=clock, metrics=metrics).add(named)
    controller.add(Key("", "a"))
    assert len(named.queue) == 1
    assert lines(metrics, "workqueue_depth{") == ['workqueue_depth{name="its-queue"} 1.0']
    assert lines(metrics, "controller_runtime_max") == [
        'controller_runtime_max_concurrent_reconciles{controller="named"} 1.0'
    ]
