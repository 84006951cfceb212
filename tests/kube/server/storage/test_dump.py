"""A copy of a store goes into any other store and comes out the same."""

from __future__ import annotations

import gzip
import stat
from pathlib import Path

import pytest

from karmada.kube.server.storage import dump
from karmada.kube.server.storage.interface import Store
from karmada.kube.server.storage.memory import MemoryStore
from karmada.kube.server.storage.sqlite import SqliteStore
from karmada.kube.server.storage.sqlite_reader import SqliteReader


async def filled(store: Store, count: int) -> Store:
    await store.open()
    for number in range(count):
        text = f'{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"c{number}","uid":"u-{number}"}}}}'
        await store.write(f"core/configmaps/default/c{number:05d}", text.encode(), expected=0)
    return store


async def content(store: Store) -> dict[str, bytes]:
    return {stored.key: stored.value for stored in (await store.range("")).items}


async def test_objects_come_back_byte_for_byte(tmp_path: Path) -> None:
    source = await filled(MemoryStore(), 2500)
    assert await dump.back_up(source, tmp_path / "copy") == 2500
    target = SqliteStore(tmp_path / "state.db")
    await target.open()
    assert await dump.restore(target, tmp_path / "copy") == 2500
    assert await content(target) == await content(source)
    await target.close()


async def test_a_copy_is_private_and_never_overwrites(tmp_path: Path) -> None:
    source = await filled(MemoryStore(), 3)
    await dump.back_up(source, tmp_path / "copy")
    assert stat.S_IMODE((tmp_path / "copy").stat().st_mode) == 0o600
    with pytest.raises(FileExistsError):
        await dump.back_up(source, tmp_path / "copy")


async def test_a_store_in_use_is_copied_as_it_was_when_the_copy_began(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db")
    await filled(store, 50)
    reader = SqliteReader(tmp_path / "state.db")
    await reader.open()
    before = await content(store)
    await store.write("core/configmaps/default/late", b'{"apiVersion":"v1"}', expected=0)
    page = await reader.range("")
    assert {item.key: item.value for item in page.items} == before
    await reader.close()
    await store.close()


async def test_a_store_that_is_not_empty_is_left_alone(tmp_path: Path) -> None:
    source = await filled(MemoryStore(), 3)
    await dump.back_up(source, tmp_path / "copy")
    with pytest.raises(dump.BadDump, match="not empty"):
        await dump.restore(source, tmp_path / "copy")


@pytest.mark.parametrize("damage", ["cut", "header", "lines", "nonsense"])
async def test_a_damaged_copy_is_refused_and_nothing_is_written(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "copy"
    await dump.back_up(await filled(MemoryStore(), 20), path)
    whole = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    damaged = {
        "cut": path.read_bytes()[:-20],
        "header": gzip.compress(b'{"format":"other","version":1,"revision":1}\n' + b"".join(whole[1:])),
        "lines": gzip.compress(b"".join([*whole[:5], *whole[6:]])),
        "nonsense": b"hello",
    }
    path.write_bytes(damaged[damage])
    target = MemoryStore()
    await target.open()
    with pytest.raises(dump.BadDump):
        await dump.restore(target, path)
    assert (await target.range("")).items == []


async def test_an_empty_store_has_an_empty_copy(tmp_path: Path) -> None:
    source = MemoryStore()
    await source.open()
    assert await dump.back_up(source, tmp_path / "copy") == 0
    target = MemoryStore()
    await target.open()
    assert await dump.restore(target, tmp_path / "copy") == 0
