from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karmada.api.well_known import CACHED_FROM_CLUSTER
from karmada.apiserver.members import plain
from karmada.kube.objects.errors import ApiError, Expired
from karmada.kube.server.http.list_stream import collected
from karmada.kube.server.http.options import ListOptions, list_options
from karmada.kube.server.http.request import Query
from karmada.search.proxy.listing import Lists, Wanted
from karmada.search.proxy.versions import Continue, Versions
from tests.search.proxy.fakes import RESOURCE, FakeCache, FakeReads

SELECTORS = ("labelSelector", "fieldSelector")


async def listed(*caches: FakeCache, namespace: str = "", **query: str) -> Any:
    options = list_options(Query.of(query), watch=False)
    selectors = {key: query[key] for key in SELECTORS if key in query}
    result = await Lists(FakeReads()).list(Wanted(RESOURCE, namespace, options, selectors), caches)
    return await collected(result)


def names(page: Any) -> list[str]:
    return [item["metadata"]["name"] for item in page["items"]]


def positions(page: Any, *clusters: str) -> dict[str, str]:
    versions = Versions.decode(page["metadata"]["resourceVersion"])
    return {cluster: versions.get(cluster) for cluster in clusters}


def position(page: Any) -> Continue:
    return Continue.decode(page["metadata"].get("continue", ""))


@pytest.fixture
def m1() -> FakeCache:
    return FakeCache("member1", "abc", revision=1000)


@pytest.fixture
def m2() -> FakeCache:
    return FakeCache("member2", "de", revision=2000)


async def test_pages_go_over_the_end_of_a_cluster(m1: FakeCache, m2: FakeCache) -> None:
    first = await listed(m1, m2, limit="2")
    assert names(first) == ["a", "b"]
    assert position(first).cluster == "member1"
    assert position(first).token
    second = await listed(m1, m2, limit="2", **{"continue": first["metadata"]["continue"]})
    assert names(second) == ["c", "d"]
    assert position(second).cluster == "member2"
    assert position(second).token
    third = await listed(m1, m2, limit="2", **{"continue": second["metadata"]["continue"]})
    assert names(third) == ["e"]
    assert "continue" not in third["metadata"]


async def test_a_page_that_ends_with_a_cluster_goes_on_at_the_next_one(m2: FakeCache) -> None:
    m1 = FakeCache("member1", "ab")
    first = await listed(m1, m2, limit="2")
    assert names(first) == ["a", "b"]
    assert (position(first).cluster, position(first).token) == ("member2", "")
    second = await listed(m1, m2, limit="2", **{"continue": first["metadata"]["continue"]})
    assert names(second) == ["d", "e"]
    assert "continue" not in second["metadata"]


async def test_every_page_has_the_position_in_every_cluster(m1: FakeCache, m2: FakeCache) -> None:
    page = await listed(m1, m2, limit="1")
    assert positions(page, "member1", "member2") == {"member1": "1003", "member2": "2002"}
    assert position(page).versions == page["metadata"]["resourceVersion"]


async def test_items_are_marked_with_their_cluster_and_keep_its_resource_version(m1: FakeCache, m2: FakeCache) -> None:
    for page in (await listed(m1, m2), await listed(m1, m2, resourceVersion="0")):
        marks = [item["metadata"]["annotations"][CACHED_FROM_CLUSTER] for item in page["items"]]
        assert marks == ["member1"] * 3 + ["member2"] * 2
        assert [item["metadata"]["resourceVersion"] for item in page["items"]][:2] == ["1001", "1002"]
        assert page["kind"] == "PodList"


async def test_objects_of_the_same_name_are_listed_from_each_cluster() -> None:
    assert names(await listed(FakeCache("m1", "a"), FakeCache("m2", "a"))) == ["a", "a"]


async def test_no_cluster_is_an_empty_list() -> None:
    assert await listed() == {"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": ""}, "items": []}


@pytest.mark.parametrize("limit", ["0", "10"])
async def test_a_list_has_no_position_in_clusters_that_it_does_not_have(m1: FakeCache, limit: str) -> None:
    page = await listed(m1, limit=limit, resourceVersion=Versions({"member1": "1001", "away": "7"}).encode())
    assert list(Versions.decode(page["metadata"]["resourceVersion"])) == ["member1"]


