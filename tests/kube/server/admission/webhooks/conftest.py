"""The plug-ins for webhooks, over a state that tests fill."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from karmada.kube.server.addresses.service_routing import ServiceRouter
from karmada.kube.server.admission.webhooks import MutatingWebhooks, ValidatingWebhooks
from karmada.kube.server.outbound.webhooks import WebhookClient
from tests.kube.server.admission.webhooks.hooks import Hooks
from tests.support.tls_backend import State, TlsBackend, builtin_registry


@pytest.fixture
def state() -> State:
    return State()


@pytest.fixture
async def hooks(state: State) -> AsyncIterator[Hooks]:
    async with TlsBackend() as backend:
        yield Hooks(backend, state)


@pytest.fixture
async def client(state: State) -> AsyncIterator[WebhookClient]:
    client = WebhookClient(ServiceRouter(state))
    yield client
    await client.close()


@pytest.fixture
def mutating(state: State, client: WebhookClient) -> MutatingWebhooks:
    return MutatingWebhooks(state, builtin_registry(), client)


@pytest.fixture
def validating(state: State, client: WebhookClient) -> ValidatingWebhooks:
    return ValidatingWebhooks(state, builtin_registry(), client)
