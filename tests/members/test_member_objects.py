"""Changes of objects in a member, as distinguished from the writes that were made here."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from karmada.kube.client.client import Client
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import BadRequest, NotFound
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import DEPLOYMENTS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key
from karmada.members.objects import MANAGED_ONLY, KindInMember
from tests.support.cases import cases
from tests.support.fake_api import FakeApi, FakeTransport

KEY = Key("default", "web")


def deployment(version: str = "") -> Obj:
    metadata = {"namespace": "default", "name": "web", "labels": {"karmada.io/managed": "true"}}
    if version:
        metadata |= {"resourceVersion": version, "uid": "u"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {}}


class FakeInformer(Informer):
    """Delivers what a test says."""

    def __init__(self) -> None:
        client = Client(FakeTransport(FakeApi()))
        super().__init__(client, DEPLOYMENTS, label_selector=MANAGED_ONLY, clock=FakeClock())
        self.resource_version = "1"

    def deliver(self, new: Obj | None) -> None:
        self._apply("DELETED" if new is None else "MODIFIED", deployment("6") if new is None else new)


class Member:
    """Its client creates; the event of a create comes before its response."""

    def __init__(self) -> None:
        self.informer = FakeInformer()
        self.changes: list[str] = []
        self.meanwhile: list[Obj | None] = []
        self.failure: Exception | None = None
        informers: Any = SimpleNamespace(of=lambda *_args, **_more: self.informer)
        member: Any = SimpleNamespace(client=self, history=0, informers=informers, name="m1")

        async def retain(desired: Obj, _observed: Obj) -> Obj:
            return desired

        self.kind = KindInMember(member, DEPLOYMENTS, retain, self._changed, FakeClock())
        self.kind.watch()

    def _changed(self, obj: Obj, _listed: bool) -> None:
        gone = self.informer.get(KEY) is None
        self.changes.append("deleted" if gone else obj["metadata"]["resourceVersion"])

    async def create(self, _gvr: GVR, _obj: Obj, **_options: Any) -> Obj:
        for change in self.meanwhile:
            self.informer.deliver(change)
        if self.failure is not None:
            raise self.failure
        return deployment("5")

    async def get(self, *_args: Any, **_options: Any) -> Obj:
        raise BadRequest("not needed")


@cases(
    ([], []),
    ([deployment("5")], []),
    ([deployment("5"), deployment("6")], ["6"]),
    ([deployment("5"), None], ["deleted"]),
    ids=["nothing", "its own event", "a later change", "a deletion"],
)
async def test_the_event_of_a_write_that_overtakes_its_response_is_no_change(
    meanwhile: list[Obj | None], reported: list[str]
) -> None:
    member = Member()
    member.meanwhile = meanwhile
    await member.kind.apply(deployment(), None)
    assert member.changes == reported
    member.informer.deliver(deployment("7"))
    assert member.changes == [*reported, "7"]


async def test_the_event_of_a_write_that_comes_after_its_response_is_no_change() -> None:
    member = Member()
    await member.kind.apply(deployment(), None)
    member.informer.deliver(deployment("5"))
    assert member.changes == []


async def test_a_change_during_a_write_that_fails_is_a_change() -> None:
    member = Member()
    member.meanwhile, member.failure = [deployment("5")], BadRequest("no")
    with pytest.raises(BadRequest):
        await member.kind.apply(deployment(), None)
    assert member.changes == ["5"]


async def test_an_object_that_somebody_deletes_while_it_is_left_to_the_member_is_not_made_again() -> None:
    api = FakeApi()
    client = Client(FakeTransport(api))
    await client.create(DEPLOYMENTS, deployment())

    class DeletedInBetween(Client):
        async def update(self, *_args: Any, **_options: Any) -> Obj:
            await client.delete(DEPLOYMENTS, "web", "default")
            raise NotFound("gone")

    member: Any = SimpleNamespace(client=DeletedInBetween(client.transport), history=0, name="m1")

    async def retain(desired: Obj, _observed: Obj) -> Obj:
        return desired

    kind = KindInMember(member, DEPLOYMENTS, retain, lambda *_: None, FakeClock())
    await kind.release(deployment())
    assert (await client.list(DEPLOYMENTS, "default"))["items"] == []
