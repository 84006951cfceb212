"""Resources that are loaded when they are needed: exact for readers, writers and watchers before, during and after."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import Expired, ServiceUnavailable
from karmada.kube.server.storage.interface import StoreDamaged
from karmada.kube.server.storage.memory import MemoryStore
from karmada.kube.server.storage.sqlite import SqliteStore
from karmada.kube.server.watchcache import unloaded
from karmada.kube.server.watchcache.cache import Cache
from karmada.kube.server.watchcache.collection import Collection
from tests.kube.server.watchcache.cached_stores import NODES, PODS, Writer, names, next_batch, seen


@pytest.fixture(autouse=True)
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unloaded, "_STEP", 1)


@pytest.fixture
async def store(write: Writer) -> MemoryStore:
    return write.store  # type: ignore[return-value]


@pytest.fixture
async def write() -> Writer:
    """With five pods, in a store that a server has left."""
    write = Writer(MemoryStore())
    for name in "abcde":
        await write.put("ns", name, at="start")
    return write


@pytest.fixture
async def cache(store: MemoryStore) -> AsyncIterator[Cache]:
    cache = Cache(store, FakeClock(), small=1)
    await cache.start()
    yield cache
    await cache.stop()


@pytest.fixture
def pods(cache: Cache) -> Collection:
    found = cache.collection(PODS)
    assert found.unloaded is not None
    return found


def step(pods: Collection) -> None:
    assert pods.unloaded is not None
    assert pods.unloaded._step()


async def test_what_is_small_is_loaded_at_the_start(store: MemoryStore) -> None:
    await Writer(store, NODES).put("", "n")
    cache = Cache(store, FakeClock(), small=1)
    await cache.start()
    assert cache.collection(NODES).unloaded is None
    assert cache.collection(NODES).count == 1
    await cache.stop()


async def test_one_object_is_read_without_loading_all(pods: Collection) -> None:
    found = pods.get("ns", "b")
    assert found is not None
    assert found.object()["metadata"]["resourceVersion"] == "2"
    assert pods.get("ns", "x") is None
    assert pods.unloaded is not None


async def test_a_write_before_the_load_is_read_and_listed(cache: Cache, pods: Collection, write: Writer) -> None:
    revision = await write.put("ns", "b", at="later")
    found = pods.get("ns", "b")
    assert found is not None
    assert (found.revision, cache.revision, pods.changed) == (revision,) * 3
    assert found.labels == {"at": "later"}
    await pods.loaded()
    loaded = pods.get("ns", "b")
    assert loaded is not None
    assert loaded.raw == found.raw
    assert names(pods.list()) == [f"ns/{name}" for name in "abcde"]


async def test_writes_during_the_load_are_in_the_list(pods: Collection, write: Writer) -> None:
    step(pods)
    await write.put("ns", "a", at="later")  # loaded already
    await write.put("ns", "aa")  # behind what is loaded
    await write.delete("ns", "b")
    await write.delete("ns", "e")
    await write.put("ns", "e", at="again")
    step(pods)
    await write.put("ns", "f")
    assert pods.get("ns", "b") is None
    assert names(pods.list()) == [f"ns/{name}" for name in ("a", "aa", "c", "d", "e", "f")]
    assert (pods.count, pods.unloaded) == (6, None)
    assert {entry.name: dict(entry.labels) for entry in pods.list() if entry.name in "ae"} == {
        "a": {"at": "later"},
        "e": {"at": "again"},
    }


async def test_a_list_waits_for_the_load_and_all_who_wait_share_it(pods: Collection, write: Writer) -> None:
    waiting = [asyncio.create_task(pods.loaded()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert pods.unloaded is None
    assert pods.count == 5


async def test_a_watch_from_before_the_start_gets_everything_since(pods: Collection, write: Writer) -> None:
    await write.put("ns", "b", at="later")
    subscription = await pods.subscribe(3)
    await write.delete("ns", "a")
    assert seen(await next_batch(subscription)) == [
        ("ADDED", "d", 4),
        ("ADDED", "e", 5),
        ("MODIFIED", "b", 6),
        ("DELETED", "a", 7),
    ]


async def test_a_watch_from_before_what_is_compacted_is_expired(pods: Collection, store: MemoryStore) -> None:
    await store.compact(4)
    with pytest.raises(Expired, match="too old resource version: 3"):
        await pods.subscribe(3)


async def test_a_load_begins_again_when_its_revision_is_compacted(
    pods: Collection, write: Writer, store: MemoryStore
) -> None:
    step(pods)
    await write.delete("ns", "a")
    await write.put("ns", "f")
    await store.compact(store.revision)
    await pods.loaded()
    assert names(pods.list()) == [f"ns/{name}" for name in "bcdef"]
    assert pods.count == 5


async def test_changes_of_what_is_not_loaded_are_unknown(pods: Collection, write: Writer) -> None:
    assert pods.changes_since(5) is None
    await write.put("ns", "b", at="later")
    await pods.loaded()
    assert pods.changes_since(5) is None
    assert pods.changes_since(6) == []


async def test_a_store_that_cannot_be_read_is_tried_again(
    pods: Collection, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    step(pods)

    def damaged(*_: object, **__: object) -> None:
        raise StoreDamaged("the value of core/pods/ns/c is not what was written")

    with monkeypatch.context() as broken:
        broken.setattr(store, "scan", damaged)
        with pytest.raises(ServiceUnavailable, match=r"core/pods/ns/c is not what was written"):
            await pods.loaded()
    assert pods.unloaded is not None
    assert pods.unloaded.damage is not None
    await pods.loaded()
    assert pods.unloaded is None
    assert pods.count == 5


async def test_a_damaged_value_makes_the_server_unhealthy_when_it_is_found(cache: Cache, pods: Collection) -> None:
    assert cache.alive
    assert pods.unloaded is not None
    pods.unloaded.damage = StoreDamaged("a value")
    assert not cache.alive


_KILLED = """
import asyncio, os, signal, sys
from karmada.kube.objects.clock import RealClock
from karmada.kube.server.storage.sqlite import SqliteStore
from karmada.kube.server.watchcache import unloaded
from karmada.kube.server.watchcache.cache import Cache
from tests.kube.server.watchcache.cached_stores import PODS, Writer

