"""Components in the test's own process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Protocol


class Runs(Protocol):
    def run(self, stopping: asyncio.Event) -> Awaitable[None]: ...


@asynccontextmanager
async def run_component(component: Runs) -> AsyncIterator[asyncio.Future[None]]:
    """It runs until the block ends; its failure is the test's."""
    stopping = asyncio.Event()
    task = asyncio.ensure_future(component.run(stopping))
    try:
        yield task
    finally:
        stopping.set()
        await task
