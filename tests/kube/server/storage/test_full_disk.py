"""On a full disk deletions, compaction and a restart work; other writes are refused until there is space again."""

from __future__ import annotations

import asyncio
import itertools
import os
import subprocess
from base64 import b85encode
from collections.abc import Iterator
from pathlib import Path

import pytest

from karmada.kube.client.client import Client
from karmada.kube.objects.clock import RealClock
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvrs import CONFIG_MAPS
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig
from karmada.kube.server.storage import sqlite, sqlite_space
from karmada.kube.server.storage.interface import StoreFull
from karmada.kube.server.storage.sqlite import SqliteStore
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.ports import free_port


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 120 MB of its own."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=120m", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting a small file system needs root")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_space, "_RECHECK_SECONDS", 0.02)


@pytest.fixture
def unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random bytes do not get smaller, and finding that out takes longer than writing them."""
    monkeypatch.setattr(sqlite, "pack", lambda value: value)


def fill(disk: Path) -> Path:
    """Somebody else takes every byte that is left."""
    file = disk / "others"
    with file.open("ab", buffering=0) as out:
        for size in (1 << 16, 1 << 12):
            try:
                while True:
                    out.write(bytes(size))
            except OSError:
                continue
    return file


async def opened(path: Path) -> SqliteStore:
    store = SqliteStore(path)
    await store.open()
    return store


async def write_on(store: SqliteStore, prefix: str, size: int) -> None:
    """Until it is refused."""
    for number in itertools.count():
        await store.write(f"{prefix}/{number:05}", b"{" + os.urandom(size), expected=0)


async def create_on(client: Client) -> None:
    """Until it is refused."""
    for number in itertools.count():
        await client.create(CONFIG_MAPS, config_map(f"c{number}", 100_000), namespace="default")


async def test_with_the_limit_reached_only_deletions_are_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a disk of its own: the limit of the file stands for the disk, and rises when the reserve is released."""
    store = await opened(tmp_path / "s.db")
    first = await store.write("first", b"", expected=0)
    pages = store._db.execute("PRAGMA page_count").fetchone()[0]
    store._db.execute(f"PRAGMA max_page_count = {pages + 1}")
    exceed = sqlite_space.Space.exceed

    def give(space: sqlite_space.Space, why: str) -> None:
        store._db.execute(f"PRAGMA max_page_count = {pages + 20}")
        exceed(space, why)

    monkeypatch.setattr(sqlite_space.Space, "exceed", give)
    results = await asyncio.gather(
        *(store.write(f"k{i}", os.urandom(20_000), expected=0) for i in range(5)),
        store.write("first", None, expected=first),
        return_exceptions=True,
    )
    assert all(isinstance(r, StoreFull) and "database space exceeded" in str(r) for r in results[:5]), results
    assert results[5] == 2
    assert isinstance(store.last_error, StoreFull)
    with pytest.raises(StoreFull):
        await store.write("k", b"", expected=0)
    await store.compact(2)
    store._db.execute("PRAGMA max_page_count = 100000")
    await eventually(lambda: store.healthy)
    assert await store.write("k0", b"", expected=0) == 3
    await store.close()


async def test_a_full_disk_leaves_deletions_compaction_and_a_restart(small_disk: Path) -> None:
    path = small_disk / "s.db"
    store = await opened(path)
    for number in range(1500):
        await store.write(f"k/{number:04}", bytes(4000), expected=0)
    others = fill(small_disk)
    with pytest.raises(StoreFull, match=r"s\.db: database space exceeded"):
        await write_on(store, "l", 4000)
    kept = (await store.range("")).items
    for stored in kept[:500]:
        await store.write(stored.key, None, expected=stored.revision)
    await store.compact(store.revision)
    revision = store.revision
    fill(small_disk)
    await store.close()
    fill(small_disk)

    store = await opened(path)
    assert store.revision > revision
    assert len((await store.range("")).items) == len(kept) - 500
    await store.write(kept[-1].key, None, expected=kept[-1].revision)
    with pytest.raises(StoreFull):
        await store.write("k/more", bytes(4000), expected=0)
    others.unlink()
    await eventually(lambda: store.healthy)
    await store.write("k/more", bytes(4000), expected=0)
    await store.close()


@cases(
    (b'{"metadata":{"name":"a"}}', b'{"metadata":{"name":"a"},"data":{}}', True),
    (b'{"metadata":{"name":"a"},"data":{}}', b'{"metadata":{"name":"a"}}', False),
    (b'{"metadata":{"name":"b"}}', b'{"metadata":{"name":"a"}}', False),
    (b'{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"}}', b'{"metadata":{}}', True),
    (b'{"metadata":{},"data":{"deletionTimestamp":"no"}}', b'{"metadata":{}}', False),
    (b'{"metadata":{"annotations":{"a":"\\"deletionTimestamp\\":\\""}}}', b'{"metadata":{}}', False),
    (b"rubbish", b"", False),
    (b"[]", b"", False),
)
def test_a_write_frees_space_if_it_makes_an_object_smaller_or_leads_to_its_deletion(
    value: bytes, before: bytes, frees: bool
) -> None:
    assert sqlite_space.frees_space(value, before) is frees


