"""Long loops on the event loop run in slices."""

from __future__ import annotations

import asyncio
from itertools import count, pairwise

import pytest

from karmada.kube.runtime import time_slice
from karmada.kube.runtime.time_slice import OWNER, TimeSlice, in_slices
from tests.support.counting import counted_turns


async def test_others_run_when_a_slice_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_slice, "SLICE_SECONDS", 0.0)
    turn = TimeSlice()
    with counted_turns() as turns:
        for _ in range(5):
            if turn.is_over():
                await turn.next()
    assert turns.count >= 4


async def test_a_slice_that_is_not_over_yields_to_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_slice, "SLICE_SECONDS", 3600.0)
    assert not TimeSlice().is_over()


@pytest.mark.parametrize("number", [1_000, 2_000])
async def test_a_slice_has_as_many_items_whatever_their_number(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    ticks = count(step=0.0001)
    monkeypatch.setattr(time_slice, "perf_counter", lambda: next(ticks))
    slices, seen = [0], 0

    async def other() -> None:
        while True:
            slices.append(0)
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    async for _ in in_slices(range(number)):
        slices[-1] += 1
        seen += 1
    task.cancel()
    assert seen == number
    assert max(slices) <= 21


async def slices_of(owner: str, number: int, taken: list[str]) -> None:
    """Take so many slices; each is noted."""
    OWNER.set(owner)
    turn = TimeSlice()
    for _ in range(number):
        await turn.next()
        taken.append(owner)


async def test_one_slice_is_taken_in_each_turn_however_many_loops_want_one() -> None:
    taken: list[str] = []
    turns = [0]

    async def other() -> None:
        while True:
            turns.append(len(taken))
            await asyncio.sleep(0)

    watching = asyncio.create_task(other())
    await asyncio.gather(*(slices_of(f"user-{number}", 10, taken) for number in range(100)))
    watching.cancel()
    assert len(taken) == 1000
    assert max(after - before for before, after in pairwise(turns)) <= 2


async def test_owners_take_turns_whatever_the_number_of_their_loops() -> None:
    taken: list[str] = []
    red = [asyncio.create_task(slices_of("red", 10, taken)) for _ in range(100)]
    await asyncio.sleep(0)
    await slices_of("blue", 50, taken)
    assert taken.count("red") <= 52
    await asyncio.gather(*red)


async def test_one_that_is_cancelled_while_it_waits_holds_up_nobody() -> None:
    taken: list[str] = []
    loops = [asyncio.create_task(slices_of("red", 10, taken)) for _ in range(10)]
    await asyncio.sleep(0)
    for task in loops[1:]:
        task.cancel()
    await loops[0]
    await asyncio.gather(*loops, return_exceptions=True)
    await slices_of("blue", 3, taken)
    assert taken == ["red"] * 10 + ["blue"] * 3
