"""What the SQLite store adds: durability, restarts, one owner, and errors of the disk."""

from __future__ import annotations

import asyncio
import errno
import os
import random
import signal
import stat
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from karmada.kube.objects.clock import FakeClock
from karmada.kube.server.storage import sqlite_checkpoints
from karmada.kube.server.storage.interface import (
    Compacted,
    NewerFormat,
    RevisionConflict,
    StoreLocked,
    StoreUnavailable,
)
from karmada.kube.server.storage.maintenance import maintain
from karmada.kube.server.storage.sqlite import SqliteStore
from tests.support.eventually import eventually


async def opened(path: Path) -> SqliteStore:
    store = SqliteStore(path)
    await store.open()
    return store


class HeldSync:
    """Lets a test decide when, and with what result, a sync ends."""

    def __init__(self, store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
        self.waiting: list[Callable[[OSError | None], None]] = []
        monkeypatch.setattr(store._syncer, "sync", self.waiting.append)

    def end(self, error: OSError | None = None) -> None:
        self.waiting.pop(0)(error)


async def test_everything_is_there_after_reopening(tmp_path: Path) -> None:
    store = await opened(tmp_path / "s.db")
    for i in range(10):
        await store.write(f"k/{i}", b"%d" % i, expected=0)
    await store.write("k/3", None, expected=4)
    before = await store.range("")
    await store.close()
    store = await opened(tmp_path / "s.db")
    assert (await store.range("")).items == before.items
    assert [e.revision for e in await store.history("", since=5, until=99)] == [6, 7, 8, 9, 10, 11]
    assert await store.write("k/3", b"", expected=0) > 11
    await store.close()


async def test_revisions_never_go_back_even_if_compaction_left_nothing(tmp_path: Path) -> None:
    store = await opened(tmp_path / "s.db")
    await store.write("k", b"", expected=0)
    await store.write("k", None, expected=1)
    await store.compact(2)
    await store.close()
    store = await opened(tmp_path / "s.db")
    assert store.revision > 2
    assert (await store.range("")).items == []
    with pytest.raises(Compacted):
        await store.history("", since=1, until=2)
    assert await store.write("k", b"", expected=0) > 3
    await store.close()


async def test_an_interrupted_compaction_is_finished_at_the_next_opening(tmp_path: Path) -> None:
    store = await opened(tmp_path / "s.db")
    revision = 0
    for _ in range(500):
        revision = await store.write("k", b"", expected=revision)
    compacting = asyncio.ensure_future(store.compact(revision))
    await asyncio.sleep(0)
    compacting.cancel()
    assert 0 < store._swept < revision
    await store.close()
    store = await opened(tmp_path / "s.db")
    assert store._db.execute("SELECT count(*) FROM log").fetchone() == (1,)
    await store.close()


async def test_files_are_for_the_owner_only(tmp_path: Path) -> None:
    (tmp_path / "s.db").touch(0o644)
    store = await opened(tmp_path / "s.db")
    await store.write("k", b"", expected=0)
    modes = {file: stat.S_IMODE(os.stat(tmp_path / file).st_mode) for file in os.listdir(tmp_path)}
    assert set(modes.values()) == {0o600}, modes
    await store.close()


async def test_a_second_owner_is_refused_by_name(tmp_path: Path) -> None:
    store = await opened(tmp_path / "s.db")
    with pytest.raises(StoreLocked, match=f"s.db is in use by another process .pid {os.getpid()}"):
        await opened(tmp_path / "s.db")
    await store.write("k", b"", expected=0)
    await store.close()
    await (await opened(tmp_path / "s.db")).close()


async def test_a_file_of_another_format_is_refused(tmp_path: Path) -> None:
    store = await opened(tmp_path / "s.db")
    store._db.execute("PRAGMA user_version = 99")
    await store.close()
    with pytest.raises(NewerFormat, match=r"s\.db has format 99, of a later version .* up to 6\. Start the version"):
        await opened(tmp_path / "s.db")
    (tmp_path / "text").write_text("hello, I am not a database" * 100)
    with pytest.raises(StoreUnavailable, match="not a database"):
        await opened(tmp_path / "text")


async def test_nothing_is_visible_before_it_is_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await opened(tmp_path / "s.db")
    sync = HeldSync(store, monkeypatch)
    notified: list[int] = []
    store.listen(lambda events: notified.extend(e.revision for e in events))
    first = asyncio.ensure_future(store.write("k", b"1", expected=0))
    await eventually(lambda: len(sync.waiting) == 1)
    conflicting = asyncio.ensure_future(store.write("k", b"2", expected=0))
    for _ in range(5):
        await asyncio.sleep(0)
    assert (await store.get("k"), (await store.range("")).items, store.revision, notified) == (None, [], 0, [])
    assert not first.done()
    assert not conflicting.done()  # it would report a write that may be lost
    sync.end()
    assert await first == 1
    assert (store.revision, notified) == (1, [1])
    with pytest.raises(RevisionConflict):
        await conflicting
    await store.close()


async def test_writes_that_come_during_a_sync_share_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await opened(tmp_path / "s.db")
    sync = HeldSync(store, monkeypatch)
    writes = []
    for i in range(6):
        writes.append(asyncio.ensure_future(store.write(f"k{i}", b"", expected=0)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert len(sync.waiting) == 1
    sync.end()
    await asyncio.sleep(0)
    assert [w.done() for w in writes] == [True, False, False, False, False, False]
    assert len(sync.waiting) == 1
    sync.end()
    assert await asyncio.gather(*writes) == [1, 2, 3, 4, 5, 6]
    assert not sync.waiting
    await store.close()


async def test_after_a_failed_sync_the_store_refuses_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await opened(tmp_path / "s.db")
    await store.write("before", b"", expected=0)
    sync = HeldSync(store, monkeypatch)
    writes = [asyncio.ensure_future(store.write("a", b"", expected=0))]
    await eventually(lambda: len(sync.waiting) == 1)
    writes.append(asyncio.ensure_future(store.write("b", b"", expected=0)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    sync.end(OSError(errno.EIO, "Input/output error"))
    for write in writes:
        with pytest.raises(StoreUnavailable, match="Input/output error"):
            await write
    with pytest.raises(StoreUnavailable):
        await store.write("c", b"", expected=0)
    assert not store.healthy
    assert "Input/output error" in str(store.last_error)
    assert [s.key for s in (await store.range("")).items] == ["before"]
    await store.close()


async def test_a_foreign_holder_of_one_lock_delays_no_other(tmp_path: Path) -> None:
    import sqlite3

    store = await opened(tmp_path / "s.db")
    other = sqlite3.connect(tmp_path / "s.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert store._db.execute("PRAGMA busy_timeout").fetchone() == (0,), "the driver would stop the loop for so long"
    with pytest.raises(StoreUnavailable, match="locked"):
        await store.write("k", b"", expected=0)
    other.execute("ROLLBACK")
    other.close()
    assert await store.write("k", b"", expected=0) == 1
    await store.close()


async def test_without_its_helper_the_store_syncs_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_checkpoints, "DUE_PAGES", 50)
    store = await opened(tmp_path / "s.db")
    await store.write("k0", b"", expected=0)
    os.kill(store._syncer.pid, signal.SIGSTOP)
    waiting = asyncio.ensure_future(store.write("k1", b"", expected=0))
    await asyncio.sleep(0)
    os.kill(store._syncer.pid, signal.SIGKILL)
    assert await waiting == 2
    results = await asyncio.gather(*(store.write(f"x{i}", bytes(5000), expected=0) for i in range(100)))
    assert results == list(range(3, 103))
    await store.close()
    store = await opened(tmp_path / "s.db")
    assert len((await store.range("")).items) == 102
    await store.close()


async def test_signals_to_the_group_leave_the_helper_to_its_parent(tmp_path: Path) -> None:
    store = await opened(tmp_path / "s.db")
    await store.write("k0", b"", expected=0)  # it is up
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(store._syncer.pid, number)
    await store.write("k1", b"", expected=0)
    assert store._syncer._alive
    pid = store._syncer.pid
    await store.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_checkpoints_keep_the_wal_short_and_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_checkpoints, "DUE_PAGES", 100)
    monkeypatch.setattr(sqlite_checkpoints, "HOLD_PAGES", 300)
    store = await opened(tmp_path / "s.db")

    async def writer(number: int) -> None:
        for i in range(150):
            await store.write(f"k/{number}/{i}", bytes(2000), expected=0)

    await asyncio.gather(*(writer(n) for n in range(16)))
    assert (tmp_path / "s.db-wal").stat().st_size < 2000 * 4096
    assert len((await store.range("k/")).items) == 2400
    await store.close()
    store = await opened(tmp_path / "s.db")
    assert len((await store.range("k/")).items) == 2400
    await store.close()


async def test_closing_waits_for_the_writes_in_flight(tmp_path: Path) -> None:
    store = await opened(tmp_path / "s.db")
    writes = [asyncio.ensure_future(store.write(f"k{i}", b"", expected=0)) for i in range(10)]
    await asyncio.sleep(0)
    await store.close()
    assert sorted(await asyncio.gather(*writes)) == list(range(1, 11))


async def test_writers_go_on_in_order_and_some_in_each_turn_of_the_event_loop(tmp_path: Path) -> None:
    store = await opened(tmp_path / "s.db")
    turn, ended = 0, list[tuple[int, int]]()

    def count_turns() -> None:
        nonlocal turn
        turn += 1
        if len(ended) < 200:
            asyncio.get_running_loop().call_soon(count_turns)

    async def write(number: int) -> None:
        await store.write(f"k/{number}", b"v", expected=0)
        ended.append((number, turn))

    count_turns()
    await asyncio.gather(*map(write, range(200)))
    assert [number for number, _ in ended] == [*range(200)]
    in_turns = Counter(when for _, when in ended)
    assert [*in_turns.values()] == [64, 64, 64, 8]
    await store.close()


async def test_maintenance_forgets_what_is_older_than_five_minutes(tmp_path: Path) -> None:
    store, clock = await opened(tmp_path / "s.db"), FakeClock()
    task = asyncio.create_task(maintain(store, clock))
    await store.write("k", b"1", expected=0)
    await clock.advance(minutes=5)
    assert len(await store.history("", since=0, until=1)) == 1
    await store.write("k", b"2", expected=1)
    await clock.advance(minutes=4)
    assert len(await store.history("", since=0, until=2)) == 2
    await clock.advance(minutes=1)
    await eventually(lambda: store._compacted == 1)
    assert [e.revision for e in await store.history("", since=1, until=2)] == [2]
    with pytest.raises(Compacted):
        await store.history("", since=0, until=2)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await store.close()


async def test_maintenance_outlives_a_failure_of_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, clock = await opened(tmp_path / "s.db"), FakeClock()
    task = asyncio.create_task(maintain(store, clock))
    await asyncio.sleep(0)
    await store.write("k", b"1", expected=0)

    async def fail(revision: int) -> None:
        raise StoreUnavailable("disk on fire")

    with monkeypatch.context() as patched:
        patched.setattr(store, "compact", fail)
        await clock.advance(minutes=5)
    await clock.advance(minutes=5)
    await eventually(lambda: store._compacted == 1)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await store.close()


_WRITER = """
import asyncio, os, sys
from karmada.kube.server.storage import sqlite, sqlite_checkpoints
sqlite_checkpoints.DUE_PAGES = 300
async def main():
    store = sqlite.SqliteStore(sys.argv[1])
    await store.open()
    async def writer(number):
        last, i = 0, 0
        while True:
            i += 1
            key = f"k/{number}/{i // 3}"
            if i % 3 == 0:
                last = 0
            last = await store.write(key, b"%d" % i + bytes(2000), expected=last)
            os.write(1, f"{key} {i} {last}\\n".encode())
    await asyncio.gather(*(writer(n) for n in range(16)))
asyncio.run(main())
"""


def _write_until_killed(path: Path, prefix: str, seconds: float) -> list[tuple[str, int, int]]:
    """Key, value and revision of every write that was acknowledged before the kill."""
    script = _WRITER.replace("k/{number}", prefix + "/{number}")
    process = subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, env=_environment())
    assert process.stdout is not None
    lines = [process.stdout.readline()]
    time.sleep(seconds)  # the random moment of the kill
    process.kill()
    lines += process.stdout.read().splitlines(keepends=True)
    process.wait()
    process.stdout.close()
    whole = [line.decode().split() for line in lines if line.endswith(b"\n")]
    return [(key, int(value), int(revision)) for key, value, revision in whole]


async def test_a_killed_process_loses_no_acknowledged_write(tmp_path: Path) -> None:
    acknowledged: dict[str, tuple[int, int]] = {}
    latest, chance = 0, random.Random(3)
    for number in range(5):
        seconds = chance.uniform(0.02, 0.25)
        for key, value, revision in await asyncio.to_thread(
            _write_until_killed, tmp_path / "s.db", f"round{number}", seconds
        ):
            assert revision > latest
            acknowledged[key] = (value, revision)
        store = await opened(tmp_path / "s.db")
        latest = store.revision
        assert latest >= max(revision for _, revision in acknowledged.values())
        found = {s.key: s for s in (await store.range("")).items}
        for key, (value, revision) in acknowledged.items():
            assert found[key].revision >= revision, key
            assert int(found[key].value.rstrip(b"\0")) >= value, key
        assert store._db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        await store.close()
    assert len(acknowledged) > 100


def _environment() -> dict[str, Any]:
    import karmada

    return {**os.environ, "PYTHONPATH": str(Path(karmada.__path__[0]).parent)}


async def test_a_write_that_cannot_be_packed_is_refused_and_the_next_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, reported = await opened(tmp_path / "s.db"), list[Any]()
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: reported.append(context["exception"]))

    def fail(_value: bytes) -> bytes:
        raise TypeError("no bytes")

    with monkeypatch.context() as patched:
        patched.setattr("karmada.kube.server.storage.sqlite.pack", fail)
        with pytest.raises(StoreUnavailable, match="no bytes"):
            await store.write("k", b"{}", expected=0)
    assert [str(error) for error in reported] == ["no bytes"]
    assert await store.write("k", b"{}", expected=0) == 1
    assert store.last_error is None
    await store.close()
