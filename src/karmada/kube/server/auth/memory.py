"""Results of reviews that another server makes, kept for a few seconds; one request at a time for each key."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from karmada.kube.objects.clock import Clock
from karmada.kube.runtime.waiting import drop_failure
from karmada.kube.server.auth.cache import GenerationCache

REMEMBER_SECONDS = 10.0
_KEPT = 4096
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Memory(Generic[K, V]):
    """Failures are not kept: the next caller tries again."""

    def __init__(self, clock: Clock, seconds: float = REMEMBER_SECONDS) -> None:
        self._clock = clock
        self._seconds = seconds
        self._kept: GenerationCache[K, tuple[float, V]] = GenerationCache(_KEPT)
        self._pending: dict[K, asyncio.Task[V]] = {}

    async def get(self, key: K, fetch: Callable[[], Awaitable[V]]) -> V:
        kept = self._kept.get(key)
        if kept is not None and kept[0] > self._clock.monotonic():
            return kept[1]
        pending = self._pending.get(key)
        if pending is None:
            pending = self._pending[key] = asyncio.create_task(self._fetch(key, fetch))
            pending.add_done_callback(drop_failure)
        return await asyncio.shield(pending)  # a cancelled caller does not cancel it for the others

    async def _fetch(self, key: K, fetch: Callable[[], Awaitable[V]]) -> V:
        try:
            answer = await fetch()
            self._kept.put(key, (self._clock.monotonic() + self._seconds, answer))
            return answer
        finally:
            del self._pending[key]
