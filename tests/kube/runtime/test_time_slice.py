"""Long loops on the event loop run in slices."""

from __future__ import annotations

import asyncio
from itertools import count

import pytest

from karmada.kube.runtime import time_slice
from karmada.kube.runtime.time_slice import TimeSlice, in_slices


async def test_others_run_when_a_slice_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_slice, "SLICE_SECONDS", 0.0)
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    turn = TimeSlice()
    for _ in range(5):
        if turn.is_over():
            await turn.next()
    task.cancel()
    assert turns >= 4


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
