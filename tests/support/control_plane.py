"""A control plane in memory: the real server with all kinds and admission, and the controllers that a test selects."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from karmada.api.cluster import Cluster
from karmada.apiserver.mount import until_served
from karmada.components.assembly import Assembly
from karmada.components.server import control_plane_server
from karmada.controllers.context import Context, Settings
from karmada.kube.client.client import Client
from karmada.kube.objects.clock import Clock, FakeClock
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Reconciler
from karmada.kube.runtime.features import FeatureGates
from karmada.kube.runtime.manager import Component, Manager
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig
from karmada.members.switching import Open, over_network
from tests.support.events import events_of
from tests.support.objects import kube_object
from tests.support.running import run_server


@dataclass
class ControlPlane:
    server: ApiServer
    clock: Clock
    context: Context
    manager: Manager
    client: Client
    """As an administrator."""

    async def events(self, name: str, namespace: str = "default") -> list[tuple[str, str, str]]:
        """(type, reason, message) of the events of objects of this name, oldest first."""
        return await events_of(self.context.recorders.values(), self.client, name, namespace)

    async def until(self, condition: Callable[[], Any], *, within: float = 8.0) -> Any:
        """The first true value of the condition, while the fake clock moves on in small steps, `within` at most."""
        assert isinstance(self.clock, FakeClock)
        end = self.clock.now() + within
        while not (value := condition()):
            assert self.clock.now() < end, f"not within {within}s of the clock"
            await self.clock.advance(0.2)
        return value

    async def get(self, kind: GVR, name: str, namespace: str = "") -> Obj | None:
        try:
            return await self.client.get(kind, name, namespace)
        except NotFound:
            return None

    async def add_cluster(self, name: str, mode: str = "Push", **spec: object) -> Obj:
        """A Cluster without anything behind it."""
        obj = kube_object(Cluster.gvk.api_version, "Cluster", name, spec={"syncMode": mode, **spec})
        return await self.client.create(Cluster.gvr, obj)

    async def set_ready(self, name: str, status: str, reason: str = "Test") -> Obj:
        """What a status controller would post."""
        condition = {
            "type": "Ready",
            "status": status,
            "reason": reason,
            "message": "",
            "lastTransitionTime": "2023-11-14T22:13:20Z",
        }
        return await self.client.patch(
            Cluster.gvr, name, "", {"status": {"conditions": [condition]}}, subresource="status"
        )


Parts = Callable[[Context], Sequence[Reconciler | Component]]


def assemble(
    server: ApiServer,
    parts: Parts,
    *,
    settings: Settings | None = None,
    gates: FeatureGates | None = None,
    open_member: Open = over_network,
    as_one: bool = False,
) -> Assembly:
    """These parts, as a process of the control plane has them, on the given server.

    `as_one`: as the server's own process has them, where creates include what they write next.
    """
    assembly = Assembly(
        lambda name: server.client(user_agent=name),
        clock=server.clock,
        settings=settings,
        gates=gates,
        open_member=open_member,
        follow_ups=server.follow_ups if as_one else None,
    )
    assembly.add(parts(assembly.context))
    return assembly


@asynccontextmanager
async def running(
    folder: Path,
    parts: Parts = lambda _context: (),
    *,
    clock: Clock | None = None,
    settings: Settings | None = None,
    no_execute_policies: bool = False,
    open_member: Open = over_network,
    as_one: bool = False,
) -> AsyncIterator[ControlPlane]:
    """The parts run until the end of the block. Time stands still unless the test moves it or brings a real clock."""
    clock = clock or FakeClock()
    config = ServerConfig(data_dir=folder, storage="memory://", port=0)
    async with run_server(
        control_plane_server(config, clock, allow_no_execute_taint_policy=no_execute_policies)
    ) as server:
        await until_served(server)
        assembly = assemble(server, parts, settings=settings, open_member=open_member, as_one=as_one)
        manager, context = assembly.manager, assembly.context
        async with manager:
            yield ControlPlane(server, clock, context, manager, server.client(user_agent="kubectl"))
