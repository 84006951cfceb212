from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karmada.api.well_known import CACHED_FROM_CLUSTER
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import BadRequest, Expired, TooManyRequests
from karmada.kube.schema.builtin import Definitions
from karmada.kube.server.http.negotiation import Form
from karmada.kube.server.http.options import list_options
from karmada.kube.server.http.protobuf_form import ProtobufForm
from karmada.kube.server.http.request import Query
from karmada.kube.server.http.results import WatchResult
from karmada.kube.server.http.watch_stream import INITIAL_EVENTS_END, stream
from karmada.kube.server.watchcache.entry import Change
from karmada.search.proxy.versions import Versions
from karmada.search.proxy.watching import open_watch
from tests.search.proxy.fakes import RESOURCE, FakeCache, FakeCaches
from tests.support.counting import let_others_run
from tests.support.eventually import LIMIT

PROTOBUF = ProtobufForm(Definitions.load())


async def watch(caches: FakeCaches, only: Sequence[str] = (), **query: str) -> WatchResult:
    options = list_options(Query.of({"watch": "true", **query}), watch=True)
    chosen = [caches.by_cluster[name] for name in only or sorted(caches.by_cluster)]
    return await open_watch(
        RESOURCE, "", options, chosen, caches.on_cluster_added, known=lambda name: name in caches.by_cluster
    )


@pytest.fixture
async def opened() -> AsyncIterator[list[WatchResult]]:
    results: list[WatchResult] = []
    yield results
    for result in results:
        result.subscription.close()


async def events(result: WatchResult, count: int) -> list[tuple[str, Any]]:
    found: list[Change] = []
    async with asyncio.timeout(LIMIT):
        while len(found) < count:
            found += await anext(result.subscription)
    return [(change.type, orjson.loads(change.entry.raw)) for change in found]


async def all_events(result: WatchResult) -> list[tuple[str, Any]]:
    found: list[Change] = []
    while True:
        waiting = asyncio.ensure_future(anext(result.subscription))
        await let_others_run()
        if not waiting.done():
            waiting.cancel()
            return [(change.type, orjson.loads(change.entry.raw)) for change in found]
        found += waiting.result()


async def ended(result: WatchResult) -> bool:
    async with asyncio.timeout(LIMIT):
        return [batch async for batch in result.subscription] == []


def at(event: tuple[str, Any]) -> dict[str, str]:
    versions = Versions.decode(event[1]["metadata"]["resourceVersion"])
    return {cluster: versions.get(cluster) for cluster in versions}


def seen(event: tuple[str, Any]) -> tuple[str, str, str]:
    metadata = event[1]["metadata"]
    return event[0], metadata["annotations"][CACHED_FROM_CLUSTER], metadata["name"]


def two() -> FakeCaches:
    return FakeCaches(FakeCache("m1", ["a"], revision=99), FakeCache("m2", ["b"], revision=199))


LISTED = Versions({"m1": "100", "m2": "200"}).encode()


async def test_each_event_has_the_positions_in_all_clusters(opened: list[WatchResult]) -> None:
    caches = two()
    opened.append(result := await watch(caches, resourceVersion=LISTED))
    caches.by_cluster["m1"].put("a")
    [first] = await events(result, 1)
    assert seen(first) == ("MODIFIED", "m1", "a")
    assert at(first) == {"m1": "101", "m2": "200"}
    caches.by_cluster["m2"].revision = 206
    caches.by_cluster["m2"].put("c")
    [second] = await events(result, 1)
    assert seen(second) == ("ADDED", "m2", "c")
    assert at(second) == {"m1": "101", "m2": "207"}


async def test_a_position_is_not_ahead_of_what_was_sent(opened: list[WatchResult]) -> None:
    caches = two()
    caches.by_cluster["m1"].put("a")
    caches.by_cluster["m2"].put("b")
    opened.append(result := await watch(caches, resourceVersion=LISTED))
    first, second = await events(result, 2)
    assert at(first) in ({"m1": "101", "m2": "200"}, {"m1": "100", "m2": "201"})
    assert at(second) == {"m1": "101", "m2": "201"}


@pytest.mark.parametrize("version", ["", "0"])
async def test_without_a_version_existing_objects_come_first(opened: list[WatchResult], version: str) -> None:
    caches = two()
    opened.append(result := await watch(caches, resourceVersion=version))
    found = await events(result, 2)
    assert [seen(event) for event in found] == [("ADDED", "m1", "a"), ("ADDED", "m2", "b")]
    caches.by_cluster["m2"].delete("b")
    [gone] = await events(result, 1)
    assert seen(gone) == ("DELETED", "m2", "b")
    assert at(gone) == {"m1": "100", "m2": "201"}


