"""A SQLite store that is not what was acknowledged is refused, with the file, the key and the way out."""

from __future__ import annotations

import os
import shutil
import sqlite3
from base64 import b85encode
from contextlib import closing
from pathlib import Path

import pytest

from karmada.kube.server.storage.interface import Compacted, Store, StoreDamaged
from karmada.kube.server.storage.sqlite import SqliteStore
from karmada.kube.server.storage.sqlite_check import examine
from karmada.kube.server.storage.sqlite_files import read_acknowledged
from karmada.kube.server.storage.sqlite_reader import SqliteReader

_FORMAT_1 = """
PRAGMA journal_mode = WAL;
CREATE TABLE log (rev INTEGER PRIMARY KEY, key TEXT NOT NULL, live INTEGER NOT NULL, prev INTEGER NOT NULL, value BLOB);
CREATE INDEX log_by_key ON log (key, rev, live);
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
INSERT INTO meta VALUES ('compacted', 0), ('swept', 0);
PRAGMA user_version = 1;
"""


async def opened(path: Path, *, accept_loss: bool = False) -> SqliteStore:
    store = SqliteStore(path, accept_loss=accept_loss)
    await store.open()
    return store


async def fill(store: Store, count: int, start: int = 0) -> None:
    """With values that are stored as they are: nothing is gained by packing them."""
    for number in range(start, start + count):
        text = b85encode(os.urandom(1600))
        await store.write(f"k/{number:04}", b'{"number":%d,"text":"%b"}' % (number, text), expected=0)


async def killed(store: SqliteStore, path: Path) -> Path:
    """The files as a killed process leaves them, under another name."""
    copy = path.with_name("killed") / path.name
    copy.parent.mkdir()
    for file in path.parent.glob(f"{path.name}*"):
        if file.is_file() and not file.name.endswith((".lock", "-shm")):
            shutil.copy(file, copy.parent)
    await store.close()
    return copy


def content(path: Path) -> bytes:
    return path.read_bytes()


def overwrite(path: Path, at: int, data: bytes) -> bytes:
    """Change it there (negative: so far from its end); returns what it holds then."""
    with path.open("r+b") as file:
        file.seek(at, os.SEEK_SET if at >= 0 else os.SEEK_END)
        file.write(data)
    return path.read_bytes()


async def read_all(path: Path) -> None:
    store = await opened(path)
    try:
        await store.range("")
    finally:
        await store.close()


async def of_format_1(path: Path, rows: list[tuple[str, bytes]]) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.executescript(_FORMAT_1)
        for rev, (key, value) in enumerate(rows, 1):
            db.execute("INSERT INTO log VALUES (?, ?, 1, 0, ?)", (rev, key, value))


async def test_a_wal_whose_end_is_damaged_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    store = await opened(tmp_path / "s.db")
    await fill(store, 30)
    path = await killed(store, tmp_path / "s.db")
    before = overwrite(Path(f"{path}-wal"), -60_000, b"damage" * 10)
    for _ in range(2):
        with pytest.raises(
            StoreDamaged, match=r"s\.db is damaged: it ends at revision \d+, but revision 30 was"
        ) as info:
            await opened(path)
        assert "karmadactl restore" in str(info.value)
        assert "--accept-loss" in str(info.value)
    assert content(Path(f"{path}-wal")) == before


async def test_a_wal_that_is_gone_is_refused(tmp_path: Path) -> None:
    store = await opened(tmp_path / "s.db")
    await fill(store, 3)
    path = await killed(store, tmp_path / "s.db")
    os.unlink(f"{path}-wal")
    with pytest.raises(StoreDamaged, match="revision 3 was acknowledged"):
        await opened(path)


async def test_a_killed_process_leaves_nothing_that_looks_like_damage(tmp_path: Path) -> None:
    store = await opened(tmp_path / "s.db")
    await fill(store, 30)
    path = await killed(store, tmp_path / "s.db")
    assert read_acknowledged(path) == 30
    store = await opened(path)
    assert len((await store.range("")).items) == 30
    await store.close()


