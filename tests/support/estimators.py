"""Estimators for tests: connections to them that are objects, in a process with a small API."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from karmada.api.cluster import Cluster
from karmada.estimator.client.calls import Calls
from karmada.estimator.client.connections import Connections
from karmada.estimator.client.dialing import Unanswered
from karmada.estimator.client.options import ClientOptions, Tls
from karmada.estimator.contract import Method
from karmada.kube.client.client import Client
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.gvrs import SERVICES
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.manager import Manager
from tests.support.fake_api import FakeApi, FakeTransport

HANGS = "hangs"


class FakeConnection:
    """`answers` are by the cluster that a request names: a number, an exception, or HANGS."""

    def __init__(self, address: str, answers: Mapping[str, Any]) -> None:
        self.address = address
        self.answers = answers
        self.connects: Any = True
        self.calls: list[tuple[str, Any, str]] = []
        self.closed = False

    async def ready(self) -> bool:
        if self.connects == HANGS:
            await asyncio.Event().wait()
        return bool(self.connects)

    async def call(self, method: Method, request: bytes, *, timeout: float, about: str = "") -> int:  # noqa: ARG002
        message = method.request.FromString(request)
        if not self.connects:
            raise Unanswered("rpc error: code = Unavailable desc = connection refused")
        self.calls.append((method.name, message, about))
        answer = self.answers[message.cluster]
        if answer == HANGS:
            await asyncio.Event().wait()
        await asyncio.sleep(0)
        if isinstance(answer, Exception):
            raise answer
        return int(answer)

    async def close(self, grace: float) -> None:  # noqa: ARG002
        self.closed = True


class FakeEstimators:
    """A fleet whose estimators are found by name in a cluster; all changes take effect when the clock moves on."""

    def __init__(self, connections: Connections, manager: Manager, client: Client, clock: FakeClock) -> None:
        self.connections, self.client, self.clock = connections, client, clock
        self.manager = manager
        self.calls = Calls(connections, clock)
        self.answers: dict[str, Any] = {}
        self.dialled: list[tuple[float, str]] = []
        self.made: list[FakeConnection] = []
        self.connects: dict[str, Any] = {}
        """By address, whether connections stand; a missing one does."""

    async def dial(self, address: str, _tls: Tls) -> FakeConnection:
        self.dialled.append((self.clock.now(), address))
        connection = FakeConnection(address, self.answers)
        connection.connects = self.connects.get(address, True)
        self.made.append(connection)
        return connection

    def sent(self) -> list[tuple[str, str]]:
        """Every request, as method and cluster, in the order of time within each connection."""
        return [(method, message.cluster) for one in self.made for method, message, _ in one.calls]

    async def join(self, *names: str, mode: str = "Push") -> None:
        for name in names:
            cluster = {"metadata": {"name": name}, "spec": {"syncMode": mode}}
            await self.client.create(Cluster.gvr, cluster)
        await self.clock.advance(0)

    async def serve(self, name: str, spec: Obj) -> None:
        metadata = {"name": f"karmada-scheduler-estimator-{name}", "namespace": "karmada-system"}
        await self.client.create(SERVICES, {"metadata": metadata, "spec": spec})


@asynccontextmanager
async def fake_estimators(options: ClientOptions | None = None) -> AsyncIterator[FakeEstimators]:
    kinds = {Cluster.gvr: ("Cluster", False, ()), SERVICES: ("Service", True, ("svc",))}
    client, clock = Client(FakeTransport(FakeApi(kinds))), FakeClock()
    manager = Manager(client, clock=clock)
    connections = Connections(
        manager.informers,
        client,
        clock,
        options or ClientOptions(),
        dial=lambda address, tls: found.dial(address, tls),  # type: ignore[arg-type,return-value]
    )
    found = FakeEstimators(connections, manager, client, clock)
    manager.add(connections)
    async with manager:
        yield found