async def main():
    unloaded._STEP = 1
    store = SqliteStore(sys.argv[1])
    await store.open()
    cache = Cache(store, RealClock(), small=1)
    await cache.start()
    pods = cache.collection(PODS)
    assert pods.unloaded._step()
    await Writer(store).put("ns", "written-during-the-load")
    assert pods.unloaded._step()
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


async def test_what_was_written_during_a_load_survives_the_end_of_the_process(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    store = SqliteStore(path)
    await store.open()
    write = Writer(store)
    for name in "abcde":
        await write.put("ns", name, text="x" * 2_000)
    await store.close()
    root = Path(__file__).parents[4]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _KILLED, str(path), cwd=root, env={**os.environ, "PYTHONPATH": str(root)}
    )
    assert await process.wait() == -signal.SIGKILL
    store = SqliteStore(path)
    await store.open()
    cache = Cache(store, FakeClock(), small=1)
    await cache.start()
    pods = cache.collection(PODS)
    assert pods.unloaded is not None
    await pods.loaded()
    assert names(pods.list()) == [f"ns/{name}" for name in (*"abcde", "written-during-the-load")]
    packed = pods.get("ns", "a")
    assert packed is not None
    assert packed.object()["metadata"] == {
        "name": "a", "namespace": "ns", "labels": {"text": "x" * 2_000}, "resourceVersion": "1"
    }  # fmt: skip
    assert packed.size < 500, "as it is stored"
    await cache.stop()
    await store.close()
