"""Changes of objects in a member, as distinguished from the writes that were made here."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from karmada.kube.objects.errors import BadRequest
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Handler
from karmada.kube.runtime.keys import Key
from karmada.members.objects import KindInMember

DEPLOYMENTS = GVR("apps", "v1", "deployments")


def deployment(version: str = "") -> Obj:
    metadata = {"namespace": "default", "name": "web", "labels": {"karmada.io/managed": "true"}}
    if version:
        metadata |= {"resourceVersion": version, "uid": "u"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {}}


class Informer:
    """Delivers what a test says; it is always up to date with that."""

    history, synced = 0, True

    def __init__(self) -> None:
        self.handlers: list[Handler] = []
        self.object: Obj | None = None

    def add_handler(self, handler: Handler) -> None:
        self.handlers.append(handler)

    def has_passed(self, version: int) -> bool:
        return self.object is not None and int(self.object["metadata"]["resourceVersion"]) >= version

    def has_reached(self, _key: Key, version: int, _history: int) -> bool:
        return self.has_passed(version)

    def shown(self, obj: Obj) -> Obj:
        return obj

    def get(self, _key: Key) -> Obj | None:
        return self.object

    def deliver(self, new: Obj | None) -> None:
        old, self.object = self.object, new
        for handler in self.handlers:
            handler(old, new)


class Member:
    """Its client creates; the event of a create comes before its response."""

    def __init__(self) -> None:
        self.informer = Informer()
        self.changes: list[str] = []
        self.meanwhile: list[Obj | None] = []
        self.failure: Exception | None = None
        informers: Any = SimpleNamespace(of=lambda *_args, **_more: self.informer)
        member: Any = SimpleNamespace(client=self, history=0, informers=informers, name="m1")

        async def retain(desired: Obj, _observed: Obj) -> Obj:
            return desired

        self.kind = KindInMember(member, DEPLOYMENTS, retain)
        self.kind.watch(0.0, self._changed)

    def _changed(self, _old: Obj | None, new: Obj | None) -> None:
        self.changes.append("deleted" if new is None else new["metadata"]["resourceVersion"])

    async def create(self, _gvr: GVR, _obj: Obj, **_options: Any) -> Obj:
        for change in self.meanwhile:
            self.informer.deliver(change)
        if self.failure is not None:
            raise self.failure
        return deployment("5")

    async def get(self, *_args: Any, **_options: Any) -> Obj:
        raise BadRequest("not needed")


@pytest.mark.parametrize(
    ("meanwhile", "reported"),
    [
        ([], []),
        ([deployment("5")], []),
        ([deployment("5"), deployment("6")], ["6"]),
        ([deployment("5"), None], ["deleted"]),
    ],
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
