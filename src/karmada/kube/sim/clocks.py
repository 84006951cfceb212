"""The clock of a simulated cluster: real time, moved or running faster, changeable at any moment.

Whoever sleeps when the rate changes has its remaining time stretched or shortened: sleepers wait in slices on a
condition that every change wakes.
"""

from __future__ import annotations

import asyncio

from karmada.kube.objects.clock import SYSTEM, Clock


class SkewedClock:
    """`rate` seconds pass here per second of the clock beneath, starting `offset` seconds away from it."""

    def __init__(self, base: Clock = SYSTEM, *, rate: float = 1.0, offset: float = 0.0) -> None:
        if rate <= 0:
            raise ValueError(f"a clock's rate must be above 0, not {rate:g}")
        self._base = base
        self.rate = rate
        self._wall = base.now() + offset
        self._ticks = base.monotonic()
        self._since = base.monotonic()
        self._changed: asyncio.Future[None] | None = None

    def _passed(self) -> float:
        return (self._base.monotonic() - self._since) * self.rate

    def now(self) -> float:
        return self._wall + self._passed()

    def monotonic(self) -> float:
        return self._ticks + self._passed()

    async def sleep(self, seconds: float) -> None:
        if self.rate == 1.0 and self._changed is None:
            self._changed = asyncio.get_running_loop().create_future()
        until = self.monotonic() + seconds
        while True:
            left = until - self.monotonic()
            if left <= 0:
                await self._base.sleep(0)
                return
            await self._slice(left / self.rate)

    async def _slice(self, seconds: float) -> None:
        """Sleep so long, or until the rate changes."""
        if self._changed is None:
            self._changed = asyncio.get_running_loop().create_future()
        sleeping = asyncio.ensure_future(self._base.sleep(seconds))
        try:
            await asyncio.wait({sleeping, self._changed}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeping.cancel()

    def change(self, *, rate: float | None = None, skip: float = 0.0) -> None:
        """From now on run at `rate`; first jump ahead by `skip` seconds (wall time may also go back)."""
        if rate is not None and rate <= 0:
            raise ValueError(f"a clock's rate must be above 0, not {rate:g}")
        self._wall = self.now() + skip
        self._ticks = self.monotonic() + max(skip, 0.0)
        self._since = self._base.monotonic()
        self.rate = self.rate if rate is None else rate
        changed, self._changed = self._changed, None
        if changed is not None and not changed.done():
            changed.set_result(None)
