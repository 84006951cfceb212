"""Long loops on the event loop, in slices."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from time import perf_counter
from typing import TypeVar

T = TypeVar("T")

SLICE_SECONDS = 0.002


class TimeSlice:
    """How long a loop may run before others get their turn: `if slice.is_over(): await slice.next()`."""

    __slots__ = ("_end",)

    def __init__(self) -> None:
        self._end = perf_counter() + SLICE_SECONDS

    def is_over(self) -> bool:
        return perf_counter() > self._end

    async def next(self) -> None:
        await asyncio.sleep(0)
        self._end = perf_counter() + SLICE_SECONDS


async def in_slices(items: Iterable[T]) -> AsyncIterator[T]:
    """Yield each item; others on the event loop run in between, whatever the number of items."""
    turn = TimeSlice()
    for item in items:
        yield item
        if turn.is_over():
            await turn.next()
