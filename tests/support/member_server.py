"""A member cluster in memory: a plain API server, reached over HTTPS with the kubeconfig it writes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from karmada.kube.client.client import Client
from karmada.kube.client.config import RestConfig
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.kubeconfig import load_config
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from karmada.kube.server.app import ApiServer
from tests.support.running import api_server


@dataclass
class MemberServer:
    server: ApiServer
    config: RestConfig
    client: Client
    """Over HTTPS, as its administrator."""

    @property
    def kubeconfig(self) -> Path:
        return self.server.kubeconfig

    async def get(self, kind: GVR, name: str, namespace: str = "") -> Obj | None:
        try:
            return await self.client.get(kind, name, namespace)
        except NotFound:
            return None


@asynccontextmanager
async def member_server(
    folder: Path, *, context: str = "member", clock: Clock | None = None, controllers: bool = True
) -> AsyncIterator[MemberServer]:
    """Without `controllers`, Secrets of service accounts get no tokens."""
    async with api_server(folder, clock, context=context, controllers=controllers) as server:
        way = load_config(server.kubeconfig)
        client = Client(HttpTransport(way))
        try:
            yield MemberServer(server, way, client)
        finally:
            await client.close()
