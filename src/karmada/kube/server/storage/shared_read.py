"""One read for all concurrent callers.

A caller that comes while a read is under way may not have its result, which may be older than the call: all of them
share the next one, which starts when the present one has ended. So there is at most one read under way and one waiting,
however many callers there are, and each result is as fresh as a separate read. The time for a read counts from the
first of its callers, so that waiting for one that fails does not double it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from karmada.kube.runtime.waiting import drop_failure


class SharedRead:
    def __init__(self, read: Callable[[float], Awaitable[int]], timeout: float) -> None:
        """`read` is given the time of the loop by which it has to end."""
        self._read = read
        self._timeout = timeout
        self._running: asyncio.Task[int] | None = None
        self._next: asyncio.Task[int] | None = None

    async def __call__(self) -> int:
        if self._next is None:
            deadline = asyncio.get_running_loop().time() + self._timeout
            self._next = asyncio.create_task(self._after(self._running, deadline))
            self._next.add_done_callback(drop_failure)
        return await asyncio.shield(self._next)

    async def _after(self, running: asyncio.Task[int] | None, deadline: float) -> int:
        if running is not None:
            await asyncio.wait((running,))
        self._running, self._next = self._next, None
        return await self._read(deadline)