async def test_an_accepted_loss_keeps_what_is_whole_and_the_damaged_files(tmp_path: Path) -> None:
    store = await opened(tmp_path / "s.db")
    await fill(store, 30)
    path = await killed(store, tmp_path / "s.db")
    os.truncate(f"{path}-wal", 60_000)
    store = await opened(path, accept_loss=True)
    kept = [item.key for item in (await store.range("")).items]
    assert kept == [f"k/{number:04}" for number in range(len(kept))]
    assert 0 < len(kept) < 30
    assert store.revision > 30, "a revision that clients know would be given again"
    with pytest.raises(Compacted):
        await store.history("", since=30, until=31)
    assert await store.write("k/next", b"{}", expected=0) == store.revision
    await store.close()
    assert len(content(Path(f"{path}.damaged-1-wal"))) == 60_000
    await (await opened(path)).close()


async def test_every_flipped_byte_of_a_value_is_found_by_its_reader(tmp_path: Path) -> None:
    store = await opened(tmp_path / "s.db")
    await fill(store, 30)
    await store.close()
    at = content(tmp_path / "s.db").index(b'{"number":17,') + 700
    overwrite(tmp_path / "s.db", at, b"\0")
    store = await opened(tmp_path / "s.db")
    with pytest.raises(StoreDamaged, match=r"s\.db is damaged: the value of k/0017 at revision 18"):
        await store.range("")
    with pytest.raises(StoreDamaged, match="k/0017"):
        await store.get("k/0017")
    with pytest.raises(StoreDamaged, match="k/0017"):
        await store.history("", since=0, until=30)
    assert (await store.get("k/0016")) is not None
    await store.close()
    assert examine(tmp_path / "s.db", 30, rows=True) == ["the value of k/0017 at revision 18 is not what was written"]
    store = await opened(tmp_path / "s.db", accept_loss=True)
    assert len((await store.range("")).items) == 29
    await store.close()


@pytest.mark.parametrize("page", range(1, 12))
async def test_a_page_of_rubbish_is_never_served(tmp_path: Path, page: int) -> None:
    """Wherever it is: the store is refused, or whoever reads is; an accepted loss serves only what was written."""
    path = tmp_path / "s.db"
    store = await opened(path)
    await fill(store, 40)
    written = {item.key: item.value for item in (await store.range("")).items}
    await store.close()
    overwrite(path, page * 4096, os.urandom(4096))
    with pytest.raises(StoreDamaged, match=r"s\.db is damaged"):
        await read_all(path)
    store = await opened(path, accept_loss=True)
    kept = {item.key: item.value for item in (await store.range("")).items}
    assert kept.items() <= written.items()
    await store.close()


async def test_a_database_that_was_emptied_is_refused(tmp_path: Path) -> None:
    store = await opened(tmp_path / "s.db")
    await fill(store, 3)
    await store.close()
    (tmp_path / "s.db").unlink()
    with pytest.raises(StoreDamaged, match="it is empty, but revision 3 was acknowledged"):
        await opened(tmp_path / "s.db")
    store = await opened(tmp_path / "s.db", accept_loss=True)
    assert store.revision >= 4
    await store.close()


async def test_a_store_without_checksums_opens_and_gets_them_with_the_next_compaction(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    await of_format_1(path, [(f"k/{number:04}", b'{"n":%d}' % number) for number in range(300)])
    reader = SqliteReader(path)
    await reader.open()
    assert len((await reader.range("")).items) == 300
    await reader.close()
    store = await opened(path)
    assert len((await store.range("")).items) == 300
    assert await store.write("k/0000", b'{"n":-1}', expected=1) > 300
    await store.compact(1)
    assert store._db.execute("SELECT count(*) FROM log WHERE sum IS NULL").fetchone() == (0,)
    await store.close()
    assert examine(path, read_acknowledged(path), rows=True) == []


async def test_a_value_that_is_no_json_in_a_store_without_checksums_is_named(tmp_path: Path) -> None:
    await of_format_1(tmp_path / "s.db", [("k/good", b"{}"), ("k/bad", b'{"half')])
    store = await opened(tmp_path / "s.db")
    with pytest.raises(StoreDamaged, match=r"s\.db is damaged: the value of k/bad at revision 2"):
        await store.range("")
    await store.close()
    store = await opened(tmp_path / "s.db", accept_loss=True)
    assert [item.key for item in (await store.range("")).items] == ["k/good"]
    await store.close()


async def test_a_store_in_use_is_checked_without_disturbing_it(tmp_path: Path) -> None:
    store = await opened(tmp_path / "s.db")
    await fill(store, 20)
    acknowledged = read_acknowledged(tmp_path / "s.db")
    await fill(store, 20, start=20)
    assert examine(tmp_path / "s.db", acknowledged, rows=True) == []
    await fill(store, 5, start=40)
    await store.close()
