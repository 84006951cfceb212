"""The same call for many items."""

from __future__ import annotations

import asyncio
from itertools import count

import pytest

from karmada.controllers.concurrently import for_each, outcomes_of
from karmada.kube.objects.errors import ApiError
from karmada.kube.runtime import time_slice


@pytest.mark.parametrize(("items", "limit"), [(0, 3), (1, 3), (3, 3), (10, 3), (10, 100)])
async def test_at_most_so_many_calls_run_at_once_and_outcomes_are_in_order(items: int, limit: int) -> None:
    running = most = 0

    async def call(item: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return item * item

    assert await outcomes_of(range(items), call, limit=limit) == [item * item for item in range(items)]
    assert most == min(items, limit)


@pytest.mark.parametrize(("items", "limit"), [(1, 3), (3, 1)])
async def test_one_at_a_time_they_need_no_task(items: int, limit: int) -> None:
    async def call(_item: int) -> asyncio.Task[object] | None:
        return asyncio.current_task()

    assert await outcomes_of(range(items), call, limit=limit) == [asyncio.current_task()] * items


async def test_an_error_takes_the_place_of_its_outcome_and_stops_nothing() -> None:
    async def call(item: int) -> int:
        if item == 1:
            raise ApiError("no")
        return item

    first, second, third = await outcomes_of([0, 1, 2], call, limit=1)
    assert (first, third) == (0, 2)
    assert isinstance(second, ApiError)


async def test_all_errors_are_raised_in_one_after_the_last_call() -> None:
    called = []

    async def call(item: int) -> None:
        called.append(item)
        raise ApiError(f"no {item % 2}")

    with pytest.raises(ApiError, match=r"no 0.*no 1"):
        await for_each(range(4), call, limit=2)
    assert called == [0, 1, 2, 3]


async def test_calls_that_never_wait_run_in_slices_all_together(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = count(step=time_slice.SLICE_SECONDS / 10)
    monkeypatch.setattr(time_slice, "perf_counter", lambda: next(ticks))
    slices = [0]

    async def other() -> None:
        while True:
            slices.append(0)
            await asyncio.sleep(0)

    async def call(_item: int) -> None:
        slices[-1] += 1

    watching = asyncio.create_task(other())
    await for_each(range(1000), call, limit=32)
    watching.cancel()
    assert sum(slices) == 1000
    assert max(slices) <= 32


async def test_calls_that_wait_do_not_line_up_for_a_slice_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    lined_up = 0

    class Line:
        async def next(self, _owner: str) -> None:
            nonlocal lined_up
            lined_up += 1

    monkeypatch.setattr(time_slice, "SLICE_SECONDS", 0.0)
    monkeypatch.setattr(time_slice, "_turns", Line)

    async def waits(_item: int) -> None:
        await asyncio.sleep(0)

    async def never_waits(_item: int) -> None:
        pass

    await for_each(range(20), waits, limit=1)
    assert lined_up <= 1
    await for_each(range(20), never_waits, limit=1)
    assert lined_up >= 19
