"""One resource of one cluster in memory: what is listed, watched, and handed on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from karmada.kube.client.client import Client
from karmada.kube.client.discovery import Mapping as Kind
from karmada.kube.client.transport import Call, ConnectionFailed
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import Expired, NotFound, TooManyRequests
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.gvrs import CONFIG_MAPS, NODES
from karmada.kube.objects.types import Obj
from karmada.search import kind_cache
from karmada.search.kind_cache import ReflectedKind
from karmada.search.registries import ALL
from tests.search.recording_sink import RecordingSink
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.fake_api import FakeApi, FakeTransport

KIND = Kind(CONFIG_MAPS, GVK("", "v1", "ConfigMap"), True)


def config_map(name: str, namespace: str = "default", **metadata: Any) -> Obj:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace, **metadata}}


@asynccontextmanager
async def caching(
    fake: FakeApi, clock: FakeClock, namespaces: frozenset[str] = ALL, *sinks: RecordingSink
) -> AsyncIterator[ReflectedKind]:
    cache = ReflectedKind("m1", KIND, namespaces, FakeTransport(fake), clock, sinks)
    cache.start()
    try:
        await eventually(lambda: cache.synced, show=lambda: cache.last_error)
        yield cache
    finally:
        await cache.stop()


def names(cache: ReflectedKind, namespace: str = "") -> list[str]:
    return [obj.name for obj in cache.list(namespace)]


async def passing(clock: FakeClock, condition: Callable[[], bool]) -> None:
    """Time passes until the condition holds: what failed is tried again."""

    async def met() -> bool:
        if not condition():
            await clock.advance(1)
        return condition()

    await eventually(met)


async def test_objects_are_listed_in_pages_kept_whole_and_in_the_order_of_a_list(
    fake: FakeApi, client: Client, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kind_cache, "PAGE", 2)
    for name, namespace in (("b", "default"), ("a", "default-x"), ("a", "default"), ("c", "a"), ("d", "a")):
        await client.create(CONFIG_MAPS, {**config_map(name, namespace, managedFields=[{"manager": "x"}])})
    async with caching(fake, clock) as cache:
        found = [(obj.namespace, obj.name) for obj in cache.list()]
        assert found == [("a", "c"), ("a", "d"), ("default-x", "a"), ("default", "a"), ("default", "b")]
        assert names(cache, "default") == ["a", "b"]
        assert [obj.object() for obj in cache.list("default")] == fake.listed(CONFIG_MAPS, "default")
        assert cache.resource_version == str(fake.revision)
        assert len([call for call in fake.calls if call.query.get("limit") == "2"]) == 3


async def test_changes_are_followed(fake: FakeApi, client: Client, clock: FakeClock) -> None:
    made = await client.create(CONFIG_MAPS, config_map("a"))
    async with caching(fake, clock) as cache:
        await client.create(CONFIG_MAPS, config_map("b"))
        await eventually(lambda: names(cache) == ["a", "b"])
        await client.update(CONFIG_MAPS, {**made, "data": {"x": "1"}})
        await eventually(lambda: cache.list()[0].object().get("data") == {"x": "1"})
        await client.delete(CONFIG_MAPS, "a", "default")
        await eventually(lambda: names(cache) == ["b"])
        fake.revision += 5
        fake.bookmark()
        await eventually(lambda: cache.resource_version == str(fake.revision))


@cases(
    (ALL, "/api/v1/configmaps", {"x", "y", "z"}),
    (frozenset({"x"}), "/api/v1/namespaces/x/configmaps", {"x"}),
    (frozenset({"x", "y"}), "/api/v1/configmaps", {"x", "y"}),
)
async def test_only_the_wanted_namespaces_are_kept(
    namespaces: frozenset[str], path: str, seen: set[str], fake: FakeApi, client: Client, clock: FakeClock
) -> None:
    for namespace in ("x", "y", "z"):
        await client.create(CONFIG_MAPS, config_map("listed", namespace))
    fake.calls.clear()
    async with caching(fake, clock, namespaces) as cache:
        assert {call.path for call in fake.calls} == {path}
        for namespace in ("z", "y", "x"):
            await client.create(CONFIG_MAPS, config_map("watched", namespace))
            await client.delete(CONFIG_MAPS, "listed", namespace)
        await eventually(lambda: cache.get("x", "watched") and not cache.get("x", "listed"))
        assert {(obj.namespace, obj.name) for obj in cache.list()} == {(namespace, "watched") for namespace in seen}


async def test_a_watch_goes_on_over_a_restart_of_the_member(fake: FakeApi, client: Client, clock: FakeClock) -> None:
    async with caching(fake, clock) as cache:
        subscription = await cache.subscribe(int(cache.resource_version))
        fake.break_watches()
        await client.create(CONFIG_MAPS, config_map("a"))
        await passing(clock, lambda: names(cache) == ["a"])
        assert [(change.type, change.entry.name) for change in subscription.drain()] == [("ADDED", "a")]
        assert not subscription.ended


async def test_a_list_after_a_gap_ends_watches_and_makes_their_versions_expired(
    fake: FakeApi, client: Client, clock: FakeClock
) -> None:
    await client.create(CONFIG_MAPS, config_map("a"))
    sink = RecordingSink()
    async with caching(fake, clock, ALL, sink) as cache:
        before = int(cache.resource_version)
        subscription = await cache.subscribe(before)
        fake.break_watches()
        await client.create(CONFIG_MAPS, config_map("b"))
        await client.delete(CONFIG_MAPS, "a", "default")
        fake.compact()
        sink.calls.clear()
        await passing(clock, lambda: names(cache) == ["b"])
        assert subscription.ended
        assert sink.calls == [("upsert", "b"), ("delete", "a"), ("replaced", "m1")]
        with pytest.raises(Expired):
            await cache.subscribe(before)
        await cache.subscribe(int(cache.resource_version))


async def test_a_list_after_a_gap_that_brings_nothing_new_lets_watches_go_on(
    fake: FakeApi, client: Client, clock: FakeClock
) -> None:
    await client.create(CONFIG_MAPS, config_map("a"))
    async with caching(fake, clock) as cache:
        kept = cache.get("default", "a")
        subscription = await cache.subscribe(int(cache.resource_version))
        fake.break_watches()
        fake.revision += 7
        fake.compact()
        await passing(clock, lambda: cache.resource_version == str(fake.revision))
        assert not subscription.ended
        assert cache.get("default", "a") is kept


async def test_a_member_that_was_restored_is_taken_as_it_is(fake: FakeApi, client: Client, clock: FakeClock) -> None:
    made = await client.create(CONFIG_MAPS, config_map("a"))
    fake.backup = (dict(fake.objects), fake.revision)
    await client.update(CONFIG_MAPS, {**made, "data": {"x": "late"}})
    sink = RecordingSink()
    async with caching(fake, clock, ALL, sink) as cache:
        fake.restore()
        await passing(clock, lambda: cache.list()[0].object() == made)
        assert list(sink.objects.values()) == [made]


async def test_a_watch_cannot_begin_at_a_version_that_its_member_has_not_reached(
    fake: FakeApi, client: Client, clock: FakeClock
) -> None:
    async with caching(fake, clock) as cache:
        await client.create(NODES, {"metadata": {"name": "n"}})
        assert cache.revision < fake.revision
        watch = await cache.subscribe(fake.revision)
        with pytest.raises(Expired, match="may be another one"):
            await cache.subscribe(fake.revision + 1)
        await client.create(CONFIG_MAPS, config_map("a"))
        await eventually(lambda: cache.revision == fake.revision)
        assert [change.entry.name for change in await anext(watch)] == ["a"]
        fake.fail = lambda _: ConnectionFailed("it is down")
        await cache.subscribe(fake.revision + 1)


async def test_an_object_made_again_while_nobody_watched_is_deleted_and_upserted(
    fake: FakeApi, client: Client, clock: FakeClock
) -> None:
    await client.create(CONFIG_MAPS, config_map("a"))
    sink = RecordingSink()
    async with caching(fake, clock, ALL, sink) as cache:
        fake.break_watches()
        await client.delete(CONFIG_MAPS, "a", "default")
        again = await client.create(CONFIG_MAPS, config_map("a"))
        fake.compact()
        await passing(clock, lambda: list(sink.objects.values()) == [again])
        assert cache.list()[0].uid == again["metadata"]["uid"]


async def test_a_member_without_the_kind_counts_as_empty_until_it_has_it(
    fake: FakeApi, client: Client, clock: FakeClock
) -> None:
    fake.fail = lambda call: NotFound.resource() if call.path.endswith("configmaps") and call.method == "GET" else None
    async with caching(fake, clock) as cache:
        assert names(cache) == []
        fake.fail = lambda _: None
        await client.create(CONFIG_MAPS, config_map("a"))
        await passing(clock, lambda: names(cache) == ["a"])


async def test_what_is_not_synced_refuses_watches(fake: FakeApi, clock: FakeClock) -> None:
    cache = ReflectedKind("m1", KIND, ALL, FakeTransport(fake), clock)
    with pytest.raises(TooManyRequests):
        await cache.subscribe(5)


async def test_watchers_see_what_their_selector_selects(fake: FakeApi, client: Client, clock: FakeClock) -> None:
    made = await client.create(CONFIG_MAPS, config_map("a", labels={"app": "web"}))
    async with caching(fake, clock) as cache:
        subscription = await cache.subscribe(matches=lambda entry: entry.labels.get("app") == "web")
        moved = {**made, "metadata": {**made["metadata"], "labels": {"app": "db"}}}
        changed = await client.update(CONFIG_MAPS, moved)
        [left] = await anext(subscription)
        assert left.type == "DELETED"
        seen = left.entry.object()["metadata"]
        assert seen["labels"] == {"app": "web"}
        assert seen["resourceVersion"] == changed["metadata"]["resourceVersion"]


class Unversioned(FakeTransport):
    """Lists as servers of metrics send them."""

    async def body(self, call: Call) -> bytes:  # noqa: ARG002
        return b'{"kind":"ConfigMapList","apiVersion":"v1","metadata":{},"items":[]}'


async def test_a_list_that_cannot_be_watched_from_is_an_error(fake: FakeApi, clock: FakeClock) -> None:
    cache = ReflectedKind("m1", KIND, ALL, Unversioned(fake), clock)
    cache.start()
    await eventually(lambda: cache.last_error)
    assert str(cache.last_error) == "the list of configmaps of cluster m1 makes no sense: it has no resourceVersion"
    assert not cache.synced
    await cache.stop()
