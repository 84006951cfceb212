"""Time as a parameter: everything that waits takes a Clock, so that a test of five minutes takes milliseconds.

`FakeClock.advance` moves time and wakes, in order of their deadlines, the sleepers that became due.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from typing import Final, Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch, for timestamps."""

    def monotonic(self) -> float:
        """Seconds that never go back, for durations."""

    async def sleep(self, seconds: float, /) -> None: ...


class RealClock:
    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)
    sleep = staticmethod(asyncio.sleep)


SYSTEM: Final[Clock] = RealClock()
"""The machine's own time, the default of everything that waits."""


_TURNS_TO_SETTLE = 25
"""Turns of the event loop in which whoever was woken runs until it waits again."""


class FakeClock:
    def __init__(self, start: float = 1_700_000_000.0) -> None:
        self._now = start
        self._jumped = 0.0
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def now(self) -> float:
        return self._now + self._jumped

    def monotonic(self) -> float:
        return self._now

    def jump(self, seconds: float) -> None:
        """Set the time of day forwards or back, as an administrator or NTP does; durations do not change."""
        self._jumped += seconds

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now + seconds, next(self._order), future))
        await future

    async def advance(self, seconds: float = 0.0, *, minutes: float = 0.0) -> None:
        """Move on by this much; a sleeper that sleeps again within the span is woken again."""
        end = self._now + seconds + 60 * minutes
        await self._settle()
        while self._sleepers and self._sleepers[0][0] <= end:
            due, _, future = heapq.heappop(self._sleepers)
            self._now = max(self._now, due)
            if not future.done():
                future.set_result(None)
                await self._settle()
        self._now = end
        await self._settle()

    def next_due(self) -> float | None:
        """When the next sleeper is due."""
        while self._sleepers and self._sleepers[0][2].done():
            heapq.heappop(self._sleepers)
        return self._sleepers[0][0] if self._sleepers else None

    def wake_next(self) -> None:
        """Move to the moment of the next sleeper and wake all that are due then, without waiting for what they do."""
        due = self.next_due()
        if due is None:
            return
        self._now = max(self._now, due)
        while self._sleepers and self._sleepers[0][0] <= self._now:
            _, _, future = heapq.heappop(self._sleepers)
            if not future.done():
                future.set_result(None)

    def skip_to(self, moment: float) -> None:
        """Move on without waking anybody; nobody may be due before."""
        self._now = max(self._now, moment)

    @staticmethod
    async def _settle() -> None:
        loop = asyncio.get_running_loop()
        settled = loop.create_future()
        _turn(loop, _TURNS_TO_SETTLE, settled)
        await settled


def _turn(loop: asyncio.AbstractEventLoop, left: int, settled: asyncio.Future[None]) -> None:
    """Wait for turns of the loop without waking the task in each, which would take twice as long."""
    if left:
        loop.call_soon(_turn, loop, left - 1, settled)
    elif not settled.done():
        settled.set_result(None)
