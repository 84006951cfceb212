"""A control plane's API server that knows Clusters and nothing else of Karmada, for tests on the wire."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from karmada.kube.client.client import Client
from karmada.kube.server.app import ApiServer
from tests.support.karmada_server import clusters_only
from tests.support.wire import Http


@pytest.fixture
async def server(folder: Path) -> AsyncIterator[ApiServer]:
    async with clusters_only(folder) as server:
        yield server


@pytest.fixture
def client(server: ApiServer) -> Client:
    return server.client(user_agent="tests")


@pytest.fixture
async def http(server: ApiServer) -> AsyncIterator[Http]:
    http = Http(server)
    yield http
    await http.close()
