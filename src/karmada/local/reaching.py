"""Clients for the servers of a local environment."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from karmada.kube.client.client import Client
from karmada.kube.client.config import RestConfig
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.kubeconfig import Kubeconfig

FIELD_MANAGER = "karmadactl"
_SECONDS = 20.0


def way(kubeconfig: Path, context: str = "", *, seconds: float = _SECONDS) -> RestConfig:
    """KubeconfigError when the file has no usable context."""
    return Kubeconfig.load(kubeconfig).resolve(context, timeout=seconds)


@asynccontextmanager
async def connected(config: RestConfig) -> AsyncIterator[Client]:
    client = Client(HttpTransport(config), field_manager=FIELD_MANAGER)
    try:
        yield client
    finally:
        await client.close()
