"""Something large that open pages want again whenever it changes, and may cost a fiftieth of the time at most.

Who comes during a pause waits for the next reading, which is the same for all who wait: it begins after they came, so
nobody is shown for long what is no more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

from karmada.kube.objects.clock import Clock

REST: Final = 50.0
"""A pause is so many times as long as the reading before it."""
SHORTEST, LONGEST = 0.5, 30.0
T = TypeVar("T")


class Paced(Generic[T]):
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.begun = 0
        """How often it was read. Who waits for the same number gets the same."""
        self.latest: T | None = None
        self._turn, self._not_before = asyncio.Lock(), 0.0

    @property
    def is_fresh(self) -> bool:
        """Return whether the pause after `latest` is not over."""
        return self.latest is not None and self._clock.monotonic() < self._not_before

    async def next(self, read: Callable[[], Awaitable[T]]) -> T:
        """Return what is read now, or after a pause if it was read just before."""
        async with self._turn:
            await self._clock.sleep(max(0.0, self._not_before - self._clock.monotonic()))
            return await self.now(read)

    async def now(self, read: Callable[[], Awaitable[T]]) -> T:
        """Return what is read at once: a viewer waits for it. The pause comes after it."""
        self.begun += 1
        began = self._clock.monotonic()
        try:
            self.latest = await read()
        finally:
            now = self._clock.monotonic()
            self._not_before = now + min(LONGEST, max(SHORTEST, REST * (now - began)))
        return self.latest
