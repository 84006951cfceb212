"""An informer behind the proxy, over members that restart, break off, are slow, come and go: it has what they have."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karmada.api.cluster import Cluster
from karmada.api.well_known import CACHED_FROM_CLUSTER
from karmada.kube.client.client import Client
from karmada.kube.client.transport import Call, ConnectionFailed, Transport, WatchEvent
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import ApiError, NotFound, TooManyRequests
from karmada.kube.objects.gvrs import CONFIG_MAPS
from karmada.kube.runtime.informer import Informer
from karmada.kube.schema.builtin import Definitions
from karmada.kube.server.auth.user import MASTERS, User
from karmada.kube.server.http.list_stream import collected
from karmada.kube.server.http.request import Query, Request
from karmada.kube.server.http.results import ObjectResult, StreamedList, WatchResult
from karmada.search.proxy.kinds import Kinds
from karmada.search.proxy.live import Live
from karmada.search.proxy.parsing import Proxied, inner_info
from karmada.search.proxy.reads import CachedReads
from karmada.search.proxy.versions import Versions
from karmada.search.reading import MemberReading
from tests.search.fake_fleet import FakeFleet, config_map, running
from tests.support.counting import let_others_run
from tests.support.fake_api import FakeApi

KINDS = Kinds(Definitions.load())
ADMIN = User("admin", groups=(MASTERS,))
PATH = "/api/v1/namespaces/default/configmaps"


class ProxyTransport(Transport):
    """Requests to the proxy, from inside its process."""

    def __init__(self, fleet: FakeFleet) -> None:
        self._fleet = fleet

    async def _answer(self, call: Call) -> Any:
        query = Query.of(call.query)
        info = inner_info(call.method, call.path, query)
        request = Request(call.method, info, query, {}, ADMIN)
        fleet, caches = self._fleet, self._fleet.caches

        def joined(name: str) -> bool:
            return (Cluster.gvr, "", name) in fleet.plane.objects

        reading = MemberReading(caches.client, fleet.clock)
        reads = CachedReads(caches, Live(caches), reading, KINDS, joined)
        inner = Proxied(request, info, call.path, "")
        assert reads.takes(inner)
        return await reads.answer(inner)

    async def call(self, call: Call) -> Any:
        result = await self._answer(call)
        if isinstance(result, StreamedList):
            return await collected(result)
        assert isinstance(result, ObjectResult)
        return result.object()

    async def watch(self, call: Call) -> AsyncIterator[WatchEvent]:
        result = await self._answer(call)
        assert isinstance(result, WatchResult)
        try:
            async for batch in result.subscription:
                for change in batch:
                    yield WatchEvent(change.type, orjson.loads(change.entry.raw))
        finally:
            result.subscription.close()

    async def close(self) -> None:
        """Nothing is held open."""


@dataclass
class Followed:
    """Two members whose ConfigMaps are registered, and an informer of them behind the proxy."""

    fleet: FakeFleet
    client: Client
    informer: Informer
    away: set[str] = field(default_factory=set)

    def known(self) -> set[tuple[str, str, str]]:
        return {_seen(obj) for obj in self.informer.list()}

    def there(self) -> set[tuple[str, str, str]]:
        found = set()
        for host, api in self.fleet.members.items():
            if (Cluster.gvr, "", host) in self.fleet.plane.objects:
                found |= {(host, o["metadata"]["name"], o["data"]["text"]) for o in api.listed(CONFIG_MAPS)}
        return found

    async def until_same(self) -> None:
        show = lambda: (self.known(), self.there())
        await self.fleet.until(lambda: self.known() == self.there(), show=show)

    # what happens

    async def put(self, host: str, name: str, text: str = "") -> None:
        client, name = self.fleet.client_of(host), f"{host}-{name}"
        try:
            await client.patch(CONFIG_MAPS, name, "default", {"data": {"text": text}})
        except NotFound:
            await client.create(CONFIG_MAPS, config_map(name, text=text))

    async def delete(self, host: str, name: str) -> None:
        await self.fleet.client_of(host).delete(CONFIG_MAPS, f"{host}-{name}", "default")

    async def break_off(self, host: str) -> None:
        self.fleet.member(host).break_watches()

    async def restart(self, host: str) -> None:
        self.fleet.member(host).break_watches()
        self.fleet.member(host).compact()

    async def backup(self, host: str) -> None:
        member = self.fleet.member(host)
        member.backup = dict(member.objects), member.revision

    async def restore(self, host: str) -> None:
        self.fleet.member(host).restore()

    async def down(self, host: str) -> None:
        api = self.fleet.member(host)
        api.fail = lambda _call: ConnectionFailed("down")
        api.break_watches()

    async def up(self, host: str) -> None:
        self.fleet.member(host).fail = lambda _call: None

    async def leave(self, host: str) -> None:
        await self.fleet.leave(host)

    async def join(self, host: str) -> None:
        await self.fleet.join(host)

    async def unready(self, host: str) -> None:
        await self.fleet.set_ready(host, False)

    async def ready(self, host: str) -> None:
        await self.fleet.set_ready(host, True)

    async def run(self, host: str) -> None:
        """Time passes."""
        await self.fleet.clock.advance(1 if host == "a" else 7)


def _seen(obj: Any) -> tuple[str, str, str]:
    metadata = obj["metadata"]
    return metadata["annotations"][CACHED_FROM_CLUSTER], metadata["name"], obj["data"]["text"]


async def followed(fleet: FakeFleet) -> Followed:
    for host in ("a", "b"):
        await fleet.join(host)
    await fleet.register("all", ("ConfigMap", ""))
    client = Client(ProxyTransport(fleet))
    informer = Informer(client, CONFIG_MAPS, clock=fleet.clock)
    both = Followed(fleet, client, informer)
    await both.put("a", "1")
    await both.put("b", "1")
    await fleet.until(lambda: fleet.names("a") == ["a-1"] and fleet.names("b") == ["b-1"])
    informer.start()
    await both.until_same()
    return both


@pytest.fixture
async def both() -> AsyncIterator[Followed]:
    async with running(FakeClock()) as fleet:
        made = await followed(fleet)
        yield made
        await made.informer.stop()


def lists(api: FakeApi) -> int:
    reads = [call for call in api.calls if call.method == "GET" and call.path.endswith("/configmaps")]
    return sum("watch" not in call.query for call in reads)


async def test_a_watch_survives_the_restart_of_a_member(both: Followed) -> None:
    before = [lists(api) for api in both.fleet.members.values()]
    await both.break_off("a")
    await both.put("a", "2")
    await both.put("b", "1", "changed")
    await both.until_same()
    assert [lists(api) for api in both.fleet.members.values()] == before  # nothing was listed again


async def test_changes_that_a_member_has_forgotten_are_listed_again(both: Followed) -> None:
    await both.put("a", "2")
    await both.delete("a", "1")
    await both.restart("a")
    await both.until_same()


async def test_a_member_that_was_put_back_to_an_older_state_is_listed_again(both: Followed) -> None:
    await both.backup("a")
    for name in "2345":
        await both.put("a", name)
    await both.until_same()
    await both.restore("a")
    await both.fleet.until(lambda: both.fleet.names("a") == ["a-1"])
    await both.put("a", "6")
    await both.until_same()


async def test_a_cluster_that_joins_is_seen_without_a_new_list(both: Followed) -> None:
    await both.put("c", "1")
    before = lists(both.fleet.member("a"))
    await both.fleet.join("c")
    await both.until_same()
    assert ("c", "c-1", "") in both.known()
    assert lists(both.fleet.member("a")) == before


async def test_a_cluster_that_leaves_takes_its_objects_along(both: Followed) -> None:
    await both.leave("a")
    await both.until_same()
    assert {cluster for cluster, _, _ in both.known()} == {"b"}


async def test_another_cluster_under_the_name_of_one_that_left_is_listed(both: Followed) -> None:
    for name in "234":
        await both.put("a", name)
    await both.until_same()
    await both.fleet.leave("a")
    both.fleet.members["a"] = FakeApi()
    await both.fleet.join("a")
    await both.put("a", "9")
    await both.until_same()
    assert {name for cluster, name, _ in both.known() if cluster == "a"} == {"a-9"}


async def test_a_cluster_that_is_away_for_a_while_keeps_its_objects(both: Followed) -> None:
    await both.unready("a")
    await both.fleet.until(lambda: both.fleet.caches.clusters(CONFIG_MAPS) == ["b"])
    await both.put("b", "2")
    await both.until_same()
    await both.ready("a")
    await both.put("a", "2")
    await both.until_same()


# --- members that are down or slow


async def test_a_list_from_the_caches_does_not_need_the_members(both: Followed) -> None:
    await both.down("a")
    listed = await both.client.list(CONFIG_MAPS, resource_version="0")
    assert {_seen(obj) for obj in listed["items"]} == both.there()


async def test_a_list_of_the_latest_state_names_the_member_that_is_down(both: Followed) -> None:
    await both.down("b")
    for limit in (0, 10):
        with pytest.raises(ApiError, match="cluster b cannot be read: down") as failed:
            await both.client.list(CONFIG_MAPS, limit=limit)
        assert failed.value.code == 500


async def test_a_slow_member_holds_up_only_those_who_read_from_it(both: Followed) -> None:
    waiting = asyncio.Event()

    async def wait(_call: Call) -> None:
        await waiting.wait()

    both.fleet.member("a").delay = wait
    live = asyncio.create_task(both.client.list(CONFIG_MAPS))
    await let_others_run(50)
    await both.put("b", "2")
    await both.until_same()
    assert len((await both.client.list(CONFIG_MAPS, resource_version="0"))["items"]) == 3
    assert (await both.client.get(CONFIG_MAPS, "b-1", "default"))["metadata"]["name"] == "b-1"
    assert not live.done()
    waiting.set()
    assert {_seen(obj)[0] for obj in (await live)["items"]} == {"a", "b"}


async def test_a_member_that_leaves_during_a_list_is_left_behind(both: Followed) -> None:
    first = await both.client.list(CONFIG_MAPS, limit=1)
    assert [_seen(obj)[0] for obj in first["items"]] == ["a"]
    await both.leave("b")
    await both.fleet.until(lambda: both.fleet.caches.clusters(CONFIG_MAPS) == ["a"])
    rest = await both.client.list(CONFIG_MAPS, limit=1, continue_=first["metadata"]["continue"])
    assert rest["items"] == []
    assert "continue" not in rest["metadata"]


async def test_a_watch_waits_for_caches_that_have_not_synced(both: Followed) -> None:
    await both.put("c", "1")
    await both.down("c")
    await both.fleet.join("c")
    await both.fleet.until(lambda: "c" in both.fleet.caches.clusters(CONFIG_MAPS))
    with pytest.raises(TooManyRequests):
        await anext(both.client.transport.watch(Call("GET", PATH, {"watch": "true"})))


async def test_an_object_that_was_read_has_the_version_of_its_cluster(both: Followed) -> None:
    found = await both.client.get(CONFIG_MAPS, "b-1", "default")
    versions = Versions.decode(found["metadata"]["resourceVersion"])
    assert list(versions) == ["b"]
    assert (
        versions.get("b")
        == both.fleet.member("b").objects[CONFIG_MAPS, "default", "b-1"]["metadata"]["resourceVersion"]
    )


# --- laws

hosts = st.sampled_from("ab")
acts = st.one_of(
    st.tuples(st.just("put"), hosts, st.sampled_from("123"), st.text("xy", max_size=1)),
    st.tuples(st.just("delete"), hosts, st.sampled_from("123")),
    st.tuples(
        st.sampled_from(
            [
                "break_off",
                "restart",
                "down",
                "up",
                "leave",
                "join",
                "unready",
                "ready",
                "run",
                "run",
            ]
        ),
        hosts,
    ),
)


@given(st.lists(acts, max_size=25))
@settings(max_examples=25, deadline=None)
async def test_after_any_history_the_informer_has_what_the_members_have(history: list[tuple[Any, ...]]) -> None:
    async with running(FakeClock()) as fleet:
        both = await followed(fleet)
        for act, *arguments in history:
            try:
                await getattr(both, act)(*arguments)
            except (ApiError, ConnectionFailed):
                continue  # it is down, has left, or has joined already: nothing happened
            await let_others_run(50)
        for host in ("a", "b"):
            await both.up(host)
            if (Cluster.gvr, "", host) not in fleet.plane.objects:
                await both.join(host)
            await both.ready(host)
        await both.until_same()
        await both.informer.stop()
