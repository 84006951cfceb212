"""Who may read what of which cluster."""

from __future__ import annotations

from typing import Any

import pytest

from karmada.kube.client.client import Client
from karmada.kube.client.transport import Call, ConnectionFailed
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import Forbidden
from karmada.kube.objects.types import Obj
from karmada.kube.server.auth.rbac import AuthzAttributes
from karmada.kube.server.auth.user import MASTERS, User
from karmada.kube.server.http.request import Query, Request, RequestInfo
from karmada.members.access import NoAccess
from karmada.search.reading import MemberReading, readable

LIST = AuthzAttributes("list", "", "v1", "pods", namespace="shop")
TOM = User("tom", groups=("dev",))


class Deciding:
    """A member that decides about reviews."""

    def __init__(self, allowed: bool | Exception) -> None:
        self.allowed = allowed
        self.reviews: list[Obj] = []

    async def call(self, call: Call) -> Any:
        self.reviews.append(call.body["spec"])
        if isinstance(self.allowed, Exception):
            raise self.allowed
        return {"status": {"allowed": self.allowed}}


class Members:
    def __init__(self, **allowed: bool | Exception) -> None:
        self.members = {name: Deciding(each) for name, each in allowed.items()}
        self._clients = {name: Client(member) for name, member in self.members.items()}  # type: ignore[arg-type]

    def client(self, name: str) -> Client:
        if name not in self._clients:
            raise NoAccess(f"cluster {name} does not have a secret")
        return self._clients[name]


def request(user: User) -> Request:
    return Request("GET", RequestInfo(True, "get", "/"), Query({}), {}, user)


async def test_each_cluster_decides_for_itself_and_those_that_refuse_are_named(clock: FakeClock) -> None:
    members = Members(m1=True, m2=False, m3=ConnectionFailed("https://10.0.0.1:6443 is down"))
    reader = request(TOM)
    reading = MemberReading(members.client, clock)
    assert await readable(reading, reader, LIST, ["m1", "m2", "m3", "m4"]) == ["m1"]
    [warning] = reader.warnings
    assert "m2 (no right there)" in warning
    for silent in ("m3", "m4"):
        assert f"{silent} (it does not respond, so the right there is unknown)" in warning
    assert "10.0.0.1" not in warning
    wanted = {"verb": "list", "version": "v1", "resource": "pods", "namespace": "shop"}
    assert members.members["m1"].reviews == [{"user": "tom", "groups": ["dev"], "resourceAttributes": wanted}]


async def test_a_decision_is_kept_for_seconds_only(clock: FakeClock) -> None:
    members = Members(m1=True)
    reading = MemberReading(members.client, clock)
    for _ in range(3):
        await readable(reading, request(TOM), LIST, ["m1"])
    assert len(members.members["m1"].reviews) == 1
    members.members["m1"].allowed = False
    await clock.advance(60)
    with pytest.raises(Forbidden):
        await readable(reading, request(TOM), LIST, ["m1"])


async def test_who_may_read_nowhere_is_refused(clock: FakeClock) -> None:
    reading = MemberReading(Members(m1=False, m2=False).client, clock)
    with pytest.raises(Forbidden, match='User "tom" cannot list resource "pods"') as refused:
        await readable(reading, request(TOM), LIST, ["m1", "m2"])
    assert "m1 (no right there), m2" in refused.value.message


async def test_no_cluster_is_no_refusal(clock: FakeClock) -> None:
    assert await readable(MemberReading(Members().client, clock), request(TOM), LIST, []) == []


async def test_administrators_and_a_plane_that_does_not_enforce_it_read_without_a_review(clock: FakeClock) -> None:
    members = Members(m1=False)
    admin = User("admin", groups=(MASTERS,))
    assert await readable(MemberReading(members.client, clock), request(admin), LIST, ["m1"]) == ["m1"]
    relaxed = MemberReading(members.client, clock, enforced=False)
    assert await readable(relaxed, request(TOM), LIST, ["m1"]) == ["m1"]
    assert members.members["m1"].reviews == []
