from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from karmada.kube.objects.clock import FakeClock
from karmada.kube.sim.scheduler.messages import FIT, TAINTS
from karmada.kube.sim.scheduler.queue import SchedulingQueue
from karmada.kube.sim.scheduler.timers import Timers
from tests.kube.sim.scheduling_objects import View, pod


class Bench:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.timers = Timers(self.clock, "test")
        self.queue = SchedulingQueue(self.clock, self.timers)
        self.view = View([])

    def add(self, name: str, *, priority: int = 0, created: str = "") -> None:
        obj = pod(name, priority=priority)
        if created:
            obj["metadata"]["creationTimestamp"] = created
        self.queue.add(self.view.info(obj))

    def pop(self) -> str:
        info = self.queue.pop()
        return info.key.name if info is not None else ""

    def fail(self, plugin: str = FIT) -> str:
        info = self.queue.pop()
        assert info is not None
        self.queue.failed(info, frozenset((plugin,)))
        return info.key.name


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    bench = Bench()
    yield bench
    await bench.timers.stop()


async def test_the_most_important_pod_leaves_first_then_the_oldest(bench: Bench) -> None:
    bench.add("young", created="2024-01-02T00:00:00Z")
    bench.add("old", created="2024-01-01T00:00:00Z")
    bench.add("vip", priority=10, created="2024-01-03T00:00:00Z")
    assert [bench.pop() for _ in range(4)] == ["vip", "old", "young", ""]


async def test_a_failed_pod_waits_for_a_change_that_concerns_it(bench: Bench) -> None:
    bench.add("p")
    bench.fail(FIT)
    bench.queue.changed((TAINTS,))
    await bench.clock.advance(60)
    assert bench.pop() == ""
    bench.queue.changed((FIT,))
    assert bench.pop() == "p"


async def test_a_change_that_does_not_help_a_pod_leaves_it_waiting(bench: Bench) -> None:
    bench.add("p")
    bench.fail()
    await bench.clock.advance(60)
    bench.queue.changed((FIT,), lambda info: info.key.name == "other")
    assert bench.pop() == ""


async def test_the_pauses_between_attempts_grow_from_one_second_to_ten(bench: Bench) -> None:
    bench.add("p")
    for pause in (1, 2, 4, 8, 10, 10):
        bench.fail()
        bench.queue.changed((FIT,))
        await bench.clock.advance(pause - 0.5)
        assert len(bench.queue) == 1
        assert bench.queue.idle
        await bench.clock.advance(0.5)
        assert not bench.queue.idle


async def test_a_change_while_a_pod_is_in_hand_is_not_lost(bench: Bench) -> None:
    bench.add("p")
    info = bench.queue.pop()
    assert info is not None
    bench.queue.changed((FIT,))
    bench.queue.failed(info, frozenset((FIT,)))
    await bench.clock.advance(1)
    assert bench.pop() == "p"


async def test_a_pod_for_which_nothing_changes_is_tried_again_after_five_minutes(bench: Bench) -> None:
    bench.add("p")
    bench.fail()
    await bench.clock.advance(299)
    assert bench.pop() == ""
    await bench.clock.advance(1)
    assert bench.pop() == "p"


async def test_a_pod_that_was_changed_is_checked_in_its_new_form(bench: Bench) -> None:
    bench.add("p")
    bench.add("p", priority=5)
    info = bench.queue.pop()
    assert info is not None
    assert info.needs.priority == 5
    assert bench.pop() == ""


async def test_a_pod_that_is_gone_does_not_come_back(bench: Bench) -> None:
    bench.add("p")
    info = bench.queue.pop()
    assert info is not None
    bench.queue.remove(info.key)
    bench.queue.failed(info, frozenset((FIT,)))
    bench.queue.changed((FIT,))
    await bench.clock.advance(600)
    assert bench.pop() == ""
    assert len(bench.queue) == 0
