"""The watch cache: current state in list order, fresh for writers, over restarts and remote stores."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from karmada.kube.kinds.resource import Reader
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import Expired
from karmada.kube.server.storage.memory import MemoryStore
from karmada.kube.server.storage.sqlite import SqliteStore
from karmada.kube.server.watchcache.cache import Cache
from karmada.kube.server.watchcache.collection import Collection
from karmada.kube.server.watchcache.entry import doc_of
from tests.kube.server.watchcache.cached_stores import NODES, PODS, Remote, Writer, names, next_batch

# Reading


async def test_a_writer_reads_its_own_write_at_once(cache: Cache, pods: Collection, write: Writer) -> None:
    revision = await write.put("a", "x")
    found = pods.get("a", "x")
    assert found is not None
    assert (found.revision, cache.revision, pods.revision, pods.changed) == (revision,) * 4
    assert found.object()["metadata"]["resourceVersion"] == str(revision)
    deleted = await write.delete("a", "x")
    assert pods.get("a", "x") is None
    assert (pods.count, pods.list(), cache.revision) == (0, [], deleted)


async def test_lists_are_in_the_order_of_the_store(pods: Collection, write: Writer, store: MemoryStore) -> None:
    for namespace, name in [("a", "y"), ("a-b", "z"), ("a", "x.1"), ("a", "x"), ("b", "x"), ("a", "x-1"), ("a0", "x")]:
        await write.put(namespace, name)
    expected = [s.key for s in (await store.range("core/pods/")).items]
    assert [e.key for e in pods.list()] == expected
    assert names(pods.list()) == ["a-b/z", "a/x", "a/x-1", "a/x.1", "a/y", "a0/x", "b/x"]
    assert names(pods.list("a")) == ["a/x", "a/x-1", "a/x.1", "a/y"]
    assert pods.list("c") == []
    assert pods.count == 7


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 10])
@pytest.mark.parametrize("namespace", ["", "a"])
async def test_a_page_begins_behind_a_key_and_counts_what_is_behind_it(
    pods: Collection, write: Writer, namespace: str, limit: int
) -> None:
    for found, name in [("a", "y"), ("a-b", "z"), ("a", "x.1"), ("a", "x"), ("b", "x"), ("a", "x-1"), ("a0", "x")]:
        await write.put(found, name)
    whole = pods.list(namespace)
    for at, last in enumerate(whole):
        page, behind = pods._objects.page(namespace, last.key, limit)
        assert list(page) == whole[at + 1 : at + 1 + limit]
        assert behind == max(0, len(whole) - at - 1 - limit)
    gone = pods._objects.page(namespace, "core/pods/a/x.0", 10)
    assert [entry.key for entry in gone[0]] == [e.key for e in whole if e.key > "core/pods/a/x.0"]


async def test_cluster_scoped_objects_have_no_namespace(cache: Cache, store: MemoryStore) -> None:
    write = Writer(store, NODES)
    await write.put("", "n2")
    await write.put("", "n1")
    nodes = cache.collection(NODES)
    assert names(nodes.list()) == ["/n1", "/n2"]
    assert nodes.get("", "n1") is not None


async def test_the_cache_is_a_reader_of_shared_objects(cache: Cache, write: Writer) -> None:
    reader: Reader = cache
    await write.put("a", "x")
    found = reader.get(PODS, "a", "x")
    assert found is not None
    assert found is reader.get(PODS, "a", "x")
    assert reader.list(PODS, "a")[0] is found
    assert reader.get(PODS, "a", "y") is None
    assert reader.list(NODES) == []


async def test_the_recent_past_can_be_listed(pods: Collection, write: Writer, store: MemoryStore) -> None:
    moments = []
    for step in range(30):
        if step % 3 == 2:
            await write.delete("ab"[step % 2], f"p{step % 5}") if (
                "ab"[step % 2],
                f"p{step % 5}",
            ) in write.revisions else (await write.put("a", f"q{step}"))
        else:
            await write.put("ab"[step % 2], f"p{step % 5}", step=str(step))
        moments.append(store.revision)
    for moment in moments:
        for namespace in ("", "a"):
            prefix = f"core/pods/{namespace}/" if namespace else "core/pods/"
            expected = [doc_of(*s).raw for s in (await store.range(prefix, revision=moment)).items]
            snapshot = pods.snapshot(moment, namespace)
            assert snapshot is not None
            assert [e.raw for e in snapshot] == expected


async def test_pages_of_the_recent_past_are_parts_of_its_list(pods: Collection, write: Writer) -> None:
    chance = random.Random(7)
    moments = []
    for step in range(60):
        where = (chance.choice(["a", "a-b", "b"]), f"p{chance.randrange(8)}")
        if where in write.revisions and chance.random() < 0.4:
            await write.delete(*where)
        else:
            await write.put(*where, step=str(step))
        moments.append(pods.revision)
    for moment in moments[::5]:
        for namespace in ("", "a"):
            whole = pods.snapshot(moment, namespace) or []
            for at, last in enumerate(whole):
                for limit in (1, 3, 30):
                    page = pods.page_at(moment, namespace, last.key, limit)
                    assert page == (whole[at + 1 : at + 1 + limit], max(0, len(whole) - at - 1 - limit))


async def test_no_page_is_made_of_what_is_forgotten(pods: Collection, write: Writer) -> None:
    for step in range(10):
        await write.put("a", f"p{step}")
    pods.reset(pods.revision)
    assert pods.page_at(pods.revision - 1, "", "core/pods/a/p0", 3) is None


async def test_waiting_for_a_revision(cache: Cache, write: Writer, clock: FakeClock) -> None:
    assert await cache.wait_for(0, 1)
    waiting = asyncio.ensure_future(cache.wait_for(2, 3))
    await write.put("a", "x")
    await asyncio.sleep(0)
    assert not waiting.done()
    await write.put("a", "y")
    assert await waiting
    late = asyncio.ensure_future(cache.wait_for(99, 3))
    await clock.advance(2.9)
    assert not late.done()
    await clock.advance(0.2)
    assert not await late


# Restarts and remote stores


async def test_after_a_restart_watches_go_on_where_they_were(tmp_path: Path, clock: FakeClock) -> None:
    store = SqliteStore(tmp_path / "s.db")
    await store.open()
    write = Writer(store)
    for i in range(20):
        await write.put("a", f"p{i % 6}", i=str(i))
    await write.delete("a", "p3")
    await store.close()
    store = SqliteStore(tmp_path / "s.db")
    await store.open()
    cache = Cache(store, clock)
    await cache.start()
    pods = cache.collection(PODS)
    first = cache.revision
    subscription = await pods.subscribe(7)
    write.store = store
    await write.put("a", "new")
    assert [c.revision for c in await next_batch(subscription)] == [*range(8, 22), first + 1]
    assert [e.raw for e in pods.list()] == [doc_of(*s).raw for s in (await store.range("core/pods/")).items]
    await cache.stop()
    await store.close()


async def test_loading_pages_through_a_compacted_store(
    store: MemoryStore, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("karmada.kube.server.watchcache.cache._PAGE", 7)
    write, nodes = Writer(store), Writer(store, NODES)
    for i in range(40):
        await write.put("abc"[i % 3], f"p{i % 30}")
        await nodes.put("", f"n{i % 9}")
    await store.compact(75)
    cache = Cache(store, clock)
    await cache.start()
    assert cache.revision == 80
    for resource, prefix in ((PODS, "core/pods/"), (NODES, "core/nodes/")):
        expected = [doc_of(*s).raw for s in (await store.range(prefix)).items]
        assert [e.raw for e in cache.collection(resource).list()] == expected
    assert len((await cache.collection(PODS).subscribe(75)).drain()) == 2
    with pytest.raises(Expired, match=r"too old resource version: 74 \(75\)"):
        await cache.collection(PODS).subscribe(74)
    await cache.stop()


async def test_what_is_loaded_is_squeezed_on_the_way(store: MemoryStore, clock: FakeClock) -> None:
    write = Writer(store)
    for number in range(3_000):
        await write.put("a", f"p{number:04d}", text="x" * 2_000)
    cache = Cache(Remote(store), clock)
    entries = await cache._read(store.revision)
    whole = [entry for entry in entries if entry._json is not None]
    assert 2_000 < len(whole) < 2_100, "but for those that came last"
    assert [entry.raw for entry in entries] == [doc_of(*stored).raw for stored in (await store.range("core/")).items]


async def test_a_remote_store_is_followed_and_waited_for(store: MemoryStore, clock: FakeClock) -> None:
    write = Writer(store)
    for i in range(5):
        await write.put("a", f"p{i}")
    cache = Cache(Remote(store), clock)
    await cache.start()
    assert cache.revision == 5
    subscription = await cache.collection(PODS).subscribe(2)
    revision = await write.put("a", "x")
    assert cache.collection(PODS).get("a", "x") is None
    assert await cache.fresh()
    assert cache.revision == revision
    assert cache.collection(PODS).get("a", "x") is not None
    assert [c.revision for c in subscription.drain()] == [3, 4, 5, 6]
    await cache.stop()
    assert subscription.ended


async def test_a_lost_remote_store_is_found_again_without_a_gap(store: MemoryStore, clock: FakeClock) -> None:
    remote, write = Remote(store), Writer(store)
    cache = Cache(remote, clock)
    await cache.start()
    subscription = await cache.collection(PODS).subscribe()
    remote.broken = True
    for i in range(5):
        await write.put("a", f"p{i}")
    await clock.advance(3)
    assert cache.revision == 0
    remote.broken = False
    await clock.advance(1)
    assert await cache.wait_for(5, 1)
    assert [c.revision for c in await next_batch(subscription)] == [1, 2, 3, 4, 5]
    await cache.stop()


async def test_a_remote_store_that_forgot_too_much_is_loaded_anew_and_watches_end(
    store: MemoryStore, clock: FakeClock
) -> None:
    remote, write = Remote(store), Writer(store)
    await write.put("a", "old")
    cache = Cache(remote, clock)
    await cache.start()
    pods = cache.collection(PODS)
    subscription = await pods.subscribe(1)
    remote.broken = True
    await write.delete("a", "old")
    for i in range(5):
        await write.put("a", f"p{i}")
    await store.compact(5)
    remote.broken = False
    await clock.advance(3)
    assert await cache.wait_for(7, 1)
    assert subscription.ended
    assert names(pods.list()) == [f"a/p{i}" for i in range(5)]
    with pytest.raises(Expired):
        await pods.subscribe(1)
    await cache.stop()
