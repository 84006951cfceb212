"""Results of reviews that another server makes, kept for a few seconds; one request at a time for each key."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from karmada.kube.objects.clock import Clock
from karmada.kube.objects.memo import Memo
from karmada.kube.runtime.waiting import drop_failure

REMEMBER_SECONDS = 10.0
_KEPT = 8192
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SingleFlight(Generic[K, V]):
    """Shares one request between all who wait for the same; a failure is not kept, so the next caller tries again."""

    def __init__(self, clock: Clock, seconds: float = REMEMBER_SECONDS) -> None:
        self._kept: Memo[K, V] = Memo(_KEPT, seconds=seconds, clock=clock)
        self._pending: dict[K, asyncio.Task[V]] = {}

    async def get(self, key: K, fetch: Callable[[], Awaitable[V]]) -> V:
        kept = self._kept.get(key)
        if kept is not None:
            return kept
        pending = self._pending.get(key)
        if pending is None:
            pending = self._pending[key] = asyncio.create_task(self._fetch(key, fetch))
            pending.add_done_callback(drop_failure)
        return await asyncio.shield(pending)  # a cancelled caller does not cancel it for the others

    async def _fetch(self, key: K, fetch: Callable[[], Awaitable[V]]) -> V:
        try:
            return self._kept.put(key, await fetch())
        finally:
            del self._pending[key]
