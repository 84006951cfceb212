"""A time limit for what a task does, for paths that thousands of requests a second take.

`asyncio.timeout` can be rescheduled, for which it takes five calls where two do. This one has its limit when it is
entered, and otherwise the same rules: what is inside is cancelled, the caller gets a TimeoutError, and a task that was
cancelled by others, too, stays cancelled.
"""

from __future__ import annotations

import asyncio
from types import TracebackType


class Deadline:
    """`with Deadline(seconds) as deadline:` around awaits; None: no limit."""

    __slots__ = ("_handle", "_seconds", "_task", "expired")

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._handle: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[object] | None = None
        self.expired = False

    def __enter__(self) -> Deadline:
        if self._seconds is not None:
            self._task = asyncio.current_task()
            self._handle = asyncio.get_running_loop().call_later(self._seconds, self._expire)
        return self

    def _expire(self) -> None:
        assert self._task is not None
        self.expired = True
        self._task.cancel()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        handle, task = self._handle, self._task
        if handle is None or task is None:
            return
        handle.cancel()
        if self.expired and task.uncancel() == 0 and kind is asyncio.CancelledError:
            raise TimeoutError from error
