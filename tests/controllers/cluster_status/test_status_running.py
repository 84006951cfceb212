"""The controller at work: who is looked at when, and that nobody waits for a member that does not answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from karmada.api.cluster import Cluster
from karmada.api.well_known import CLUSTER_FINALIZER
from karmada.controllers.cluster_status.controller import ClusterStatus
from karmada.kube.client.client import Client
from karmada.kube.client.transport import Call, TransportDecorator
from karmada.kube.objects.errors import ServiceUnavailable
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Controller
from karmada.kube.runtime.keys import Key
from tests.controllers.cluster_status.status_plane import FakeMember, Plane, brief, credentials
from tests.support.eventually import LIMIT, eventually

KEY = Key("", "m1")


@pytest.fixture
async def controller(plane: Plane) -> AsyncIterator[Controller]:
    controller = Controller(plane.status, plane.informers, clock=plane.clock)
    await controller.start()
    yield controller
    await controller.stop(grace=0)


@pytest.fixture
async def black_hole() -> AsyncIterator[str]:
    """The address of a server that takes connections and never says a word."""
    held: list[asyncio.StreamWriter] = []

    async def hold(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held.append(writer)

    server = await asyncio.start_server(hold, "127.0.0.1", 0)
    yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    server.close()
    for writer in held:
        writer.close()


def stored(plane: Plane, name: str) -> Obj:
    return (plane.informers.of(Cluster.gvr).get(Key("", name)) or {}).get("status") or {}


async def idle(controller: Controller) -> None:
    await eventually(lambda: controller.queue.idle)


async def test_a_new_cluster_is_ready_and_summed_up_without_any_waiting(
    plane: Plane, controller: Controller, member: FakeMember
) -> None:
    before = plane.clock.now()
    await plane.join("m1", member)
    await eventually(lambda: brief(stored(plane, "m1"), "Ready") == ("True", "ClusterReady"))
    async with asyncio.timeout(LIMIT):
        while "nodeSummary" not in stored(plane, "m1"):
            await plane.clock.advance(0.001)  # a write that met another one pauses
    assert plane.clock.now() < before + 1


async def test_members_that_hang_do_not_delay_others(
    plane: Plane, controller: Controller, member: FakeMember, black_hole: str
) -> None:
    data = credentials(member)
    for number in range(60):
        await plane.join(f"dead-{number}", secret=data, apiEndpoint=black_hole)
    await plane.join("m1", member)
    await eventually(lambda: brief(stored(plane, "m1"), "Ready") == ("True", "ClusterReady"))
    assert controller.queue.working >= 60
    await plane.clock.advance(10)
    await eventually(lambda: brief(stored(plane, "dead-59"), "Ready") == ("False", "ClusterNotReachable"))


async def test_the_finalizer_starts_the_first_pass(plane: Plane, controller: Controller, member: FakeMember) -> None:
    await plane.join("m1", member, finalizers=[])
    await idle(controller)
    assert stored(plane, "m1") == {}
    await plane.change("m1", {"metadata": {"finalizers": [CLUSTER_FINALIZER]}})
    await eventually(lambda: brief(stored(plane, "m1"), "Ready") == ("True", "ClusterReady"))


async def test_every_cluster_is_probed_once_in_a_period(
    plane: Plane, controller: Controller, new_member: Callable[[], Awaitable[FakeMember]]
) -> None:
    members = [await new_member() for _ in range(3)]
    for number, member in enumerate(members):
        await plane.join(f"m{number}", member)
    await plane_settles(plane, controller)
    for _ in range(20):
        await pass_time(plane, controller, 1)
    before = [member.gate.requests["/readyz"] for member in members]
    for _ in range(30):
        await pass_time(plane, controller, 1)
    assert [member.gate.requests["/readyz"] for member in members] == [count + 3 for count in before]


async def plane_settles(plane: Plane, controller: Controller) -> None:
    clusters = plane.informers.of(Cluster.gvr)
    async with asyncio.timeout(LIMIT):
        while not all("nodeSummary" in (c.get("status") or {}) for c in clusters.list()) or not controller.queue.idle:
            await plane.clock.advance(0.001)


async def pass_time(plane: Plane, controller: Controller, seconds: float) -> None:
    await plane.clock.advance(seconds)
    await idle(controller)


async def test_first_turns_are_spread_over_the_period(plane: Plane, member: FakeMember) -> None:
    pauses = []
    for number in range(8):
        await plane.join(f"m{number}", member)
        pauses.append((await plane.status.reconcile(Key("", f"m{number}"))).after)
        await plane.known(await plane.get(f"m{number}"))
        assert (await plane.status.reconcile(Key("", f"m{number}"))).after == 10
    assert len(set(pauses)) == len(pauses)
    assert all(1 <= pause <= 10 for pause in pauses if pause is not None)


class Refusing(TransportDecorator):
    """A transport to a control plane that takes no updates."""

    async def call(self, call: Call) -> Any:
        if call.method == "PUT":
            raise ServiceUnavailable("the store is away")
        return await super().call(call)


async def test_while_nothing_can_be_written_members_are_still_probed(plane: Plane, member: FakeMember) -> None:
    plane.context._client = Client(Refusing(plane.client.transport))
    status = ClusterStatus(plane.context)
    await plane.join("m1", member)
    pauses = [(await status.reconcile(KEY)).after for _ in range(12)]
    assert pauses[:3] == [0.1, 0.2, 0.4]
    assert pauses[-1] == 10
    assert member.gate.requests["/readyz"] == 12
