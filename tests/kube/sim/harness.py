"""A bare API server in memory with the parts of a simulated cluster that a test requests, on a clock of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from karmada.kube.client.client import Client
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.gvrs import PODS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Reconciler
from karmada.kube.runtime.manager import Component, Manager
from karmada.kube.server.app import ApiServer
from karmada.kube.sim.context import CONTROLLER_MANAGER, Context
from karmada.kube.sim.profile import INSTANT, Profile
from tests.support.events import events_of
from tests.support.running import api_server


@dataclass
class Harness:
    server: ApiServer
    clock: FakeClock
    context: Context
    manager: Manager
    client: Client
    """As an administrator, to apply and look at things."""

    async def events(self, name: str, namespace: str = "default") -> list[tuple[str, str, str]]:
        """(type, reason, message) of all events about objects of this name so far, oldest first."""
        return await events_of(self.context.recorders.values(), self.client, name, namespace)

    async def set_pod_status(self, pod: Obj, status: Obj) -> Obj:
        """What a kubelet would write, for tests that run none."""
        meta = pod["metadata"]
        patch = {"status": status}
        return await self.client.patch(
            PODS, meta["name"], meta["namespace"], patch, type="strategic", subresource="status"
        )

    async def make_ready(self, pod: Obj) -> Obj:
        now = "2023-11-14T22:13:20Z"
        conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": now}]
        return await self.set_pod_status(pod, {"phase": "Running", "conditions": conditions})


@asynccontextmanager
async def running(
    folder: Path,
    parts: Callable[[Context], Sequence[Reconciler | Component]],
    *,
    profile: Profile | None = None,
    clock: FakeClock | None = None,
) -> AsyncIterator[Harness]:
    """The parts run until the end of the block. Time stands still unless the test moves it."""
    _share_certificates(folder)
    profile = profile or Profile("test", latencies=INSTANT)
    clock = clock or FakeClock()
    async with api_server(folder, clock, kubernetes_version=profile.version) as server:
        manager = Manager(server.client(user_agent=CONTROLLER_MANAGER), clock=clock)
        context = Context(lambda name: server.client(user_agent=name), manager.informers, clock, profile)
        for part in parts(context):
            if hasattr(part, "reconcile"):
                manager.add(cast(Reconciler, part))
            else:
                manager.add_component(part)
        for recorder in context.recorders.values():
            manager.add_component(recorder)
        async with manager:
            yield Harness(server, clock, context, manager, server.client(user_agent="kubectl"))


def _share_certificates(folder: Path) -> None:
    """With the tests whose folders are beside this one: making them takes a fifth of the time of a server."""
    shared, own = folder.parent / "certificates-of-harnesses", folder / "pki"
    shared.mkdir(exist_ok=True)
    folder.mkdir(exist_ok=True)
    if not own.exists():
        own.symlink_to(shared)