# --- from where


async def test_any_state_is_listed_from_the_caches(m1: FakeCache, m2: FakeCache) -> None:
    m1.down = m2.down = plain("down")
    page = await listed(m1, m2, resourceVersion="0")
    assert names(page) == ["a", "b", "c", "d", "e"]
    assert positions(page, "member1", "member2") == {"member1": "1003", "member2": "2002"}
    assert m1.requests == m2.requests == []


@pytest.mark.parametrize("query", [{}, {"resourceVersion": "0", "limit": "5"}, {"limit": "5"}])
async def test_the_latest_state_and_pages_are_listed_from_members(m1: FakeCache, query: dict[str, str]) -> None:
    assert names(await listed(m1, **query)) == ["a", "b", "c"]
    assert len(m1.requests) == 1


async def test_a_cache_that_has_not_synced_is_bypassed(m1: FakeCache, m2: FakeCache) -> None:
    m2.synced = False
    page = await listed(m1, m2, resourceVersion="0")
    assert names(page) == ["a", "b", "c", "d", "e"]
    assert (len(m1.requests), len(m2.requests)) == (0, 1)


async def test_members_get_selectors_and_their_own_resource_version(m1: FakeCache, m2: FakeCache) -> None:
    version = Versions({"member1": "1001"}).encode()
    selectors = {"labelSelector": "app=web", "fieldSelector": "status.phase=Running"}
    await listed(m1, m2, resourceVersion=version, limit="10", **selectors)
    assert m1.requests == [{**selectors, "limit": "10", "resourceVersion": "1001"}]
    assert m2.requests == [{**selectors, "limit": "7"}]


async def test_a_streamed_list_wants_states_not_older_than_a_version(m1: FakeCache) -> None:
    await listed(m1, resourceVersion=Versions({"member1": "1001"}).encode())
    assert m1.requests == [{"limit": "500", "resourceVersion": "1001", "resourceVersionMatch": "NotOlderThan"}]


async def test_cached_lists_are_selected_by_labels_fields_and_namespace() -> None:
    cache = FakeCache("m1", "ab")
    cache.put("c", labels={"app": "web"})
    cache.put("d", namespace="other")
    assert names(await listed(cache, resourceVersion="0", labelSelector="app=web")) == ["c"]
    assert names(await listed(cache, resourceVersion="0", fieldSelector="metadata.name=b")) == ["b"]
    assert names(await listed(cache, resourceVersion="0", fieldSelector="metadata.name!=b", namespace="other")) == ["d"]


async def test_a_member_that_returns_less_than_a_page_is_listed_on() -> None:
    """Of several namespaces only some objects of a page may be wanted."""

    class Sparse(FakeReads):
        async def page(self, cache: Any, namespace: str, query: Any) -> Any:
            page = await super().page(cache, namespace, {**query, "limit": "1"})
            return page._replace(items=[item for item in page.items if b'"name":"b"' not in item])

    cache = FakeCache("m1", "abcd")
    result = await Lists(Sparse()).list(Wanted(RESOURCE, "", ListOptions(limit=2), {}), [cache])
    assert names(await collected(result)) == ["a", "c"]


async def test_a_limit_beyond_all_bounds_is_cut(monkeypatch: pytest.MonkeyPatch, m1: FakeCache) -> None:
    monkeypatch.setattr("karmada.search.proxy.listing.LARGEST_LIMIT", 2)
    page = await listed(m1, limit="100000")
    assert names(page) == ["a", "b"]
    assert position(page).cluster == "member1"


async def test_many_clusters_with_few_objects_are_requested_together() -> None:
    class Counting(FakeReads):
        at_once = most = 0

        async def page(self, cache: Any, namespace: str, query: Any) -> Any:
            self.at_once += 1
            self.most = max(self.most, self.at_once)
            try:
                return await super().page(cache, namespace, query)
            finally:
                self.at_once -= 1

    caches = [FakeCache(f"m{number:02d}", "a") for number in range(40)]
    reads = Counting()
    result = await Lists(reads).list(Wanted(RESOURCE, "", ListOptions(limit=500), {}), caches)
    assert len((await collected(result))["items"]) == 40
    assert reads.most == 16
    assert all(len(cache.requests) == 1 for cache in caches)