async def test_objects_with_finalizers_can_be_deleted_on_a_full_disk(small_disk: Path) -> None:
    server = ApiServer(ServerConfig(data_dir=small_disk / "data", port=0), RealClock())
    await server.start()
    client = server.client()
    held = config_map("held", 10)
    held["metadata"] = {"name": "held", "namespace": "default", "finalizers": ["example.com/hold"]}
    await client.create(CONFIG_MAPS, held, namespace="default")
    await client.create(CONFIG_MAPS, config_map("other", 1000), namespace="default")
    fill(small_disk)
    with pytest.raises(ApiError, match="database space exceeded"):
        await create_on(client)
    await client.delete(CONFIG_MAPS, "held", namespace="default")
    marked = await client.get(CONFIG_MAPS, "held", "default")
    assert "deletionTimestamp" in marked["metadata"]
    other = await client.get(CONFIG_MAPS, "other", "default")
    with pytest.raises(ApiError, match="database space exceeded"):
        await client.update(CONFIG_MAPS, {**other, "data": {"text": "x" * 2000}})
    smaller = await client.update(CONFIG_MAPS, {**other, "data": {}})
    assert "data" not in smaller or not smaller["data"]
    await client.update(CONFIG_MAPS, {**marked, "metadata": {**marked["metadata"], "finalizers": []}})
    with pytest.raises(ApiError, match="not found"):
        await client.get(CONFIG_MAPS, "held", "default")
    await server.stop()


@pytest.mark.usefixtures("unpacked")
async def test_writes_that_lead_to_deletions_leave_space_for_the_deletions(small_disk: Path) -> None:
    """An object that is being deleted and written on and on does not use up the reserve."""
    store = await opened(small_disk / "s.db")
    terminating = b'{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},"pad":"%b"}'
    terminating %= os.urandom(50_000).hex().encode()  # so that it is long in the store, too
    last = await store.write("terminating", terminating, expected=0)
    other = await store.write("other", bytes(1000), expected=0)
    fill(small_disk)
    with pytest.raises(StoreFull):
        await write_on(store, "k", 100_000)
    refused = None
    for writes in range(1000):  # noqa: B007
        try:
            last = await store.write("terminating", terminating, expected=last)
        except StoreFull as error:
            refused = error
            break
    assert refused is not None
    assert writes > 10
    await store.write("other", None, expected=other)
    await store.write("terminating", None, expected=last)
    await store.compact(store.revision)
    await store.close()


@pytest.mark.usefixtures("unpacked")
async def test_free_pages_of_the_database_end_the_alarm_as_well(small_disk: Path) -> None:
    """The file does not shrink: a disk that the database itself has filled never has space for the reserve again."""
    store = await opened(small_disk / "s.db")
    with pytest.raises(StoreFull):
        await write_on(store, "k", 100_000)
    for stored in (await store.range("", limit=store.revision * 3 // 4)).items:
        await store.write(stored.key, None, expected=stored.revision)
    await store.compact(store.revision)
    await eventually(lambda: store.healthy)
    assert not store._space.reserved
    await store.write("k/new", bytes(4000), expected=0)
    with pytest.raises(StoreFull):
        await write_on(store, "again", 100_000)
    [last] = (await store.range("k/new")).items
    await store.write("k/new", None, expected=last.revision)
    await store.close()


async def test_clients_see_kubernetes_error_and_the_alarm_on_readyz_and_in_metrics(small_disk: Path) -> None:
    server = ApiServer(ServerConfig(data_dir=small_disk / "data", port=free_port()), RealClock())
    await server.start()
    client = server.client()
    for name in ("one", "two"):
        await client.create(CONFIG_MAPS, config_map(name, 10), namespace="default")
    fill(small_disk)
    with pytest.raises(ApiError, match="database space exceeded") as info:
        await create_on(client)
    assert info.value.code == 500
    assert server.health.failing("readyz") == ["storage-space"]
    assert server.health.failing("livez") == []
    assert b"apiserver_storage_space_exceeded 1" in server.metrics.expose()[0]
    await client.delete(CONFIG_MAPS, "one", namespace="default")
    await server.stop()
    fill(small_disk)

    server = ApiServer(ServerConfig(data_dir=small_disk / "data", port=server.port), RealClock())
    await server.start()
    assert server.health.failing("readyz") == ["storage-space"]
    await server.client().delete(CONFIG_MAPS, "two", namespace="default")
    await server.stop()


def config_map(name: str, size: int) -> dict[str, object]:
    """Its text cannot be packed to less."""
    metadata = {"name": name, "namespace": "default"}
    text = b85encode(os.urandom(size * 4 // 5)).decode()
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": text}}
