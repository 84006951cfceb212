"""Long loops on the event loop run in slices."""

from __future__ import annotations

import asyncio

import pytest

from karmada.kube.runtime import time_slice
from karmada.kube.runtime.time_slice import TimeSlice


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
