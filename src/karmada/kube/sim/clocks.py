"""The clock of a simulated cluster: the machine's time with an offset and a rate, both changeable at any time.

Each sleeper is a timer of the event loop. When the clock changes, the timers are set again: a task that slept until ten
past wakes at ten past, however soon that is now.
"""

from __future__ import annotations

import asyncio
import time


class ClusterClock:
    """`rate` seconds pass here per second outside."""

    def __init__(self, *, rate: float = 1.0) -> None:
        self.rate = _checked(rate)
        self._since = time.monotonic()
        self._wall = time.time()
        self._ticks = self._since
        self._sleepers: dict[asyncio.Future[None], tuple[float, asyncio.TimerHandle]] = {}

    @property
    def offset(self) -> float:
        """Return how far it is ahead of the machine's clock."""
        return self.now() - time.time()

    def now(self) -> float:
        return self._wall + (time.monotonic() - self._since) * self.rate

    def monotonic(self) -> float:
        return self._ticks + (time.monotonic() - self._since) * self.rate

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        sleeper: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._set(sleeper, self.monotonic() + seconds)
        try:
            await sleeper
        finally:
            self._sleepers.pop(sleeper)[1].cancel()

    def _set(self, sleeper: asyncio.Future[None], until: float) -> None:
        delay = max(0.0, until - self.monotonic()) / self.rate
        timer = asyncio.get_running_loop().call_later(delay, _wake, sleeper)
        self._sleepers[sleeper] = (until, timer)

    def change(self, *, rate: float | None = None, skip: float = 0.0) -> None:
        """Jump by `skip` seconds, then run at `rate`. Wall time may go back; durations only go on."""
        rate = self.rate if rate is None else _checked(rate)
        self._wall, self._ticks = self.now() + skip, self.monotonic() + max(skip, 0.0)
        self._since = time.monotonic()
        self.rate = rate
        for sleeper, (until, timer) in list(self._sleepers.items()):
            timer.cancel()
            self._set(sleeper, until)

    def reset(self) -> None:
        """Run with the machine's clock again."""
        self.change(rate=1.0, skip=-self.offset)


def _wake(sleeper: asyncio.Future[None]) -> None:
    if not sleeper.done():
        sleeper.set_result(None)


def _checked(rate: float) -> float:
    if rate <= 0:
        raise ValueError(f"a clock's rate must be above 0, not {rate:g}")
    return rate
