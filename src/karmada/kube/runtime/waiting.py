"""Waiting against a Clock: time-outs that a fake clock can drive."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

from karmada.kube.objects.clock import Clock

T = TypeVar("T")


async def cancel_and_wait(*tasks: asyncio.Task[Any]) -> None:
    """End tasks and wait until they are gone; what they raise while ending is theirs to have logged."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def until_one_ends(*work: Coroutine[Any, Any, None]) -> None:
    """Run these until one of them ends, end the others, and raise what it raised."""
    tasks = [asyncio.create_task(one) for one in work]
    try:
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in ended:
            task.result()
    finally:
        await cancel_and_wait(*tasks)


def drop_failure(task: asyncio.Task[Any]) -> None:
    """Take the failure of a task that several may await, or none, so that it is not logged."""
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
    """Return the result of `work`, or TimeoutError when the clock has moved `seconds` on before it came.

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
