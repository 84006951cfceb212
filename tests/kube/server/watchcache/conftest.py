"""A watch cache over a store in memory, and what writes to it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from karmada.kube.objects.clock import FakeClock
from karmada.kube.server.storage.memory import MemoryStore
from karmada.kube.server.watchcache.cache import Cache
from karmada.kube.server.watchcache.collection import Collection
from tests.kube.server.watchcache.cached_stores import PODS, Writer


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
