"""A component that is no controller runs on the one replica that owns its shard."""

from __future__ import annotations

from karmada.kube.client.client import Client
from karmada.kube.objects.clock import FakeClock
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.membership import Membership
from karmada.kube.runtime.owned_component import OwnedComponent
from karmada.kube.runtime.sharing import Assignment, by_controller, owner_of
from tests.support.cases import cases
from tests.support.fake_api import FakeApi, FakeTransport


class Noted:
    name = "bridge"

    def __init__(self) -> None:
        self.log: list[str] = []

    async def start(self) -> None:
        self.log.append("start")

    async def stop(self) -> None:
        self.log.append("stop")


OWNER = owner_of(by_controller(Noted.name), "ab")
OTHER = next(name for name in "ab" if name != OWNER)


@cases(
    (OWNER, ["start", "stop"]),
    (OTHER, ["start", "stop", "start", "stop"]),
    ids=["one that keeps it", "one that loses it and gets it back"],
)
async def test_it_starts_and_stops_with_the_ownership(
    me: str, happens: list[str], fake: FakeApi, clock: FakeClock
) -> None:
    client = Client(FakeTransport(fake))
    membership = Membership(client, Informers(client, clock=clock), "workers", me, "ns", clock=clock)
    component = Noted()
    owned = OwnedComponent(component, membership)
    await owned.start()
    assert component.log == []
    alone, both = frozenset(me), frozenset("ab")
    for view in (alone, both, alone):
        before, membership.assignment = membership.assignment, Assignment(me, view)
        await owned.disown()
        await owned.take_over(before, membership.assignment)
    await owned.stop()
    assert component.log == happens
