"""The control plane and the members of a test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from karmada.apiserver.cluster_resource import cluster_resource
from karmada.components.assembly import Assembly
from karmada.controllers.cluster_status.controller import ClusterStatus
from karmada.controllers.context import Settings
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.gvrs import NAMESPACES
from tests.controllers.cluster_status.status_plane import NAMESPACE, TOKEN, FakeMember, Plane, make_server


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates are made once for all tests."""
    folder = tmp_path_factory.mktemp("cluster-status")
    (folder / "tokens").write_text(f'{TOKEN},admin,1,"system:masters"\n')
    return folder


@pytest.fixture
async def new_member(folder: Path) -> AsyncIterator[Callable[[], Awaitable[FakeMember]]]:
    async with AsyncExitStack() as stack:

        async def make() -> FakeMember:
            member = FakeMember(make_server(folder, "member"))
            member.server.http.gate = member.gate
            await member.server.start()
            stack.push_async_callback(member.stop)
            return member

        yield make


@pytest.fixture
async def member(new_member: Callable[[], Awaitable[FakeMember]]) -> FakeMember:
    return await new_member()


@pytest.fixture
def settings() -> Settings:
    return Settings()


@pytest.fixture
async def plane(folder: Path, settings: Settings) -> AsyncIterator[Plane]:
    clock = FakeClock()
    server = make_server(folder, "plane", clock)
    server.registry.add([cluster_resource(clock)])
    await server.start()
    client = server.client(user_agent="tests")
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    await client.create(NAMESPACES, namespace)
    assembly = Assembly(lambda name: server.client(user_agent=name), clock=clock, settings=settings)
    context, informers = assembly.context, assembly.context.informers
    status = ClusterStatus(context)
    informers.start()
    await informers.wait_synced()
    await context.members.start()
    yield Plane(client, clock, informers, context, status)
    await context.members.stop()
    await informers.stop()
    await server.stop()