async def test_a_client_that_breaks_off_among_existing_objects_resumes_with_the_others(
    opened: list[WatchResult],
) -> None:
    caches = FakeCaches(FakeCache("m1", ["z", "a"]), FakeCache("m2", ["b"]))
    opened.append(result := await watch(caches))
    found = await events(result, 3)
    assert [seen(event)[2] for event in found] == ["z", "a", "b"]  # as they were written
    opened.append(resumed := await watch(caches, resourceVersion=found[0][1]["metadata"]["resourceVersion"]))
    assert sorted(seen(event)[2] for event in await events(resumed, 2)) == ["a", "b"]


async def test_the_end_of_existing_objects_is_marked_on_request(opened: list[WatchResult]) -> None:
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    opened.append(result := await watch(two(), **query))
    *_, end = await events(result, 3)
    assert end[0] == "BOOKMARK"
    assert end[1]["metadata"]["annotations"] == {INITIAL_EVENTS_END: "true"}
    assert at(end) == {"m1": "100", "m2": "200"}


async def test_a_new_cluster_closes_the_watch_and_its_objects_come_with_the_next(opened: list[WatchResult]) -> None:
    caches = two()
    opened.append(result := await watch(caches, resourceVersion=LISTED))
    caches.add(FakeCache("m3", ["c"]))
    assert await ended(result)
    opened.append(resumed := await watch(caches, resourceVersion=LISTED))
    assert [seen(event) for event in await events(resumed, 1)] == [("ADDED", "m3", "c")]


async def test_the_watch_ends_with_any_of_its_clusters(opened: list[WatchResult]) -> None:
    caches = two()
    opened.append(result := await watch(caches, resourceVersion=LISTED))
    caches.by_cluster["m2"].end_watches()
    assert await ended(result)


async def test_a_closed_watch_leaves_nothing_behind(opened: list[WatchResult]) -> None:
    caches = two()
    opened.append(result := await watch(caches))
    result.subscription.close()
    assert await ended(result)
    assert caches.followers == 0
    assert all(not cache._subscriptions for cache in caches.by_cluster.values())


async def test_without_clusters_the_watch_ends_at_once(opened: list[WatchResult]) -> None:
    opened.append(result := await watch(FakeCaches()))
    assert await ended(result)


async def test_a_version_that_is_too_old_in_one_cluster_fails_the_watch() -> None:
    caches = two()
    caches.by_cluster["m2"].put("c")
    caches.by_cluster["m2"].compact()
    with pytest.raises(Expired, match="too old resource version: 200"):
        await watch(caches, resourceVersion=LISTED)
    assert not caches.by_cluster["m1"]._subscriptions


async def test_a_cluster_that_has_left_makes_the_client_list_again() -> None:
    caches = two()
    caches.remove("m2")
    with pytest.raises(Expired, match="m2 has left"):
        await watch(caches, resourceVersion=LISTED)


async def test_a_cluster_that_is_away_for_a_while_is_no_reason_to_list_again(opened: list[WatchResult]) -> None:
    caches = two()
    opened.append(await watch(caches, only=["m1"], resourceVersion=LISTED))


async def test_a_watch_cannot_start_before_a_cache_has_synced() -> None:
    caches = two()
    caches.by_cluster["m2"].synced = False
    with pytest.raises(TooManyRequests):
        await watch(caches)


async def test_a_position_that_is_no_number_is_refused() -> None:
    with pytest.raises(BadRequest, match="invalid resource version"):
        await watch(two(), resourceVersion=Versions({"m1": "x"}).encode())


async def test_selectors_narrow_a_watch(opened: list[WatchResult]) -> None:
    caches = two()
    opened.append(result := await watch(caches, resourceVersion=LISTED, labelSelector="app=web"))
    cache = caches.by_cluster["m1"]
    cache.put("a")
    cache.put("a", labels={"app": "web"})
    cache.put("a")
    assert [seen(event)[0] for event in await events(result, 2)] == ["ADDED", "DELETED"]


async def test_existing_objects_are_selected_too(opened: list[WatchResult]) -> None:
    cache = FakeCache("m1", [f"p{number}" for number in range(200)])
    cache.put("web", labels={"app": "web"})
    opened.append(result := await watch(FakeCaches(cache), labelSelector="app=web"))
    [only] = await events(result, 1)
    assert (seen(only), at(only)) == (("ADDED", "m1", "web"), {"m1": "201"})


