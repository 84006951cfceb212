"""Servers and components in the test's own process, and leases that a busy machine does not lose."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

from karmada.components.election import NAMESPACE, Election
from karmada.kube.objects.clock import Clock
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig


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


@asynccontextmanager
async def run_server(server: ApiServer) -> AsyncIterator[ApiServer]:
    """It serves until the block ends."""
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


def api_server(folder: Path, clock: Clock | None = None, **settings: Any) -> AbstractAsyncContextManager[ApiServer]:
    """A plain API server whose state is in memory, on a free port."""
    return run_server(ApiServer(ServerConfig(data_dir=folder, storage="memory://", port=0, **settings), clock))
