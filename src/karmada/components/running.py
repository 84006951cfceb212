"""A process from its start to its end: it may be told to stop before it has started.

What a start waits for (a store that is not there yet, a definition that is on its way out) can take any time; whoever
runs the process need not wait for that to be rid of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from karmada.kube.runtime.waiting import cancel_and_wait


async def start_unless(stopping: asyncio.Event, start: Coroutine[Any, Any, None]) -> bool:
    """Whether it has started; False when it was told to stop before, and was given up."""
    starting, told = asyncio.create_task(start), asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait({starting, told}, return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            return False
        starting.result()
        return not stopping.is_set()
    finally:
        await cancel_and_wait(*(task for task in (starting, told) if not task.done()))
