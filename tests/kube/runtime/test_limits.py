"""Limits: a share for each group, first come first served, and a semaphore for which what takes long does not count."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.objects.clock import FakeClock
from karmada.kube.runtime.limits import GroupShares, LeakySemaphore
from tests.support.counting import let_others_run
from tests.support.eventually import eventually


def test_a_group_has_so_many_turns_and_passes_them_on_in_order() -> None:
    queued: list[str] = []
    shares: GroupShares[str] = GroupShares(queued.append)
    assert [shares.take(key, "slow", 2) for key in "abcd"] == [True, True, False, False]
    assert shares.take("x", "other", 2)
    assert shares.take("a", "slow", 2), "it has one already"
    shares.give_up("a")
    assert queued == ["c"]
    assert shares.take("c", "slow", 2), "passed on"
    assert not shares.take("a", "slow", 2)
    shares.give_up("b")
    shares.give_up("c")
    assert queued == ["c", "d", "a"]


def test_a_key_that_changes_its_group_frees_its_turn_in_the_old_one() -> None:
    queued: list[str] = []
    shares: GroupShares[str] = GroupShares(queued.append)
    assert shares.take("a", "one", 1)
    assert not shares.take("b", "one", 1)
    assert shares.take("a", "two", 1)
    assert queued == ["b"]


def test_a_dropped_group_starts_anew() -> None:
    queued: list[str] = []
    shares: GroupShares[str] = GroupShares(queued.append)
    assert shares.take("a", "gone", 1)
    assert not shares.take("b", "gone", 1)
    assert shares.take("c", "stays", 1)
    assert not shares.take("d", "stays", 1)
    shares.drop(lambda group: group == "gone")
    assert shares.take("e", "gone", 1)
    shares.give_up("a")
    assert not shares.take("f", "gone", 1), "a turn of before does not count twice"
    shares.give_up("c")
    assert queued == ["d"]


@given(st.integers(1, 3), st.lists(st.tuples(st.sampled_from("abcdefgh"), st.sampled_from(("one", "two", "")))))
def test_every_key_gets_its_turn_and_no_group_has_more_than_its_limit(
    limit: int, changes: list[tuple[str, str]]
) -> None:
    """Keys are queued as their group changes ("" needs no turn); every other one runs while the next starts."""
    group_of: dict[str, str] = {}
    queue: list[str] = []
    running: dict[str, str] = {}
    again: set[str] = set()
    reconciled: dict[str, str] = {}
    shares: GroupShares[str] = GroupShares(queue.append)
    steps = 0
    while changes or queue or running:
        steps += 1
        assert steps < 1000, "keys are queued for ever"
        if changes:
            key, group = changes.pop(0)
            group_of[key] = group
            queue.append(key)
        if queue:
            key = queue.pop(0)
            group = group_of[key]
            if key in running:
                again.add(key)
            elif not group or shares.take(key, group, limit):
                running[key] = group
        assert all(count <= limit for group, count in Counter(running.values()).items() if group)
        if running and (steps % 2 or not queue):
            key, group = next(iter(running.items()))
            del running[key]
            reconciled[key] = group
            shares.give_up(key)
            if key in again:
                again.remove(key)
                queue.append(key)
    assert reconciled == group_of


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


async def test_no_more_enter_than_there_are_slots_and_then_in_order(clock: FakeClock) -> None:
    users = Users(LeakySemaphore(2, clock))
    tasks = users.start(1, 2, 3, 4)
    await let_others_run()
    assert users.inside == [1, 2]
    users.let_go(2)
    await let_others_run()
    assert users.inside == [1, 2, 3]
    for number in (1, 3, 4):
        users.let_go(number)
    await asyncio.gather(*tasks)
    assert users.inside == [1, 2, 3, 4]
    assert users.slots.held == 0


async def test_who_takes_long_loses_the_slot_and_keeps_nobody_waiting(clock: FakeClock) -> None:
    users = Users(LeakySemaphore(2, clock, seconds=1.0))
    tasks = users.start(1, 2)
    await let_others_run()
    await clock.advance(0.5)
    tasks += users.start(3, 4)
    await let_others_run()
    assert users.inside == [1, 2]
    await clock.advance(0.5)
    await eventually(lambda: users.inside == [1, 2, 3, 4])
    users.let_go(1)
    tasks += users.start(5)
    await let_others_run()
    assert users.inside == [1, 2, 3, 4], "the slot of the first was lost before"
    for number in range(2, 6):
        users.let_go(number)
    await asyncio.gather(*tasks)
    assert users.slots.held == 0


async def test_who_is_cancelled_while_waiting_takes_no_slot_away(clock: FakeClock) -> None:
    users = Users(LeakySemaphore(1, clock))
    [first, second, third] = users.start(1, 2, 3)
    await let_others_run()
    second.cancel()
    users.let_go(1)
    await let_others_run()
    assert users.inside == [1, 3]
    users.let_go(3)
    await asyncio.gather(first, third)
    assert users.slots.held == 0


async def test_a_slot_that_comes_with_the_cancellation_is_handed_on(clock: FakeClock) -> None:
    slots = LeakySemaphore(1, clock)
    ticket = await slots.enter()
    waiting = asyncio.create_task(slots.enter())
    await let_others_run()
    slots.leave(ticket)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert slots.held == 0
