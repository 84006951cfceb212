"""Adaptive concurrency: how many requests one server gets at once, found out instead of configured.

The limit grows by one for each full round of successes while it is in use (additive increase) and is halved when the
server says it is too much (429, 503, time-outs; multiplicative decrease). One burst of refusals counts once: for
`cooldown` seconds after it was halved the limit neither shrinks nor grows. A fast server is used fully, a slow one is
never drowned. Waiters are served in order.
"""

from __future__ import annotations

import asyncio
from collections import deque

from karmada.kube.objects.clock import SYSTEM, Clock


class AdaptiveLimiter:
    def __init__(
        self,
        *,
        initial: int = 32,
        minimum: int = 1,
        maximum: int = 512,
        cooldown: float = 1.0,
        clock: Clock = SYSTEM,
    ) -> None:
        self._limit = float(initial)
        self._minimum = minimum
        self._maximum = maximum
        self._cooldown = cooldown
        self._clock = clock
        self._halved_at = float("-inf")
        self._waiters: deque[asyncio.Future[None]] = deque()
        self.in_flight = 0

    @property
    def limit(self) -> int:
        return int(self._limit)

    @property
    def waiting(self) -> int:
        return len(self._waiters)

    async def acquire(self) -> None:
        if self.in_flight < int(self._limit) and not self._waiters:
            self.in_flight += 1
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(future)
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self.in_flight -= 1
                self._admit()
            elif future in self._waiters:  # `_admit` passes over what was cancelled
                self._waiters.remove(future)
            raise

    def release(self, *, overloaded: bool = False) -> None:
        """Record that a request ended; `overloaded`: the server said it was too much."""
        if overloaded:
            self._decrease()
        elif self.in_flight >= int(self._limit) and self._clock.monotonic() - self._halved_at >= self._cooldown:
            self._limit = min(self._maximum, self._limit + 1 / self._limit)
        self.in_flight -= 1
        if self._waiters:
            self._admit()

    def _decrease(self) -> None:
        now = self._clock.monotonic()
        if now - self._halved_at >= self._cooldown:
            self._halved_at = now
            self._limit = max(self._minimum, min(self._limit, self.in_flight) / 2)

    def _admit(self) -> None:
        while self._waiters and self.in_flight < self.limit:
            future = self._waiters.popleft()
            if not future.done():
                self.in_flight += 1
                future.set_result(None)
