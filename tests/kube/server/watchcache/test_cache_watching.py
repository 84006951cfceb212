"""Watches of the watch cache, and its history: they miss and repeat nothing."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest

from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.doc import Doc
from karmada.kube.objects.errors import Expired, ServiceUnavailable
from karmada.kube.server.storage.interface import Event, StoreUnavailable
from karmada.kube.server.storage.memory import MemoryStore
from karmada.kube.server.watchcache import collection as collection_module
from karmada.kube.server.watchcache import subscription as subscription_module
from karmada.kube.server.watchcache.cache import Cache
from karmada.kube.server.watchcache.collection import Collection, History
from tests.kube.server.watchcache.cached_stores import LEASES, NODES, Writer, labelled, next_batch, seen

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
    def broken(entry: Doc) -> bool:
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
        def matches(self, entry: Doc) -> bool:
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


def keep(cache: Cache, **limits: int) -> None:
    cache._keep = cache._keep._replace(**limits)
    for collection in cache._collections.values():
        collection._recent._keep = cache._keep


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
    assert pods._recent._bytes <= 20_000


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
