"""Components in the test's own process, and leases that a busy machine does not lose."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Protocol

from karmada.components.election import NAMESPACE, Election


def unhurried(name: str, namespace: str = NAMESPACE) -> Election:
    """For tests in which nobody loses a lease by time: who stops gives it up, and who waits for it tries often."""
    return Election(name=name, namespace=namespace, lease_duration=3600, renew_deadline=2400, retry_period=0.2)


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
