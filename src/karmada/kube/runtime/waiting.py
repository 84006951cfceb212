"""Waiting against a Clock: time-outs and back-off that a fake clock can drive."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

from karmada.kube.objects.clock import Clock

T = TypeVar("T")


async def cancel_and_wait(*tasks: asyncio.Task[Any]) -> None:
    """End tasks and wait until they are gone; what they raise while ending is theirs to have logged."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def drop_failure(task: asyncio.Task[Any]) -> None:
    """A done callback of tasks that several may await, or none: a failure that is not awaited is not logged."""
    if not task.cancelled():
        task.exception()


async def finish_within(clock: Clock, tasks: Iterable[asyncio.Task[Any]], seconds: float) -> None:
    """Let tasks end by themselves for that long, then end the rest."""
    pending = {task for task in tasks if not task.done()}
    if pending and seconds > 0:
        timer: asyncio.Task[None] = asyncio.create_task(_sleep(clock, seconds))
        try:
            while pending and not timer.done():
                done, _ = await asyncio.wait({*pending, timer}, return_when=asyncio.FIRST_COMPLETED)
                pending -= done
        finally:
            await cancel_and_wait(timer)
    await cancel_and_wait(*pending)


async def with_timeout(clock: Clock, work: Coroutine[Any, Any, T], seconds: float, *, steps: int = 1) -> T:
    """The result of `work`, or TimeoutError when the clock has moved `seconds` on before it came.

    Time is counted in `steps`, each of which ends when this process has noticed: with several, a moment in which it
    could not run counts as one of them, however long it was, and a response that came meanwhile is read.
    """
    task = asyncio.create_task(work)
    timer: asyncio.Task[None] = asyncio.create_task(_sleep(clock, seconds, steps))
    try:
        await asyncio.wait({task, timer}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise TimeoutError(f"no response within {seconds:g}s")
    finally:
        await cancel_and_wait(*(t for t in (task, timer) if not t.done()))


async def _sleep(clock: Clock, seconds: float, steps: int = 1) -> None:
    for _ in range(steps):
        await clock.sleep(seconds / steps)


class Backoff:
    """Growing pauses: `first`, doubled each time up to `most`, stretched at random by up to `jitter`.

    It starts over when `next` was not called for `reset_after` seconds.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        first: float,
        most: float,
        factor: float = 2.0,
        jitter: float = 0.5,
        reset_after: float = 120.0,
    ) -> None:
        self._clock = clock
        self._first = first
        self._most = most
        self._factor = factor
        self._jitter = jitter
        self._reset_after = reset_after
        self._next = first
        self._last = clock.monotonic()
        self._pausing: asyncio.Task[None] | None = None

    def reset(self) -> None:
        self._next = self._first

    def next(self) -> float:
        now = self._clock.monotonic()
        if now - self._last > self._reset_after:
            self._next = self._first
        self._last = now
        pause = self._next
        self._next = min(self._most, pause * self._factor)
        return pause * (1 + random.random() * self._jitter)

    async def pause(self) -> None:
        pausing = self._pausing = asyncio.create_task(_sleep(self._clock, self.next()))
        try:
            await asyncio.wait({pausing})
        finally:
            self._pausing = None
            if not pausing.done():
                await cancel_and_wait(pausing)

    def cut_short(self) -> None:
        """End the pause that is being made, if any, and begin with the shortest again."""
        self.reset()
        if self._pausing is not None:
            self._pausing.cancel()
