"""LeakySemaphore: a bounded number of things under way, of which those that take long do not count."""

from __future__ import annotations

import asyncio

import pytest

from karmada.kube.objects.clock import FakeClock
from karmada.kube.runtime.leaky_semaphore import LeakySemaphore
from tests.support.eventually import eventually


class Users:
    """Tasks that enter and stay until they are let go, in the order in which they got in."""

    def __init__(self, slots: LeakySemaphore) -> None:
        self.slots = slots
        self.inside: list[int] = []
        self.gates: dict[int, asyncio.Event] = {}

    def start(self, *numbers: int) -> list[asyncio.Task[None]]:
        return [asyncio.create_task(self._use(number)) for number in numbers]

    async def _use(self, number: int) -> None:
        ticket = await self.slots.enter()
        self.inside.append(number)
        try:
            await self.gates.setdefault(number, asyncio.Event()).wait()
        finally:
            self.slots.leave(ticket)

    def let_go(self, number: int) -> None:
        self.gates.setdefault(number, asyncio.Event()).set()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_no_more_enter_than_there_are_slots_and_then_in_order(clock: FakeClock) -> None:
    users = Users(LeakySemaphore(2, clock))
    tasks = users.start(1, 2, 3, 4)
    await settle()
    assert users.inside == [1, 2]
    users.let_go(2)
    await settle()
    assert users.inside == [1, 2, 3]
    for number in (1, 3, 4):
        users.let_go(number)
    await asyncio.gather(*tasks)
    assert users.inside == [1, 2, 3, 4]
    assert users.slots.held == 0


async def test_who_takes_long_loses_the_slot_and_keeps_nobody_waiting(clock: FakeClock) -> None:
    users = Users(LeakySemaphore(2, clock, seconds=1.0))
    tasks = users.start(1, 2)
    await settle()
    await clock.advance(0.5)
    tasks += users.start(3, 4)
    await settle()
    assert users.inside == [1, 2]
    await clock.advance(0.5)
    await eventually(lambda: users.inside == [1, 2, 3, 4])
    users.let_go(1)
    tasks += users.start(5)
    await settle()
    assert users.inside == [1, 2, 3, 4], "the slot of the first was lost before"
    for number in range(2, 6):
        users.let_go(number)
    await asyncio.gather(*tasks)
    assert users.slots.held == 0


async def test_who_is_cancelled_while_waiting_takes_no_slot_away(clock: FakeClock) -> None:
    users = Users(LeakySemaphore(1, clock))
    [first, second, third] = users.start(1, 2, 3)
    await settle()
    second.cancel()
    users.let_go(1)
    await settle()
    assert users.inside == [1, 3]
    users.let_go(3)
    await asyncio.gather(first, third)
    assert users.slots.held == 0


async def test_a_slot_that_comes_with_the_cancellation_is_handed_on(clock: FakeClock) -> None:
    slots = LeakySemaphore(1, clock)
    ticket = await slots.enter()
    waiting = asyncio.create_task(slots.enter())
    await settle()
    slots.leave(ticket)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert slots.held == 0
