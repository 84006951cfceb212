"""A group that shares work, and a candidate that would do it alone, never work at the same time."""

from __future__ import annotations

import asyncio

from karmada.kube.client.client import Client
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.gvrs import LEASES
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.leader import LeaderElector
from karmada.kube.runtime.membership import Membership
from karmada.kube.runtime.paired_electors import SharedLeader
from karmada.kube.runtime.waiting import cancel_and_wait
from tests.support.fake_api import FakeApi, FakeTransport


class Sharing:
    """A member of the group, from its start on."""

    def __init__(self, api: FakeApi, clock: FakeClock, name: str) -> None:
        client = Client(FakeTransport(api))
        self._informers = Informers(client, clock=clock)
        self.membership = Membership(client, self._informers, "workers", name, "ns", clock=clock)
        lease = LeaderElector(client, "lock", "ns", "the group", clock=clock, renew_period=5)
        self.elector = SharedLeader(lease, self.membership)
        self._informers.start()
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        if not await self.elector.try_acquire():
            await self.elector.acquire()
        await self.elector.hold()

    async def leave(self) -> None:
        await cancel_and_wait(self._task)
        await self.elector.release()
        await self._informers.stop()


def holder(api: FakeApi) -> str:
    return str(api.objects[LEASES, "ns", "lock"]["spec"]["holderIdentity"])


async def test_members_hold_one_lease_together_and_the_last_one_releases_it(fake: FakeApi, clock: FakeClock) -> None:
    group = [Sharing(fake, clock, name) for name in "abc"]
    await clock.advance(60)
    assert all(member.elector.leading for member in group)
    assert [member.membership.members for member in group] == [frozenset("abc")] * 3
    for member in group[:2]:
        await member.leave()
        await clock.advance(1)
        assert holder(fake) == "the group"
    await group[2].leave()
    assert holder(fake) == ""


async def test_a_candidate_waits_for_the_whole_group_and_the_group_for_the_candidate(
    fake: FakeApi, clock: FakeClock
) -> None:
    one = Sharing(fake, clock, "a")
    await clock.advance(1)
    alone = LeaderElector(Client(FakeTransport(fake)), "lock", "ns", "alone", clock=clock)
    assert not await alone.try_acquire()
    await one.leave()
    assert await alone.try_acquire()
    holding = asyncio.create_task(alone.hold())
    two = Sharing(fake, clock, "b")
    await clock.advance(60)
    assert alone.leading
    assert not two.elector.leading
    assert not two.membership.members
    await cancel_and_wait(holding)
    await alone.release()
    await clock.advance(5)
    assert two.elector.leading
    await two.leave()
