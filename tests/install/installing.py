"""A simulated host cluster to install into, and a control plane that stands for the installed one."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from karmada.install.existing import with_earlier
from karmada.install.phases import Installation
from karmada.install.preflight import is_healthy
from karmada.kube.client.client import Client
from karmada.kube.client.config import RestConfig
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import DEPLOYMENTS, NODES
from karmada.kube.objects.types import Obj
from karmada.kube.server.app import ApiServer
from karmada.kube.server.auth.user import User
from karmada.kube.sim.cluster import SimCluster
from karmada.local.board import Board
from tests.support.eventually import eventually
from tests.support.kubectl_plane import simulated
from tests.support.running import api_server

NAMESPACE = "karmada-system"
KINDS = {
    "secrets": GVR("", "v1", "secrets"),
    "configmaps": GVR("", "v1", "configmaps"),
    "services": GVR("", "v1", "services"),
    "serviceaccounts": GVR("", "v1", "serviceaccounts"),
    "persistentvolumeclaims": GVR("", "v1", "persistentvolumeclaims"),
    "deployments": DEPLOYMENTS,
    "statefulsets": GVR("apps", "v1", "statefulsets"),
}
UNOWNED = frozenset({"default", "kube-root-ca.crt"})
"""What every namespace has."""


class Killed(BaseException):
    """The end of a process, which nothing catches."""


@dataclass
class Host:
    sim: SimCluster
    plane: ApiServer
    folder: Path
    output: io.StringIO

    @property
    def client(self) -> Client:
        return self.sim.server.client()

    async def has_a_healthy_node(self) -> bool:
        return any(map(is_healthy, (await self.client.list_all(NODES)).items))

    def as_user(self, name: str) -> Client:
        return self.sim.server.client(User(name, groups=("system:authenticated",)))

    async def install(
        self,
        given: dict[str, Any] | None = None,
        *phases: str,
        client: Client | None = None,
        folder: Path | None = None,
        wrote: Callable[[str], Awaitable[None]] | None = None,
    ) -> Installation:
        flags = {
            "karmada-data": str(folder or self.folder),
            "wait-component-ready-timeout": 20,
            **(given or {}),
        }
        host = client or self.client
        installation = Installation(
            host, await with_earlier(host, flags), self.connect, Board(self.output, live=False, changes=True)
        )
        if wrote is not None:
            installation.wrote = wrote
        await installation.run(phases)
        return installation

    @asynccontextmanager
    async def connect(self, _config: RestConfig) -> AsyncIterator[Client]:
        yield self.plane.client()

    async def objects(self) -> dict[str, Obj]:
        """What is in the namespace, by kind and name."""
        found = {}
        for kind, gvr in KINDS.items():
            for obj in (await self.client.list_all(gvr, NAMESPACE)).items:
                if obj["metadata"]["name"] not in UNOWNED:
                    found[f"{kind}/{obj['metadata']['name']}"] = obj
        return found

    async def specs(self) -> dict[str, Any]:
        """The same without what the server or controllers add over time."""
        return {
            name: {key: copy_json(part) for key, part in obj.items() if key not in ("metadata", "status")}
            | {"labels": obj["metadata"].get("labels")}
            for name, obj in (await self.objects()).items()
        }


@asynccontextmanager
async def host_cluster(folder: Path) -> AsyncIterator[Host]:
    async with api_server(folder / "plane") as plane, simulated("host", folder / "host") as sim:
        host = Host(sim, plane, folder / "data", io.StringIO())
        await eventually(host.has_a_healthy_node)
        yield host
