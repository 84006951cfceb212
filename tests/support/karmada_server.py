"""The embedded API server as the control plane sets it up: all of Karmada's kinds and its admission, in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from karmada.apiserver.mount import mount_clusters, until_served
from karmada.components.server import control_plane_server
from karmada.kube.objects.clock import Clock
from karmada.kube.runtime.features import FeatureGates
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig
from tests.support.running import run_server


def control_plane(
    folder: Path, clock: Clock | None = None, gates: FeatureGates | None = None, **settings: Any
) -> ApiServer:
    config: dict[str, Any] = {"storage": "memory://", "port": 0} | settings
    return control_plane_server(ServerConfig(data_dir=folder, **config), clock, gates)


@asynccontextmanager
async def served(server: ApiServer) -> AsyncIterator[ApiServer]:
    """Run a server; the block begins when it has all kinds."""
    async with run_server(server):
        await until_served(server)
        yield server


@asynccontextmanager
async def serving(
    folder: Path, clock: Clock | None = None, gates: FeatureGates | None = None, **settings: Any
) -> AsyncIterator[ApiServer]:
    """Started, with all kinds there."""
    async with served(control_plane(folder, clock, gates, **settings)) as server:
        yield server


@asynccontextmanager
async def clusters_only(folder: Path, clock: Clock | None = None, *, models: bool = True) -> AsyncIterator[ApiServer]:
    """A server that has clusters and their proxy of all of Karmada's kinds; it starts faster."""
    server = ApiServer(ServerConfig(data_dir=folder, storage="memory://", port=0), clock)
    mount_clusters(server, server.authorizer, models=models, allow_insecure=True)
    async with run_server(server):
        yield server
