"""The pace of evictions: at most so many a second, each at a moment that it reserves.

When many clusters fail at once, their workloads are moved one after the other, so that neither the scheduler nor the
clusters that take them over are flooded. A reservation costs nothing while it waits.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
_STANDSTILL = 1800.0


class Pace(Generic[K]):
    def __init__(self, rate: float, workers: int) -> None:
        """`workers` evictions may happen at once, and each worker makes `rate` a second; 0 is one in half an hour."""
        self._pause = 1 / rate if rate > 0 else _STANDSTILL
        self._free = [0.0] * workers
        self._reserved: dict[K, float] = {}

    def __len__(self) -> int:
        return len(self._reserved)

    def __contains__(self, key: K) -> bool:
        return key in self._reserved

    def wait(self, key: K, now: float) -> float:
        """Seconds until it is this key's turn; 0: now, and the reservation is used up."""
        due = self._reserved.get(key)
        if due is None:
            due = max(now, self._free[0])
            heapq.heapreplace(self._free, due + self._pause)
        if due <= now:
            self._reserved.pop(key, None)
            return 0.0
        self._reserved[key] = due
        return due - now

    def forget(self, key: K) -> None:
        """Drop an eviction that is not needed after all."""
        self._reserved.pop(key, None)
