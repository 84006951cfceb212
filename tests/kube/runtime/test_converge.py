"""Converging on a desired object while others write, too."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karmada.kube.client.client import Client
from karmada.kube.client.transport import Call
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import Conflict, NotFound
from karmada.kube.objects.gvrs import CONFIG_MAPS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.converge import TRIES, ResourceWriter
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key
from tests.support.eventually import eventually
from tests.support.fake_api import FakeApi, FakeTransport

KEY = Key("default", "x")


def config_map(**data: str) -> Obj:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "default"}, "data": data}


async def wanted(current: Obj | None) -> Obj:
    """Ours is `ours`; everything else stays."""
    if current is None:
        return config_map(ours="x")
    return {**current, "data": {**current["data"], "ours": "x"}}


class Others:
    """Change the object, and know what has to be left of that."""

    def __init__(self, api: FakeApi) -> None:
        self.client = Client(FakeTransport(api))
        self.api = api
        self.touches = 0

    async def do(self, what: str) -> None:
        obj = self.api.objects.get((CONFIG_MAPS, *KEY))
        if what in ("delete", "recreate") and obj is not None:
            await self.client.delete(CONFIG_MAPS, KEY.name, KEY.namespace)
            obj, self.touches = None, 0
        if what == "recreate":
            await self.client.create(CONFIG_MAPS, config_map())
        elif what == "touch" and obj is not None:
            self.touches += 1
            await self.client.update(CONFIG_MAPS, {**obj, "data": {**obj["data"], "others": str(self.touches)}})


class Racing(FakeTransport):
    """Before each write, others write first."""

    def __init__(self, api: FakeApi, others: Others, races: list[str]) -> None:
        super().__init__(api)
        self.others, self.races = others, races
        self.requests: list[str] = []

    async def call(self, call: Call) -> Any:
        self.requests.append(call.method)
        if call.method in ("POST", "PUT") and self.races:
            await self.others.do(self.races.pop(0))
        return await super().call(call)


async def writer_on(api: FakeApi, client: Client) -> tuple[ResourceWriter, Informer]:
    informer = Informer(Client(FakeTransport(api)), CONFIG_MAPS, clock=FakeClock())
    informer.start()
    await eventually(lambda: informer.synced)
    return ResourceWriter(client, CONFIG_MAPS, informer), informer


async def raced(exists: bool, unseen: list[str], races: list[str]) -> tuple[FakeApi, Others, Racing, ResourceWriter]:
    """A writer whose informer has stopped, and what others have done unseen since."""
    api = FakeApi()
    others = Others(api)
    if exists:
        await others.do("recreate")
    transport = Racing(api, others, races)
    writer, informer = await writer_on(api, Client(transport))
    await informer.stop()
    for deed in unseen:
        await others.do(deed)
    return api, others, transport, writer


DEEDS = st.sampled_from(("touch", "delete", "recreate", "nothing"))


@settings(max_examples=300, deadline=None)
@given(exists=st.booleans(), unseen=st.lists(DEEDS, max_size=4), races=st.lists(DEEDS, max_size=TRIES + 2))
def test_whatever_others_do_the_object_ends_as_wanted_and_nothing_of_theirs_is_lost(
    exists: bool, unseen: list[str], races: list[str]
) -> None:
    async def run() -> None:
        api, others, transport, writer = await raced(exists, unseen, races)
        try:
            written = await writer.converge(KEY, wanted)
        except Conflict:
            assert sum(method in ("POST", "PUT") for method in transport.requests) == TRIES
            return
        stored = api.objects[(CONFIG_MAPS, *KEY)]
        assert written is not None
        assert written.object == stored
        assert stored["data"].get("ours") == "x"
        assert stored["data"].get("others", "0") == str(others.touches)
        assert writer.get(KEY) == stored
        transport.requests.clear()
        again = await writer.converge(KEY, wanted)
        assert again is not None
        assert again.outcome == "unchanged"
        assert transport.requests == []

    asyncio.run(run())


async def test_a_create_and_an_update_cost_one_request_each() -> None:
    api = FakeApi()
    transport = Racing(api, Others(api), [])
    writer, informer = await writer_on(api, Client(transport))
    first = await writer.converge(KEY, wanted)
    assert first is not None
    assert (first.outcome, transport.requests) == ("created", ["POST"])

    async def more(current: Obj | None) -> Obj:
        made = await wanted(current)
        return {**made, "data": {**made["data"], "more": "1"}}

    second = await writer.converge(KEY, more)
    assert second is not None
    assert (second.outcome, transport.requests) == ("updated", ["POST", "PUT"])
    await informer.stop()


async def test_what_should_be_left_alone_is() -> None:
    api = FakeApi()
    transport = Racing(api, Others(api), [])
    writer, informer = await writer_on(api, Client(transport))

    async def nothing(_current: Obj | None) -> None:
        return None

    assert await writer.converge(KEY, nothing) is None
    assert transport.requests == []
    await informer.stop()


async def test_the_caller_is_called_once_and_only_if_something_is_written() -> None:
    api = FakeApi()
    others = Others(api)
    await others.do("recreate")
    transport = Racing(api, others, ["touch", "touch"])
    writer, informer = await writer_on(api, Client(transport))
    calls: list[str] = []
    for _ in range(2):
        await writer.converge(KEY, wanted, before=lambda: calls.append("write"))
    assert calls == ["write"]
    await informer.stop()


async def test_a_create_that_finds_no_namespace_is_not_tried_again() -> None:
    api = FakeApi()
    writer, informer = await writer_on(api, Client(FakeTransport(api)))
    api.fail = lambda call: NotFound('namespaces "default" not found') if call.method == "POST" else None
    with pytest.raises(NotFound):
        await writer.converge(KEY, wanted)
    await informer.stop()


async def test_an_update_that_the_server_takes_for_no_change_is_none() -> None:
    """E.g. because it puts back a default that was left out."""
    api = FakeApi()
    await Others(api).do("recreate")
    transport = FakeTransport(api)
    writer, informer = await writer_on(api, Client(transport))
    stored = api.objects[(CONFIG_MAPS, *KEY)]
    call = transport.call

    async def defaulting(request: Call) -> Any:
        return stored if request.method == "PUT" else await call(request)

    transport.call = defaulting  # type: ignore[method-assign,assignment]
    written = await writer.converge(KEY, wanted)
    assert written is not None
    assert written.outcome == "unchanged"
    await informer.stop()


@settings(max_examples=100, deadline=None)
@given(exists=st.booleans(), unseen=st.lists(DEEDS, max_size=4), races=st.lists(DEEDS, max_size=TRIES - 1))
def test_what_exists_is_changed_and_what_does_not_is_never_made(
    exists: bool, unseen: list[str], races: list[str]
) -> None:
    """Whether it exists is what the server says, not what the informer knows."""

    def ours(current: Obj) -> Obj:
        return {**current, "data": {**current["data"], "ours": "x"}}

    async def run() -> None:
        api, _, transport, writer = await raced(exists, unseen, races)
        written = await writer.change(KEY, ours)
        stored = api.objects.get((CONFIG_MAPS, *KEY))
        assert "POST" not in transport.requests
        assert (written is None) is (stored is None)
        assert stored is None or (stored["data"]["ours"], stored) == ("x", written.object)

    asyncio.run(run())
