"""Waiting in tests: on a condition, never for a fixed time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any


async def eventually(
    condition: Callable[..., Any], *, within: float = 5.0, show: Callable[[], Any] | None = None
) -> Any:
    """The condition's first true value; fails with the last state after `within` seconds."""
    end = time.monotonic() + within
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {within}s; last state: {show() if show else value!r}")
        await asyncio.sleep(0.001)