async def test_a_full_page_has_the_positions_of_clusters_that_were_requested_ahead() -> None:
    caches = [FakeCache(f"m{number}", "ab", revision=10) for number in range(4)]
    page = await listed(*caches, limit="4")
    assert names(page) == ["a", "b", "a", "b"]
    assert position(page).cluster == "m2"
    assert positions(page, "m2", "m3") == {"m2": "12", "m3": "12"}
    assert [len(cache.requests) for cache in caches] == [1, 1, 1, 1]


# --- what goes wrong


@pytest.mark.parametrize("query", [{}, {"limit": "5"}])
async def test_an_error_of_a_member_fails_the_list(m1: FakeCache, m2: FakeCache, query: dict[str, str]) -> None:
    m2.down = Expired("too old")
    with pytest.raises(Expired, match="too old"):
        await listed(m1, m2, **query)


async def test_an_error_of_a_later_page_fails_the_list(monkeypatch: pytest.MonkeyPatch, m1: FakeCache) -> None:
    monkeypatch.setattr("karmada.search.proxy.listing.PAGE", 1)
    result = await Lists(FakeReads()).list(Wanted(RESOURCE, "", ListOptions(), {}), [m1])
    m1.down = plain("gone away")
    with pytest.raises(ApiError, match="gone away"):
        await collected(result)


async def test_a_list_goes_on_with_the_next_cluster_when_its_own_has_left(m1: FakeCache, m2: FakeCache) -> None:
    m3 = FakeCache("member3", "f")
    first = await listed(m1, m2, m3, limit="4")
    assert position(first).cluster == "member2"
    rest = await listed(m1, m3, limit="4", **{"continue": first["metadata"]["continue"]})
    assert names(rest) == ["f"]


# --- laws

clusters = st.lists(st.sets(st.text("abc", min_size=1, max_size=3), max_size=9), max_size=4)


@given(clusters, st.integers(1, 7), st.data())
@settings(max_examples=60)
async def test_pages_are_complete_and_without_doubles_while_objects_change(
    members: list[set[str]], limit: int, data: st.DataObject
) -> None:
    caches = [FakeCache(f"m{at}", sorted(objects)) for at, objects in enumerate(members)]
    wanted = [(cache.cluster, obj.name) for cache in caches for obj in cache.list()]
    seen: list[tuple[str, str]] = []
    token = ""
    touched: set[tuple[str, str]] = set()
    for _ in range(60):
        query = {"limit": str(limit), **({"continue": token} if token else {})}
        page = await listed(*caches, **query)
        assert len(page["items"]) <= limit
        seen += [(item["metadata"]["annotations"][CACHED_FROM_CLUSTER], name_of(item)) for item in page["items"]]
        token = page["metadata"].get("continue", "")
        if not token:
            break
        cache = data.draw(st.sampled_from(caches))
        name = data.draw(st.text("abc", min_size=1, max_size=3))
        touched.add((cache.cluster, name))
        if cache.get("default", name) is None:
            cache.put(name)
        else:
            cache.delete(name)
    assert not token
    assert len(seen) == len(set(seen))
    assert seen == sorted(seen)
    assert set(wanted) - touched <= set(seen) <= set(wanted) | touched


@given(clusters, st.booleans())
@settings(max_examples=40)
async def test_a_streamed_list_is_the_lists_of_all_clusters_one_after_another(
    members: list[set[str]], cached: bool
) -> None:
    caches = [FakeCache(f"m{at}", sorted(objects)) for at, objects in enumerate(members)]
    page = await listed(*caches, **({"resourceVersion": "0"} if cached else {}))
    assert names(page) == [obj.name for cache in caches for obj in cache.list()]


def name_of(item: Any) -> str:
    name: str = item["metadata"]["name"]
    return name


def test_the_fake_member_keeps_the_snapshot_of_a_list() -> None:
    cache = FakeCache("m", "ab")
    first = cache.page("", {"limit": "1"})
    cache._objects.clear()
    assert [orjson.loads(raw)["metadata"]["name"] for raw in cache.page("", {"continue": first.token}).items] == ["b"]
