"""Timers of the scheduler: a heap of times, and one sleeping task while it is not empty."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable

from karmada.kube.objects.clock import Clock
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.waiting import cancel_and_wait

log = get_logger("scheduler")


class Timers:
    def __init__(self, clock: Clock, name: str) -> None:
        self._clock = clock
        self._name = name
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._order = 0
        self._task: asyncio.Task[None] | None = None
        self._sleeping_until = 0.0

    def after(self, seconds: float, call: Callable[[], None]) -> None:
        """Set a timer, which cannot be cancelled: the callback checks whether it is still needed."""
        due = self._clock.monotonic() + seconds
        self._order += 1
        heapq.heappush(self._heap, (due, self._order, call))
        if self._task is None or due < self._sleeping_until:
            if self._task is not None:
                self._task.cancel()
            self._sleeping_until = due
            self._task = asyncio.create_task(self._run(), name=self._name)

    async def _run(self) -> None:
        while self._heap:
            self._sleeping_until = self._heap[0][0]
            await self._clock.sleep(self._sleeping_until - self._clock.monotonic())
            self._call_due()
        self._task = None

    def _call_due(self) -> None:
        now = self._clock.monotonic()
        while self._heap and self._heap[0][0] <= now:
            _, _, call = heapq.heappop(self._heap)
            try:
                call()
            except Exception as error:
                log.exception("A timer's call failed", error)

    async def stop(self) -> None:
        self._heap.clear()
        task, self._task = self._task, None
        if task is not None:
            await cancel_and_wait(task)
