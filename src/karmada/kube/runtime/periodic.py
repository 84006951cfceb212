"""Work that is due again and again: a round, a pause, a round. A round that fails is logged and tried again later."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from karmada.kube.objects.clock import Clock
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.waiting import cancel_and_wait

log = get_logger("periodic")


class Periodic:
    """A component for a Manager.

    `at_once`: it begins with a round, not with a pause. `before`: ahead of the first round, this is done once.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[], Awaitable[None]],
        seconds: float,
        clock: Clock,
        *,
        at_once: bool = False,
        before: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.name = name
        self._before = before
        self._work = work
        self._seconds = seconds
        self._clock = clock
        self._at_once = at_once
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=self.name)

    async def stop(self) -> None:
        if self._task is not None:
            await cancel_and_wait(self._task)
            self._task = None

    async def _run(self) -> None:
        before = self._before
        if not self._at_once:
            await self._clock.sleep(self._seconds)
        while True:
            try:
                if before is not None:
                    await before()
                    before = None
                await self._work()
            except Exception as error:
                log.exception("A round failed, trying again later", error, work=self.name)
            await self._clock.sleep(self._seconds)
