from __future__ import annotations

import pytest

from karmada.kube.client.client import Client
from tests.support.fake_api import FakeApi, FakeTransport


@pytest.fixture
def fake() -> FakeApi:
    return FakeApi()


@pytest.fixture
def client(fake: FakeApi) -> Client:
    return Client(FakeTransport(fake))
