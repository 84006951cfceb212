"""The index follows the caches, whatever happens to them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.gvrs import PODS
from karmada.kube.objects.types import Obj
from karmada.search.index.database import Database
from karmada.search.index.query import Query
from karmada.search.index.service import SearchIndex
from karmada.search.index.terms import Words, words
from tests.support.cached import HeldCaches, pod
from tests.support.eventually import eventually


async def names(index: SearchIndex, query: Query | None = None) -> list[str]:
    await eventually(lambda: not index.indexing)
    page = await index.search(query or Query(limit=500), dict.fromkeys(await index.sources()))
    return [f"{hit.source.cluster}/{hit.namespace}/{hit.name}" for hit in page.hits]


@pytest.fixture
async def caches() -> AsyncIterator[HeldCaches]:
    caches = HeldCaches()
    caches.add_sink(SearchIndex(caches))
    yield caches
    await index_of(caches).stop()


def index_of(caches: HeldCaches) -> SearchIndex:
    (index,) = caches.sinks
    assert isinstance(index, SearchIndex)
    return index


async def test_objects_are_found_once_they_are_cached_and_not_when_they_are_gone(caches: HeldCaches) -> None:
    caches.put("member1", PODS, pod("web-1"))
    caches.put("member2", PODS, pod("web-1"))
    assert await names(index_of(caches)) == ["member1/default/web-1", "member2/default/web-1"]
    caches.remove("member1", PODS, "default", "web-1")
    assert await names(index_of(caches)) == ["member2/default/web-1"]
    caches.drop("member2", PODS)
    assert await names(index_of(caches)) == []


async def test_a_list_makes_the_index_equal_to_it(caches: HeldCaches) -> None:
    caches.put("member1", PODS, pod("gone"))
    await names(index_of(caches))
    caches.listed("member1", PODS, [pod(f"web-{number:04d}") for number in range(450)])
    assert await names(index_of(caches)) == [f"member1/default/web-{number:04d}" for number in range(450)]


async def test_a_resource_with_too_many_changes_is_read_as_a_whole(caches: HeldCaches) -> None:
    index = index_of(caches)
    index._pending._most = 10
    for number in range(100):
        caches.put("member1", PODS, pod(f"web-{number:03d}"))
    assert len(index._pending) == 1
    assert len(await names(index)) == 100


async def test_without_a_folder_to_write_to_the_index_is_in_memory(
    caches: HeldCaches, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none() -> str:
        raise FileNotFoundError

    monkeypatch.setattr("tempfile.gettempdir", none)
    caches.put("member1", PODS, pod("web-1"))
    assert await names(index_of(caches)) == ["member1/default/web-1"]
    assert index_of(caches).waiting == 0


async def test_nothing_runs_before_the_first_object() -> None:
    index = SearchIndex(HeldCaches())
    before = len(asyncio.all_tasks())
    assert await index.sources() == {}
    assert len(asyncio.all_tasks()) == before
    assert not index.indexing
    await index.stop()


async def test_an_object_that_cannot_be_read_is_found_by_its_name(
    caches: HeldCaches, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def odd(obj: Obj, cluster: str) -> Words:
        if obj["metadata"]["name"] == "odd":
            raise ValueError("no JSON")
        return words(obj, cluster)

    monkeypatch.setattr("karmada.search.index.service.words", odd)
    for name in ("odd", "web"):
        caches.put("member1", PODS, pod(name))
    assert await names(index_of(caches), Query(text="odd")) == ["member1/default/odd"]
    assert await names(index_of(caches), Query(text="nginx")) == ["member1/default/web"]
    assert "is found by its name only" in caplog.text


@pytest.mark.parametrize("hanging", [False, True])
async def test_the_caches_come_first_but_not_for_ever(hanging: bool) -> None:
    clock, caches, filled = FakeClock(), HeldCaches(), False
    index = SearchIndex(caches, clock, filled=lambda: filled)
    caches.add_sink(index)
    caches.put("member1", PODS, pod("web-1"))
    await clock.advance(5)
    assert index.indexing
    assert await index.sources() == {}
    filled = not hanging
    for _ in range(300 if hanging else 1):
        await clock.advance(0.1)
    assert await names(index) == ["member1/default/web-1"]
    await index.stop()


async def test_what_could_not_be_indexed_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    failures, apply = iter([OSError("no space left on device")]), Database.apply

    def fails_once(*given: Any) -> Any:
        for failure in failures:
            raise failure
        return apply(*given)

    monkeypatch.setattr(Database, "apply", fails_once)
    clock, caches = FakeClock(), HeldCaches()
    index = SearchIndex(caches, clock)
    caches.add_sink(index)
    caches.put("member1", PODS, pod("web-1"))
    await eventually(lambda: clock.next_due() is not None)
    await clock.advance(5)
    assert await names(index) == ["member1/default/web-1"]
    assert "no space left on device" in caplog.text
    await index.stop()


_CLUSTERS, _NAMES = st.sampled_from(["member1", "member2"]), st.sampled_from("abcd")
_STEP = st.one_of(
    st.tuples(st.just("put"), _CLUSTERS, _NAMES),
    st.tuples(st.just("remove"), _CLUSTERS, _NAMES),
    st.tuples(st.just("listed"), _CLUSTERS, st.sets(_NAMES)),
    st.tuples(st.just("drop"), _CLUSTERS, st.none()),
    st.tuples(st.just("turn"), st.none(), st.none()),
)


@given(st.lists(_STEP, max_size=30))
@settings(max_examples=40, deadline=None)
def test_after_any_history_the_index_has_what_the_caches_have(steps: list[tuple[str, str, str]]) -> None:
    asyncio.run(_follow(steps))


async def _follow(steps: list[tuple[str, str, str]]) -> None:
    caches = HeldCaches()
    index = SearchIndex(caches)
    caches.add_sink(index)
    try:
        for number, (step, cluster, what) in enumerate(steps):
            await _take(caches, step, cluster, what, f"step-{number}")
        expected = [
            f"{cluster}/default/{obj.name}"
            for cluster in caches.clusters(PODS)
            for obj in caches.cache(cluster, PODS).list()
        ]
        assert await names(index) == expected
        for cluster in caches.clusters(PODS):
            for obj in caches.cache(cluster, PODS).list():
                image = obj.object()["spec"]["containers"][0]["image"]
                assert f"{cluster}/default/{obj.name}" in await names(index, Query(text=image))
    finally:
        await index.stop()


async def _take(caches: HeldCaches, step: str, cluster: str, what: str, image: str) -> None:
    cache = caches.cache(cluster, PODS)
    if step == "put":
        caches.put(cluster, PODS, pod(what, image=image))
    elif step == "remove" and cache is not None and cache.get("default", what):
        caches.remove(cluster, PODS, "default", what)
    elif step == "listed":
        caches.listed(cluster, PODS, [pod(name, image=image) for name in what])
    elif step == "drop":
        caches.drop(cluster, PODS)
    elif step == "turn":
        await asyncio.sleep(0.001)
