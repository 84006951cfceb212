"""Predictions (why, blast radius) compute in the process that serves all viewers: few at a time, one of each user.

Others wait for their turn, so that several open pages of a user work, and no user keeps the process busy alone.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar
from weakref import WeakValueDictionary

from karmada.kube.objects.errors import TooManyRequests
from karmada.prediction.errors import PredictionError

MOST: Final = 2
"""At the same time."""
MOST_OF_ONE: Final = 16
"""That one user may have computed and waiting."""
SECONDS: Final = 60.0
T = TypeVar("T")


class Predictions:
    """One for all viewers of a dashboard."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._places = asyncio.Semaphore(MOST)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._requested: Counter[str] = Counter()

    async def run(self, user: str, predict: Callable[[], Awaitable[T]]) -> T:
        """Run a prediction; TooManyRequests when too many of this user wait, PredictionError when it takes too long."""
        if self._requested[user] >= MOST_OF_ONE:
            raise TooManyRequests(
                f"{MOST_OF_ONE} predictions of yours are being computed; try again when one has ended"
            )
        self._requested[user] += 1
        turn = self._turns.setdefault(user, asyncio.Lock())
        try:
            async with turn, self._places:
                return await self._within_limit(predict)
        finally:
            self._requested[user] -= 1
            if not self._requested[user]:
                del self._requested[user]

    async def _within_limit(self, predict: Callable[[], Awaitable[T]]) -> T:
        try:
            async with asyncio.timeout(self._seconds) as limit:
                return await predict()
        except TimeoutError:
            if not limit.expired():
                raise
            raise PredictionError(
                f"it took longer than {self._seconds:g} s: select fewer resources, or use karmadactl"
            ) from None
