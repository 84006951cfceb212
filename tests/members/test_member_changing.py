"""One member while its address and credentials change, and when it goes: the order in which things happen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from karmada.kube.client.config import RestConfig
from karmada.kube.client.transport import Call, ConnectionFailed
from karmada.kube.objects.clock import FakeClock, RealClock
from karmada.kube.objects.gvrs import CONFIG_MAPS
from karmada.kube.runtime.keys import Key
from karmada.members.members import Member
from karmada.members.objects import UNKNOWN, KindInMember
from karmada.members.switching import SwitchingTransport
from tests.support.eventually import eventually


@dataclass
class Site:
    """An API server that has one kind, records its requests, and keeps its watches open."""

    url: str = ""
    requests: list[str] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(f"{request.method} {request.headers.get('Authorization', '')}")
        if request.method == "POST":
            obj = await request.json()
            written = {"resourceVersion": "6", "generation": 1, "uid": self.url}
            return web.json_response({**obj, "metadata": {**obj["metadata"], **written}}, status=201)
        if request.query.get("watch"):
            stream = web.StreamResponse()
            await stream.prepare(request)
            await asyncio.Event().wait()
        listed = {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "5"}}
        return web.json_response({**listed, "items": []})


Open = Callable[[], Awaitable[Site]]
Join = Callable[[Site], Member]


@pytest.fixture
async def new_site() -> AsyncIterator[Open]:
    servers: list[TestServer] = []

    async def start() -> Site:
        site = Site()
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", site.answer)
        server = TestServer(app)
        await server.start_server()
        servers.append(server)
        site.url = str(server.make_url("/")).rstrip("/")
        return site

    yield start
    for server in servers:
        await server.close()


def to(site: Site, token: str = "t") -> RestConfig:
    return RestConfig(server=site.url, token=token)


@pytest.fixture
async def new_member() -> AsyncIterator[Join]:
    made: list[Member] = []

    def make(site: Site) -> Member:
        made.append(Member("m1", SwitchingTransport(to(site)), RealClock()))
        return made[-1]

    yield make
    for member in made:
        await member.close()


async def test_nothing_starts_after_a_member_is_closed(new_site: Open, new_member: Join) -> None:
    here, there = await new_site(), await new_site()
    member = new_member(here)
    informer = member.informers.of(CONFIG_MAPS)
    await eventually(lambda: informer.synced)
    leaving = member.switch(to(there))
    assert leaving is not None
    await asyncio.gather(leaving, member.close())
    assert not informer.running
    assert member.switch(to(here)) is None
    assert not member.informers.of(CONFIG_MAPS, label_selector="a=b").running
    with pytest.raises(ConnectionFailed):
        await member.transport.call(Call("GET", "/x"))


async def test_the_last_change_of_several_counts(new_site: Open, new_member: Join) -> None:
    here, there = await new_site(), await new_site()
    member = new_member(here)
    informer = member.informers.of(CONFIG_MAPS)
    await eventually(lambda: informer.synced)
    changes = [member.switch(to(there)), member.switch(to(here, "second"))]
    assert member.transport.config.token == "second"
    await asyncio.gather(*(change for change in reversed(changes) if change is not None))
    assert member.transport.config.server == here.url
    await eventually(lambda: "GET Bearer second" in here.requests)
    assert informer.running
    assert there.requests == []


async def test_calls_take_the_new_way_at_once(new_site: Open, new_member: Join) -> None:
    here, there = await new_site(), await new_site()
    member = new_member(here)
    leaving = member.switch(to(there))
    await member.transport.call(Call("GET", "/x"))
    assert there.requests
    assert not here.requests
    assert leaving is not None
    await leaving


async def retain(desired: dict[str, Any], _observed: dict[str, Any]) -> dict[str, Any]:
    return desired


MANIFEST = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}


async def test_versions_mean_nothing_in_another_cluster(new_site: Open, new_member: Join) -> None:
    here, there = await new_site(), await new_site()
    member = new_member(here)
    kind = KindInMember(member, CONFIG_MAPS, retain, lambda _obj, _listed: None, FakeClock())
    made = (await kind.apply(MANIFEST, None)).object
    assert kind.settled(MANIFEST, made)
    renewed = member.switch(to(here, "renewed"))
    assert kind.settled(MANIFEST, made)
    moved = member.switch(to(there))
    assert not kind.settled(MANIFEST, made)
    assert kind.observe(Key("default", "a")) is UNKNOWN
    for leaving in (renewed, moved):
        assert leaving is not None
        await leaving


async def test_a_write_that_was_answered_by_the_old_cluster_is_not_remembered(new_site: Open, new_member: Join) -> None:
    here, there = await new_site(), await new_site()
    member = new_member(here)
    kind = KindInMember(member, CONFIG_MAPS, retain, lambda _obj, _listed: None, FakeClock())
    create, moving = member.client.create, list[Any]()

    async def slow(*arguments: Any, **options: Any) -> Any:
        made = await create(*arguments, **options)
        moving.append(member.switch(to(there)))
        return made

    member.client.create = slow  # type: ignore[method-assign]
    made = (await kind.apply(MANIFEST, None)).object
    assert not kind.settled(MANIFEST, made)
    await moving[0]
