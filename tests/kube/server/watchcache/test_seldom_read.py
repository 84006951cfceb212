"""Resources of which a server on a local store has objects in memory only while somebody reads them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from karmada.kube.objects.clock import FakeClock
from karmada.kube.server.storage.memory import MemoryStore
from karmada.kube.server.watchcache.cache import Cache
from karmada.kube.server.watchcache.collection import Collection
from tests.kube.server.watchcache.cached_stores import NODES, PODS, Writer, names, next_batch, seen

LONG_ENOUGH = 6 * 60


@pytest.fixture
async def write() -> Writer:
    return Writer(MemoryStore())


@pytest.fixture
async def cache(write: Writer, clock: FakeClock) -> AsyncIterator[Cache]:
    await write.put("ns", "a")
    await write.put("ns", "b")
    cache = Cache(write.store, clock, seldom_read=lambda resource: resource == PODS)
    await cache.start()
    yield cache
    await cache.stop()


@pytest.fixture
def pods(cache: Cache) -> Collection:
    return cache.collection(PODS)


async def test_they_are_not_loaded_until_they_are_listed(pods: Collection, write: Writer) -> None:
    await write.put("ns", "c")
    assert pods.unloaded is not None
    found = pods.get("ns", "c")
    assert found is not None
    assert found.name == "c"
    assert (pods.has_any("ns"), pods.has_any("other")) == (True, False)
    assert pods.unloaded is not None
    await pods.loaded()
    assert names(pods.list("ns")) == ["ns/a", "ns/b", "ns/c"]
    assert pods.unloaded is None


async def test_they_are_given_up_when_nobody_reads_them_any_more(
    pods: Collection, write: Writer, clock: FakeClock
) -> None:
    await pods.loaded()
    await clock.advance(LONG_ENOUGH / 2)
    await pods.loaded()
    await clock.advance(LONG_ENOUGH / 2)
    assert pods.unloaded is None, "read three minutes ago"
    await clock.advance(LONG_ENOUGH)
    assert pods.unloaded is not None
    position = pods.revision
    await write.put("ns", "c")
    await pods.loaded()
    assert names(pods.list("ns")) == ["ns/a", "ns/b", "ns/c"]
    assert seen(await next_batch(await pods.subscribe(position))) == [("ADDED", "c", 3)]


async def test_a_watcher_keeps_them(pods: Collection, write: Writer, clock: FakeClock) -> None:
    watching = await pods.subscribe()
    await clock.advance(LONG_ENOUGH)
    assert pods.unloaded is None
    await write.put("ns", "c")
    assert seen(await next_batch(watching)) == [("ADDED", "c", 3)]
    watching.close()
    await clock.advance(LONG_ENOUGH)
    assert pods.unloaded is not None


async def test_other_resources_stay(cache: Cache, clock: FakeClock) -> None:
    await Writer(cache.store, NODES).put("", "n")
    await clock.advance(LONG_ENOUGH)
    assert cache.collection(NODES).count == 1