async def test_a_slow_client_ends_its_own_watch_and_nobody_elses(opened: list[WatchResult]) -> None:
    caches = FakeCaches(FakeCache("m1", buffer=10))
    opened += [slow := await watch(caches), quick := await watch(caches)]
    for number in range(30):
        caches.by_cluster["m1"].put(f"p{number}")
        assert [seen(event)[2] for event in await events(quick, 1)] == [f"p{number}"]
    async with asyncio.timeout(LIMIT):
        rest = [change async for batch in slow.subscription for change in batch]
    assert [change.entry.name for change in rest] == ["p0"]


async def test_a_wait_that_is_cancelled_loses_nothing(opened: list[WatchResult]) -> None:
    caches = two()
    opened.append(result := await watch(caches, resourceVersion=LISTED))
    for number in range(20):
        waiting = asyncio.ensure_future(anext(result.subscription))
        caches.by_cluster["m1"].put("a")
        for _ in range(number % 5):
            await asyncio.sleep(0)
        waiting.cancel()
        done = await asyncio.gather(waiting, return_exceptions=True)
        found = [] if isinstance(done[0], BaseException) else [orjson.loads(c.entry.raw) for c in done[0]]
        if not found:
            found = [obj for _, obj in await events(result, 1)]
        assert Versions.decode(found[-1]["metadata"]["resourceVersion"]).get("m1") == str(101 + number)


# --- on the wire


async def wire(result: WatchResult, form: Form, count: int) -> list[Any]:
    lines: list[Any] = []
    pieces = stream(result, form, "Metadata", FakeClock(), PROTOBUF)
    async with asyncio.timeout(LIMIT):
        async for piece in pieces:
            lines += map(orjson.loads, piece.splitlines())
            if len(lines) >= count:
                break
    await pieces.aclose()  # type: ignore[attr-defined]
    return lines


async def test_tables_and_metadata_are_watched_as_well(opened: list[WatchResult]) -> None:
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    opened.append(tables := await watch(two(), **query))
    first, second, end = await wire(tables, Form(transform="Table"), 3)
    assert first["object"]["rows"][0]["cells"][0] == "a"
    assert second["object"]["columnDefinitions"] is None
    assert end["type"] == "BOOKMARK"
    opened.append(partial := await watch(two(), **query))
    lines = await wire(partial, Form(transform="PartialObjectMetadata"), 3)
    assert [line["object"]["kind"] for line in lines] == ["PartialObjectMetadata"] * 3


async def test_bookmarks_have_the_positions_in_all_clusters(opened: list[WatchResult]) -> None:
    caches = two()
    opened.append(result := await watch(caches, resourceVersion=LISTED))
    caches.by_cluster["m2"].revision = 250
    assert result.subscription.progress == Versions({"m1": "100", "m2": "250"}).encode()
    caches.by_cluster["m1"].put("a")
    await let_others_run()
    assert result.subscription.progress == Versions({"m1": "100", "m2": "250"}).encode()  # it has not been read
    await events(result, 1)
    assert result.subscription.progress == Versions({"m1": "101", "m2": "250"}).encode()


# --- laws

steps = st.lists(
    st.tuples(st.sampled_from(["put", "delete", "resume"]), st.sampled_from(["m1", "m2"]), st.sampled_from("abc")),
    max_size=25,
)


@given(steps)
@settings(max_examples=100)
async def test_a_client_that_resumes_from_its_last_event_has_what_the_members_have(
    history: list[tuple[str, str, str]],
) -> None:
    caches = FakeCaches(FakeCache("m1", "ab"), FakeCache("m2", "b"))
    known: dict[tuple[str, str], str] = {}
    version = ""
    result = await watch(caches)

    async def read(most: int | None = None) -> None:
        nonlocal version
        for kind, obj in (await all_events(result))[:most]:
            meta = obj["metadata"]
            key = meta["annotations"][CACHED_FROM_CLUSTER], meta["name"]
            version = meta["resourceVersion"]
            known.pop(key, None) if kind == "DELETED" else known.update({key: version})

    for step, cluster, name in history:
        cache = caches.by_cluster[cluster]
        if step == "resume":
            await read("abc".index(name))  # the client breaks off after so many events, and has missed the others
            result.subscription.close()
            result = await watch(caches, resourceVersion=version)
        elif step == "put":
            cache.put(name)
        elif cache.get("default", name) is not None:
            cache.delete(name)
    await read()
    result.subscription.close()
    assert set(known) == {(c.cluster, obj.name) for c in caches.by_cluster.values() for obj in c.list()}
