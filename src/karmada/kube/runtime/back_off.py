"""Back-off: pauses between attempts that grow with each failure, against a Clock."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass

from karmada.kube.objects.clock import Clock
from karmada.kube.runtime.waiting import cancel_and_wait

_DOUBLINGS = 60


@dataclass(frozen=True, slots=True)
class BackOff:
    """Pauses of `base_delay` seconds, doubled with each failure up to `max_delay`."""

    base_delay: float = 0.005
    max_delay: float = 1000.0

    def pause(self, failures: int) -> float:
        """Return the seconds to wait after a failure that `failures` others preceded."""
        return min(self.max_delay, self.base_delay * 2.0 ** min(failures, _DOUBLINGS))


class Attempts:
    """Makes the pauses between attempts at one thing, stretched at random by up to `jitter`.

    It starts over when `next` was not called for `reset_after` seconds.
    """

    def __init__(self, clock: Clock, back_off: BackOff, *, jitter: float = 0.5, reset_after: float = 120.0) -> None:
        self._clock = clock
        self._back_off = back_off
        self._jitter = jitter
        self._reset_after = reset_after
        self._failures = 0
        self._last = clock.monotonic()
        self._pausing: asyncio.Task[None] | None = None

    def reset(self) -> None:
        """Begin with the shortest pause again."""
        self._failures = 0

    def next(self) -> float:
        """Count a failure and return the seconds to wait after it."""
        now = self._clock.monotonic()
        if now - self._last > self._reset_after:
            self._failures = 0
        self._last = now
        pause = self._back_off.pause(self._failures)
        self._failures += 1
        return pause * (1 + random.random() * self._jitter)

    async def pause(self, at_most: float = float("inf")) -> None:
        """Count a failure and wait after it, `at_most` so many seconds."""
        seconds = max(0.0, min(self.next(), at_most))
        pausing = self._pausing = asyncio.ensure_future(self._clock.sleep(seconds))
        try:
            await asyncio.wait({pausing})
        finally:
            self._pausing = None
            if not pausing.done():
                await cancel_and_wait(pausing)

    def cut_short(self) -> None:
        """End the pause that is being made, if any, and begin with the shortest again."""
        self.reset()
        if self._pausing is not None:
            self._pausing.cancel()
