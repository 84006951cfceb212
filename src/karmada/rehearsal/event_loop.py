"""An event loop that can be awaited until it has nothing to do but wait.

While callbacks are ready, asyncio calls a loop's selector with a time-out of zero, to look for further ones; with none
ready, it lets the selector wait. So the selector sees when everything waits: for a timer, the network, or a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from selectors import DefaultSelector, SelectorKey
from typing import Any, Final, TypeVar, TypeVarTuple, Unpack

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
_MOST_ROUNDS: Final = 1_000_000


class IdleSelector(DefaultSelector):
    def __init__(self) -> None:
        super().__init__()
        self.threads = 0
        """That work for the loop."""
        self._rounds = 0
        self._waiting: list[asyncio.Future[None]] = []

    def when_idle(self, waiting: asyncio.Future[None]) -> None:
        """Set the result of the future when nothing is ready and no thread works for the loop."""
        self._rounds = 0
        self._waiting.append(waiting)

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        if not self._waiting:
            return super().select(timeout)
        found = super().select(0)
        if found or timeout == 0:
            self._rounds += 1
            if self._rounds > _MOST_ROUNDS:
                self._end(RuntimeError("the event loop does not come to rest"))
            return found
        if self.threads:
            return super().select(timeout)
        self._end()
        return []

    def _end(self, error: Exception | None = None) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None) if error is None else future.set_exception(error)


class RehearsalLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._idle_selector = IdleSelector()
        super().__init__(self._idle_selector)

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> asyncio.Future[T]:
        future = super().run_in_executor(executor, func, *args)
        self._idle_selector.threads += 1
        future.add_done_callback(self._thread_ended)
        return future

    def _thread_ended(self, _future: asyncio.Future[Any]) -> None:
        self._idle_selector.threads -= 1

    async def at_rest(self) -> None:
        """Wait until everything waits; RuntimeError when that does not come."""
        waiting: asyncio.Future[None] = self.create_future()
        self._idle_selector.when_idle(waiting)
        await waiting


def rehearse(rehearsal: Coroutine[Any, Any, T]) -> T:
    """Run it in a loop of its own."""
    with asyncio.Runner(loop_factory=RehearsalLoop) as runner:
        return runner.run(rehearsal)
