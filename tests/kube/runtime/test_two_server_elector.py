"""A leader with a second lease where it works: it goes on while the first one's server is away."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from karmada.kube.client.client import Client
from karmada.kube.client.transport import Call, ConnectionFailed
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.gvrs import LEASES
from karmada.kube.runtime.leader import LeaderElector
from karmada.kube.runtime.paired_electors import TwoServerElector
from tests.support.fake_api import FakeApi, FakeTransport


class Wire:
    """A connection to a server that can be cut."""

    def __init__(self, api: FakeApi) -> None:
        self.connected = True
        transport = FakeTransport(api)
        original = transport.call

        async def call(request: Call) -> Any:
            if not self.connected:
                raise ConnectionFailed("cut off")
            return await original(request)

        transport.call = call  # type: ignore[method-assign,assignment]
        self.client = Client(transport)


class Candidate:
    """A copy of an agent: the control plane elects, the member is where it works."""

    def __init__(self, plane: FakeApi, member: FakeApi, clock: FakeClock, name: str) -> None:
        self.plane, self.member = Wire(plane), Wire(member)
        self.working = False
        lease = LeaderElector(self.plane.client, "lock", "ns", name, clock=clock)
        local = LeaderElector(self.member.client, "local", "ns", name, clock=clock)
        self.elector = TwoServerElector(lease, local, clock)
        self.task = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        if not await self.elector.try_acquire():
            await self.elector.acquire()
        self.working = True
        await self.elector.hold()
        self.working = False

    async def kill(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        self.working = False


@pytest.fixture
def plane() -> FakeApi:
    return FakeApi()


@pytest.fixture
def member() -> FakeApi:
    return FakeApi()


def holder(api: FakeApi, name: str) -> str:
    return str(api.objects[(LEASES, "ns", name)]["spec"]["holderIdentity"])


async def test_a_leader_goes_on_while_the_control_plane_is_away(
    plane: FakeApi, member: FakeApi, clock: FakeClock
) -> None:
    one = Candidate(plane, member, clock, "one")
    await clock.advance(1)
    assert (one.working, holder(plane, "lock"), holder(member, "local")) == (True, "one", "one")
    one.plane.connected = False
    await clock.advance(minutes=30)
    assert one.working
    one.plane.connected = True
    await clock.advance(5)
    renewed = plane.objects[(LEASES, "ns", "lock")]["spec"]["renewTime"]
    await clock.advance(5)
    assert plane.objects[(LEASES, "ns", "lock")]["spec"]["renewTime"] > renewed
    assert one.working
    await one.kill()


async def test_a_copy_that_reaches_the_control_plane_takes_over_once_the_other_has_stopped(
    plane: FakeApi, member: FakeApi, clock: FakeClock
) -> None:
    one = Candidate(plane, member, clock, "one")
    await clock.advance(1)
    two = Candidate(plane, member, clock, "two")
    await clock.advance(20)
    assert (one.working, two.working) == (True, False)
    one.plane.connected = False
    overlapped = False
    for _ in range(400):
        await clock.advance(0.1)
        overlapped = overlapped or (one.working and two.working)
    assert (one.working, two.working, overlapped) == (False, True, False)
    assert (holder(plane, "lock"), holder(member, "local")) == ("two", "two")
    await two.kill()


async def test_a_leader_without_its_member_keeps_the_lease_to_report_that(
    plane: FakeApi, member: FakeApi, clock: FakeClock
) -> None:
    one = Candidate(plane, member, clock, "one")
    one.member.connected = False
    await clock.advance(minutes=5)
    assert (one.working, holder(plane, "lock")) == (True, "one")
    one.member.connected = True
    await clock.advance(5)
    assert holder(member, "local") == "one"
    await one.kill()


async def test_a_leader_that_was_replaced_while_it_saw_nobody_stops_when_it_is_back(
    plane: FakeApi, member: FakeApi, clock: FakeClock
) -> None:
    one = Candidate(plane, member, clock, "one")
    await clock.advance(1)
    one.plane.connected = one.member.connected = False
    two = Candidate(plane, member, clock, "two")
    await clock.advance(minutes=1)
    assert two.working
    one.member.connected = True
    await clock.advance(3)
    assert (one.working, two.working) == (False, True)
    await two.kill()


async def test_the_leases_of_a_leader_that_died_run_out_together(
    plane: FakeApi, member: FakeApi, clock: FakeClock
) -> None:
    one = Candidate(plane, member, clock, "one")
    await clock.advance(1)
    await one.kill()
    two = Candidate(plane, member, clock, "two")
    await clock.advance(13)
    assert not two.working
    await clock.advance(4)
    assert two.working
    await two.kill()


async def test_a_released_lease_is_taken_without_waiting(plane: FakeApi, member: FakeApi, clock: FakeClock) -> None:
    one = Candidate(plane, member, clock, "one")
    await clock.advance(1)
    await one.kill()
    await one.elector.release()
    two = Candidate(plane, member, clock, "two")
    await clock.advance(1)
    assert two.working
    await two.kill()
