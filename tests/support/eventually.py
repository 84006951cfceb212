"""Waiting in tests: on a condition, never for a fixed time.

The limits only end a test that fails, so they are generous: on a busy machine a second of work takes many.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable
from typing import Any

LIMIT = 120.0
_PART = 0.05
"""Of the time that was waited so far: a pause that long is late by so little that nobody notices, and is cheap."""
_SHOWN = 4_000
"""Characters of a state that a failure shows."""


async def eventually(
    condition: Callable[..., Any], *, within: float = LIMIT, show: Callable[[], Any] | None = None
) -> Any:
    """The first true value of the condition, a function or coroutine function; fails with the last state.

    Between two looks it pauses for as long as one took, so that the looks do not take the time of what they wait for.
    """
    start = time.monotonic()
    end = start + within
    while True:
        began = time.monotonic()
        value = condition()
        if inspect.isawaitable(value):
            value = await value
        if value:
            return value
        now = time.monotonic()
        if now > end:
            state = show() if show else value
            raise AssertionError(f"not within {within:g} s; last state: {repr(state)[:_SHOWN]}")
        await asyncio.sleep(max(0.001, now - began, _PART * (now - start)))


def eventually_blocking(check: Callable[..., Any], seconds: float = LIMIT) -> Any:
    """The same for tests that run programs; an AssertionError of the check counts as not yet.

    A check that runs a program itself burns a core if it is repeated at once, so it waits for twice as long as it took.
    """
    start = time.monotonic()
    end = start + seconds
    while True:
        last: Any
        began = time.monotonic()
        try:
            last = check()
            if last:
                return last
        except AssertionError as error:
            last = error
        now = time.monotonic()
        if now > end:
            raise AssertionError(f"not within {seconds:g} s; last: {repr(last)[:_SHOWN]}")
        time.sleep(max(0.05, 2 * (now - began), _PART * (now - start)))
