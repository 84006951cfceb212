"""Sends the requests that follow from decisions: several at a time, some after a delay, without blocking decisions.

A handful of tasks exist while there is something to send and end when there is nothing left.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.waiting import cancel_and_wait
from karmada.kube.sim.scheduler.timers import Timers

log = get_logger("scheduler")
_AT_ONCE = 32

Action = Callable[[], Awaitable[None]]


class Outbox:
    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._ready: deque[Action] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._at_work = 0
        """Tasks that will still look for an action; one that has ended stays in `_tasks` for a moment."""
        self._delayed = 0
        self._closed = False

    def send(self, action: Action, delay: float = 0.0) -> None:
        """Queue an action, which handles its own failures; what it raises nevertheless is logged."""
        if delay > 0:
            self._delayed += 1
            self._timers.after(delay, lambda: self._due(action))
        else:
            self._add(action)

    def _due(self, action: Action) -> None:
        self._delayed -= 1
        self._add(action)

    def _add(self, action: Action) -> None:
        if self._closed:
            return
        self._ready.append(action)
        if self._at_work < _AT_ONCE:
            self._at_work += 1
            task = asyncio.create_task(self._run(), name="scheduler requests")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _run(self) -> None:
        try:
            while self._ready:
                action = self._ready.popleft()
                try:
                    await action()
                except Exception as error:
                    log.exception("A request failed", error)
        finally:
            self._at_work -= 1

    @property
    def idle(self) -> bool:
        return not self._at_work and not self._delayed

    def open(self) -> None:
        self._closed = False

    async def close(self) -> None:
        self._closed = True
        self._ready.clear()
        self._delayed = 0
        await cancel_and_wait(*self._tasks)
        self._at_work = 0
