"""Servers of this process for tests that run programs: an event loop in a thread, so that the test may block."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, TypeVar

import uvloop

T = TypeVar("T")


class Background:
    """`run` waits for a coroutine that runs in the thread; what was entered there is left at the end."""

    def __init__(self) -> None:
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="servers", daemon=True)
        self._open = AsyncExitStack()

    def __enter__(self) -> Background:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.run(self._open.aclose())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, task: Coroutine[Any, Any, T], seconds: float = 60.0) -> T:
        return asyncio.run_coroutine_threadsafe(task, self._loop).result(seconds)

    def start(self, task: Coroutine[Any, Any, T]) -> Future[T]:
        """Start it in the thread; the future is for its result and for cancelling it."""
        return asyncio.run_coroutine_threadsafe(task, self._loop)

    def enter(self, context: AbstractAsyncContextManager[T]) -> T:
        return self.run(self._open.enter_async_context(context))
