"""The watch cache: current state in list order, fresh for writers, and watches that miss and repeat nothing."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from karmada.kube.kinds.resource import Reader
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import Expired, ServiceUnavailable
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.server.storage.interface import Event, Page, Store, Stored, StoreDamaged, StoreUnavailable
from karmada.kube.server.storage.memory import MemoryStore
from karmada.kube.server.storage.sqlite import SqliteStore
from karmada.kube.server.watchcache import collection as collection_module
from karmada.kube.server.watchcache import subscription as subscription_module
from karmada.kube.server.watchcache.cache import Cache, encode_value, storage_key
from karmada.kube.server.watchcache.collection import Collection
from karmada.kube.server.watchcache.entry import Change, Entry, entry_of
from karmada.kube.server.watchcache.history import History
from karmada.kube.server.watchcache.subscription import Subscription

PODS = GroupResource("", "pods")
NODES = GroupResource("", "nodes")
LEASES = GroupResource("coordination.k8s.io", "leases")


class Writer:
    """Writes small objects and remembers their revisions."""

    def __init__(self, store: Store, resource: GroupResource = PODS) -> None:
        self.store = store
        self.resource = resource
        self.revisions: dict[tuple[str, str], int] = {}

    async def put(self, namespace: str, name: str, **labels: str) -> int:
        metadata = {"name": name, "labels": labels} | ({"namespace": namespace} if namespace else {})
        value = encode_value({"apiVersion": "v1", "kind": "X", "metadata": metadata})
        key = storage_key(self.resource, namespace, name)
        revision = await self.store.write(key, value, expected=self.revisions.get((namespace, name), 0))
        self.revisions[namespace, name] = revision
        return revision

    async def delete(self, namespace: str, name: str) -> int:
        expected = self.revisions.pop((namespace, name))
        return await self.store.write(storage_key(self.resource, namespace, name), None, expected=expected)


class Remote:
    """A store as seen over a network: no watch is notified before the writer, and the connection may break."""

    def __init__(self, store: MemoryStore) -> None:
        self.inner = store
        self.broken = False

    @property
    def revision(self) -> int:
        return self.inner.revision

    @property
    def last_error(self) -> Exception | None:
        return None

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    def is_stale(self, key: str, /) -> bool:
        return self.inner.is_stale(key)

    async def get(self, key: str) -> Stored | None:
        return await self.inner.get(key)

    async def range(self, prefix: str, *, after: str = "", limit: int = 0, revision: int = 0) -> Page:
        return await self.inner.range(prefix, after=after, limit=limit, revision=revision)

    async def write(self, key: str, value: bytes | None, *, expected: int) -> int:
        return await self.inner.write(key, value, expected=expected)

    async def history(self, prefix: str, *, since: int, until: int, limit: int = 0) -> list[Event]:
        return await self.inner.history(prefix, since=since, until=until, limit=limit)

    async def compact(self, revision: int) -> None:
        await self.inner.compact(revision)

    async def watch(self, prefix: str, *, since: int) -> AsyncIterator[list[Event]]:
        if self.broken:
            raise StoreUnavailable("no route")
        async for events in self.inner.watch(prefix, since=since):
            if self.broken:
                raise StoreUnavailable("connection lost")
            yield events


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
async def cache(store: MemoryStore, clock: FakeClock) -> AsyncIterator[Cache]:
    cache = Cache(store, clock)
    await cache.start()
    yield cache
    await cache.stop()


@pytest.fixture
def pods(cache: Cache) -> Collection:
    return cache.collection(PODS)


@pytest.fixture
def write(store: MemoryStore) -> Writer:
    return Writer(store)


def names(entries: list[Entry]) -> list[str]:
    return [f"{e.namespace}/{e.name}" for e in entries]


def seen(changes: list[Change]) -> list[tuple[str, str, int]]:
    return [(c.type, c.entry.name, c.revision) for c in changes]


async def next_batch(subscription: Subscription) -> list[Change]:
    async with asyncio.timeout(30):
        return await anext(subscription)


def labelled(key: str, value: str) -> Callable[[Entry], bool]:
    return lambda entry: entry.labels.get(key) == value


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
            expected = [entry_of(*s).raw for s in (await store.range(prefix, revision=moment)).items]
            snapshot = pods.snapshot(moment, namespace)
            assert snapshot is not None
            assert [e.raw for e in snapshot] == expected


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


# Watching


async def test_a_watcher_sees_every_change_in_order(pods: Collection, write: Writer) -> None:
    subscription = await pods.subscribe()
    await write.put("a", "x")
    await write.put("a", "x", k="v")
    await write.put("b", "y")
    await write.delete("a", "x")
    batch = await next_batch(subscription)
    assert seen(batch) == [("ADDED", "x", 1), ("MODIFIED", "x", 2), ("ADDED", "y", 3), ("DELETED", "x", 4)]
    assert batch[3].entry.object()["metadata"] == {
        "resourceVersion": "4", "name": "x", "labels": {"k": "v"}, "namespace": "a",
    }  # fmt: skip
    subscription.close()


async def test_a_watcher_is_given_only_what_its_namespace_and_name_select(pods: Collection, write: Writer) -> None:
    wanted = [("", ""), ("a", ""), ("", "x"), ("a", "x")]
    subscriptions = [await pods.subscribe(namespace=namespace, name=name) for namespace, name in wanted]
    for namespace, name in [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y")]:
        await write.put(namespace, name)
    got = [[c.revision for c in s.drain()] for s in subscriptions]
    assert got == [[1, 2, 3, 4], [1, 2], [1, 3], [1]]
    replayed = [[c.revision for c in (await pods.subscribe(0, namespace=n, name=m)).drain()] for n, m in wanted]
    assert replayed == got


async def test_selectors_turn_changes_into_appearances_and_disappearances(pods: Collection, write: Writer) -> None:
    live = await pods.subscribe(matches=labelled("app", "web"))
    await write.put("a", "x", app="other")
    await write.put("a", "x", app="web", version="1")
    await write.put("a", "x", app="web", version="2")
    await write.put("a", "x", app="other")
    await write.put("a", "x", app="still")
    await write.put("a", "x", app="web")
    await write.delete("a", "x")
    batch = await next_batch(live)
    assert seen(batch) == [
        ("ADDED", "x", 2), ("MODIFIED", "x", 3), ("DELETED", "x", 4), ("ADDED", "x", 6), ("DELETED", "x", 7),
    ]  # fmt: skip
    gone = batch[2].entry.object()["metadata"]
    assert (gone["labels"], gone["resourceVersion"]) == ({"app": "web", "version": "2"}, "4")
    assert seen((await pods.subscribe(0, matches=labelled("app", "web"))).drain()) == seen(batch)
    assert seen((await pods.subscribe(2, matches=labelled("app", "web"))).drain()) == seen(batch)[1:]


async def test_all_watchers_share_one_encoded_frame(pods: Collection, write: Writer) -> None:
    plain = [await pods.subscribe() for _ in range(3)]
    selecting = [await pods.subscribe(matches=labelled("k", "v")) for _ in range(2)]
    await write.put("a", "x", k="v")
    await write.put("a", "x", k="w")
    frames = {id(c.frame()) for s in plain for c in s.drain()}
    assert len(frames) == 2
    leaving = {id(s.drain()[1].frame()) for s in selecting}
    assert len(leaving) == 1
    assert leaving.isdisjoint(frames)


async def test_a_subscription_goes_on_exactly_after_its_revision(pods: Collection, write: Writer) -> None:
    for i in range(5):
        await write.put("a", f"p{i}")
    subscription = await pods.subscribe(3)
    assert [c.revision for c in subscription.drain()] == [4, 5]
    await write.put("a", "q")
    assert [c.revision for c in await next_batch(subscription)] == [6]
    future = await pods.subscribe(7)
    await write.put("a", "r")
    await write.put("a", "s")
    assert [c.revision for c in future.drain()] == [8]


async def test_progress_is_what_a_bookmark_may_say(cache: Cache, pods: Collection, store: MemoryStore) -> None:
    write, other = Writer(store), Writer(store, LEASES)
    subscription = await pods.subscribe()
    await other.put("a", "lease")
    assert subscription.progress == 1
    await write.put("a", "x")
    await other.put("a", "lease")
    assert subscription.progress == 1
    subscription.drain()
    assert subscription.progress == 3 == cache.revision


async def test_a_reader_that_lags_too_far_is_disconnected(pods: Collection, write: Writer) -> None:
    slow, quick = await pods.subscribe(buffer=5), await pods.subscribe(buffer=5)
    for i in range(6):
        await write.put("a", f"p{i}")
        quick.drain()
    await asyncio.sleep(0)
    assert slow.ended
    assert slow.drain() == []
    assert [batch async for batch in slow] == []
    assert not quick.ended
    assert pods.watchers == 1


async def test_a_reader_that_lags_by_too_many_bytes_is_disconnected(
    pods: Collection, write: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscription_module, "MAX_PENDING_BYTES", 500)
    slow, quick = await pods.subscribe(), await pods.subscribe()
    for i in range(20):
        await write.put("a", f"p{i}")
        quick.drain()
    assert slow.ended
    assert not quick.ended


async def test_progress_of_an_ended_subscription_claims_nothing_it_did_not_deliver(
    pods: Collection, write: Writer
) -> None:
    subscription = await pods.subscribe(buffer=2)
    await write.put("a", "p0")
    subscription.drain()
    for i in range(1, 5):
        await write.put("a", f"p{i}")
    assert subscription.ended
    assert subscription.progress == 1


async def test_a_selector_that_fails_ends_its_own_watch_only(cache: Cache, pods: Collection, write: Writer) -> None:
    def broken(entry: Entry) -> bool:
        raise RuntimeError(entry.name)

    failing, fine = await pods.subscribe(matches=broken), await pods.subscribe()
    await write.put("a", "x")
    assert (failing.ended, fine.ended, cache.revision) == (True, False, 1)
    assert len(fine.drain()) == 1


async def test_replayed_history_does_not_count_as_lag(pods: Collection, write: Writer) -> None:
    for i in range(20):
        await write.put("a", f"p{i}")
    subscription = await pods.subscribe(0, buffer=5)
    for i in range(5):
        await write.put("a", f"q{i}")
    assert len(subscription.drain()) == 25
    for i in range(6):
        await write.put("a", f"r{i}")
    assert subscription.ended


async def test_closing_leaves_nothing_behind(pods: Collection, write: Writer) -> None:
    subscription = await pods.subscribe(namespace="a", name="x", matches=labelled("a", "b"))
    reading = asyncio.ensure_future(anext(subscription, None))
    await asyncio.sleep(0)
    subscription.close()
    assert await reading is None
    assert pods.watchers == 0
    assert pods._subscribers._filed == {}
    await write.put("a", "x", a="b")
    assert subscription.drain() == []
    subscription.close()

    class Selector:
        def matches(self, entry: Entry) -> bool:
            return entry.name == "y"

    selector = Selector()
    alive = weakref.ref(selector)
    other = await pods.subscribe(matches=selector.matches)
    await write.put("a", "y")
    other.close()
    del selector, other
    await asyncio.sleep(0)
    gc.collect()
    assert alive() is None


async def test_cancelling_a_reader_loses_nothing(pods: Collection, write: Writer) -> None:
    subscription = await pods.subscribe()
    got: list[int] = []
    for i in range(20):
        reading = asyncio.ensure_future(anext(subscription))
        await asyncio.sleep(0)
        await write.put("a", f"p{i}")
        for _ in range(i % 4):  # before it is woken, after, while it resumes, when it is done
            await asyncio.sleep(0)
        if not reading.cancel():
            got += [c.revision for c in reading.result()]
        await asyncio.gather(reading, return_exceptions=True)
    got += [c.revision for c in subscription.drain()]
    assert got == list(range(1, 21))


async def test_ending_all_watches_of_a_resource(cache: Cache, pods: Collection) -> None:
    subscriptions = [await pods.subscribe(), await pods.subscribe(namespace="a")]
    other = await cache.collection(NODES).subscribe()
    pods.end_watches()
    assert [s.ended for s in subscriptions] == [True, True]
    assert not other.ended


# History

_SHORT = History(look_back=5, at_most=4)


def keep(cache: Cache, **limits: int) -> None:
    cache._keep = cache._keep._replace(**limits)
    for collection in cache._collections.values():
        collection._keep = cache._keep


async def test_churn_elsewhere_does_not_flush_a_history(cache: Cache, pods: Collection, store: MemoryStore) -> None:
    keep(cache, at_most=50)
    write, churn = Writer(store), Writer(store, LEASES)
    await write.put("a", "x")
    for i in range(200):
        await churn.put("a", "lease", i=str(i))
    assert seen((await pods.subscribe(0)).drain()) == [("ADDED", "x", 1)]
    assert cache.collection(LEASES).changes_since(100) is None
    changes = cache.collection(LEASES).changes_since(180)
    assert changes is not None
    assert len(changes) == 21


async def test_history_is_kept_for_five_minutes_and_then_trimmed(
    cache: Cache, pods: Collection, write: Writer, clock: FakeClock
) -> None:
    for i in range(200):
        await write.put("a", f"p{i}")
    await clock.advance(minutes=4)
    assert pods.changes_since(0) is not None
    await clock.advance(minutes=2)
    assert pods.changes_since(0) is None
    changes = pods.changes_since(100)
    assert changes is not None
    assert len(changes) == History().at_least


async def test_history_is_bounded_by_bytes(pods: Collection, write: Writer, cache: Cache) -> None:
    keep(cache, most_bytes=20_000)
    for i in range(50):
        await write.put("a", "x", i=str(i), big="v" * 1000)
    changes = pods.changes_since(40)
    assert changes is not None
    assert pods.changes_since(20) is None
    assert pods._history_bytes <= 20_000


async def test_older_history_comes_from_the_store_before_what_happens_meanwhile(
    pods: Collection, write: Writer, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(cache, at_most=10)
    monkeypatch.setattr(collection_module, "_HISTORY_PAGE", 7)
    for i in range(30):
        await write.put("ab"[i % 2], f"p{i % 7}", i=str(i), even=str(i % 2 == 0))
    await write.delete("a", "p0")
    starting = [
        asyncio.ensure_future(starting)
        for starting in (
            pods.subscribe(0),
            pods.subscribe(4, namespace="a"),
            pods.subscribe(4, matches=labelled("even", "True")),
        )
    ]
    await asyncio.sleep(0)
    assert pods.watchers == 3
    await write.put("a", "meanwhile", even="True")
    subscriptions = await asyncio.gather(*starting)
    everything = await next_batch(subscriptions[0])
    assert [c.revision for c in everything] == list(range(1, 33))
    assert {c.type for c in everything} == {"ADDED", "MODIFIED", "DELETED"}
    assert [c.revision for c in await next_batch(subscriptions[1])] == [
        c.revision for c in everything if c.entry.namespace == "a" and c.revision > 4
    ]
    even = await next_batch(subscriptions[2])
    assert [c.revision for c in even] == sorted({c.revision for c in even})
    assert even[-1].entry.name == "meanwhile"
    assert subscriptions[0].progress == 32


async def test_history_that_is_compacted_away_is_expired(
    pods: Collection, write: Writer, store: MemoryStore, cache: Cache
) -> None:
    keep(cache, at_most=10)
    for i in range(130):
        await write.put("a", f"p{i}")
    await store.compact(120)
    with pytest.raises(Expired, match=r"^too old resource version: 5 \(120\)$") as expired:
        await pods.subscribe(5)
    assert expired.value.http_code == 410
    assert pods.watchers == 0
    assert len((await pods.subscribe(121)).drain()) == 9


async def test_a_watcher_that_gives_up_while_it_waits_for_history_leaves_nothing_behind(
    pods: Collection, write: Writer, store: MemoryStore, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(cache, at_most=2)
    for i in range(10):
        await write.put("a", f"p{i}")
    requested = asyncio.Event()

    async def never(*arguments: Any, **options: Any) -> list[Event]:
        requested.set()
        await asyncio.Event().wait()
        return []

    monkeypatch.setattr(store, "history", never)
    starting = asyncio.ensure_future(pods.subscribe(1))
    await requested.wait()
    assert pods.watchers == 1
    starting.cancel()
    await asyncio.gather(starting, return_exceptions=True)
    assert pods.watchers == 0


async def test_a_store_that_cannot_be_read_fails_the_watch_that_needs_it(
    pods: Collection, write: Writer, store: MemoryStore, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(cache, at_most=2)
    for i in range(10):
        await write.put("a", f"p{i}")

    async def fail(*arguments: Any, **options: Any) -> list[Event]:
        raise StoreUnavailable("no route")

    monkeypatch.setattr(store, "history", fail)
    with pytest.raises(ServiceUnavailable, match="no route"):
        await pods.subscribe(1)
    assert pods.watchers == 0


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
    assert cache.revision == 21
    subscription = await pods.subscribe(7)
    write.store = store
    await write.put("a", "new")
    assert [c.revision for c in await next_batch(subscription)] == list(range(8, 23))
    assert [e.raw for e in pods.list()] == [entry_of(*s).raw for s in (await store.range("core/pods/")).items]
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
        expected = [entry_of(*s).raw for s in (await store.range(prefix)).items]
        assert [e.raw for e in cache.collection(resource).list()] == expected
    assert len((await cache.collection(PODS).subscribe(75)).drain()) == 2
    with pytest.raises(Expired, match=r"too old resource version: 74 \(75\)"):
        await cache.collection(PODS).subscribe(74)
    await cache.stop()


async def test_what_is_loaded_is_squeezed_on_the_way(store: MemoryStore, clock: FakeClock) -> None:
    write = Writer(store)
    for number in range(3_000):
        await write.put("a", f"p{number:04d}", text="x" * 2_000)
    cache = Cache(store, clock)
    entries = await cache._read(store.revision)
    whole = [entry for entry in entries if entry._sample == b""]
    assert 2_000 < len(whole) < 2_100, "but for those that came last"
    assert [entry.raw for entry in entries] == [entry_of(*stored).raw for stored in (await store.range("core/")).items]


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


# The law behind all of it


class View:
    """What a client knows from one list and the watch after it."""

    subscription: Subscription

    def __init__(self, collection: Collection, namespace: str, matches: Callable[[Entry], bool] | None) -> None:
        self.namespace = namespace
        self.matches = matches
        self.items = {e.key: e.raw for e in collection.list(namespace) if matches is None or matches(e)}
        self.revision = collection.revision

    async def watch(self, collection: Collection) -> View:
        self.subscription = await collection.subscribe(self.revision, namespace=self.namespace, matches=self.matches)
        return self

    def take(self, changes: list[Change]) -> None:
        for change in changes:
            assert change.revision > self.revision
            self.revision = change.revision
            known = change.entry.key in self.items
            assert known == (change.type != "ADDED"), change
            if change.type == "DELETED":
                del self.items[change.entry.key]
            else:
                self.items[change.entry.key] = change.entry.raw

    def assert_equals(self, collection: Collection) -> None:
        entries = collection.list(self.namespace)
        assert self.items == {e.key: e.raw for e in entries if self.matches is None or self.matches(e)}


_steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from("ab"), st.sampled_from("xyz"), st.sampled_from("12")),
        st.tuples(st.just("delete"), st.sampled_from("ab"), st.sampled_from("xyz")),
        st.tuples(st.just("watch"), st.sampled_from(["", "a"]), st.sampled_from(["", "1"])),
        st.tuples(st.just("read"), st.integers(0, 9)),
        st.tuples(st.just("resume"), st.integers(0, 9)),
        st.tuples(st.just("compact")),
        st.tuples(st.just("restart")),
    ),
    max_size=60,
)


class Run:
    """One random history over one store, with watchers that come, read, resume and outlive restarts of the server."""

    def __init__(self, store: Any, reopen: Callable[[], Any]) -> None:
        self.store = store
        self.reopen = reopen
        self.write = Writer(store)
        self.views: list[View] = []
        self.cache = Cache(store, FakeClock(), _SHORT)

    @property
    def pods(self) -> Collection:
        return self.cache.collection(PODS)

    async def put(self, namespace: str, name: str, value: str) -> None:
        await self.write.put(namespace, name, l=value)

    async def delete(self, namespace: str, name: str) -> None:
        if (namespace, name) in self.write.revisions:
            await self.write.delete(namespace, name)

    async def watch(self, namespace: str, value: str) -> None:
        view = View(self.pods, namespace, labelled("l", value) if value else None)
        self.views.append(await view.watch(self.pods))

    async def read(self, number: int) -> None:
        if number < len(self.views):
            view = self.views[number]
            view.take(view.subscription.drain())

    async def resume(self, number: int) -> None:
        """The client reconnects from the last revision it saw; if that is too old it lists again."""
        if number < len(self.views):
            view = self.views[number]
            view.subscription.close()
            try:
                await view.watch(self.pods)
            except Expired:
                assert view.revision < self.store._compacted
                view = self.views[number] = View(self.pods, view.namespace, view.matches)
                await view.watch(self.pods)
            view.take(view.subscription.drain())

    async def compact(self) -> None:
        await self.store.compact(self.store.revision - 3)

    async def restart(self) -> None:
        await self.cache.stop()
        self.store = self.write.store = await self.reopen()
        self.cache = Cache(self.store, FakeClock(), _SHORT)
        await self.cache.start()
        for number in range(len(self.views)):
            await self.resume(number)

    async def go(self, steps: list[tuple[Any, ...]]) -> None:
        await self.cache.start()
        for step, *arguments in steps:
            await getattr(self, step)(*arguments)
        for number in range(len(self.views)):
            await self.read(number)
            self.views[number].assert_equals(self.pods)
        state = [entry_of(*s).raw for s in (await self.store.range("core/pods/")).items]
        assert [e.raw for e in self.pods.list()] == state
        await self.cache.stop()


@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(steps=_steps)
def test_a_list_and_the_watch_after_it_always_give_the_final_state_in_memory(
    steps: list[tuple[Any, ...]],
) -> None:
    async def run() -> None:
        store = MemoryStore()

        async def reopen() -> MemoryStore:
            return store

        await Run(store, reopen).go(steps)

    asyncio.run(run())


@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(steps=_steps)
def test_a_list_and_the_watch_after_it_always_give_the_final_state_on_disk(
    steps: list[tuple[Any, ...]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("store") / "s.db"

    async def run() -> None:
        async def reopen() -> SqliteStore:
            await stores[-1].close()
            stores.append(SqliteStore(path))
            await stores[-1].open()
            return stores[-1]

        stores = [SqliteStore(path)]
        await stores[0].open()
        await Run(stores[0], reopen).go(steps)
        await stores[-1].close()

    asyncio.run(run())


async def test_a_value_that_is_no_object_is_named_by_its_key() -> None:
    store = MemoryStore()
    await store.write("core/configmaps/default/bad", b"rubbish", expected=0)
    with pytest.raises(StoreDamaged, match="core/configmaps/default/bad at revision 1 is no object"):
        await Cache(store, FakeClock()).start()
