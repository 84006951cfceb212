"""The real server in this process: memory storage, a free port, TLS, every controller; no mocks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from karmada.kube.client.client import Client
from karmada.kube.server.app import ApiServer
from tests.support.running import api_server
from tests.support.wire import Http


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory whose certificates all servers of this run share, so that each starts fast."""
    return tmp_path_factory.mktemp("data")


@pytest.fixture
async def server(certificates: Path) -> AsyncIterator[ApiServer]:
    async with api_server(certificates) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def idle_server(certificates: Path) -> AsyncIterator[ApiServer]:
    """One for all tests of a file that write nothing; they run on the file's event loop."""
    async with api_server(certificates) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def idle(idle_server: ApiServer) -> AsyncIterator[Http]:
    """Requests to the server that nobody writes to."""
    http = Http(idle_server)
    yield http
    await http.close()


@pytest.fixture
async def http(server: ApiServer) -> AsyncIterator[Http]:
    http = Http(server)
    yield http
    await http.close()


@pytest.fixture
def client(server: ApiServer) -> Client:
    """In-process, as the server's own user."""
    return server.client(user_agent="tests")
