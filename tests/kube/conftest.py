"""A fake API server for the client and runtime packages, and their fake clock."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from karmada.kube.client.client import Client
from karmada.kube.runtime.logging import set_verbosity, verbosity
from tests.support.fake_api import FakeApi, FakeTransport


@pytest.fixture
def fake() -> FakeApi:
    return FakeApi()


@pytest.fixture
def api(fake: FakeApi) -> FakeTransport:
    """A Transport to a fresh server."""
    return FakeTransport(fake)


@pytest.fixture
async def client(api: FakeTransport) -> AsyncIterator[Client]:
    client = Client(api, field_manager="tests")
    yield client
    await client.close()


@pytest.fixture(autouse=True)
def _verbosity() -> Iterator[None]:
    before = verbosity()
    yield
    set_verbosity(before)
