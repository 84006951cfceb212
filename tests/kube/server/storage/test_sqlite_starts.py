"""A state that an older copy takes the place of, as a snapshot of its volume: no revision is given out twice."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from karmada.kube.server.storage.interface import Compacted
from karmada.kube.server.storage.sqlite import SqliteStore
from karmada.kube.server.storage.sqlite_log import first_revision

_NOW = 1_800_000_000.0
_DAY = 86_400.0


async def opened(path: Path, now: float = _NOW) -> SqliteStore:
    store = SqliteStore(path / "s.db", now=lambda: now)
    await store.open()
    return store


async def put(store: SqliteStore, *names: str) -> list[int]:
    return [await store.write(f"k/{name}", b"{}", expected=0) for name in names]


async def test_revisions_of_a_lost_history_are_unknown_and_never_given_out_again(tmp_path: Path) -> None:
    store = await opened(tmp_path / "state")
    known = await put(store, "a", "b")
    await store.close()
    shutil.copytree(tmp_path / "state", tmp_path / "snapshot")
    store = await opened(tmp_path / "state", _NOW + 1)
    lost = [store.revision, *await put(store, "c", "d", "e")]
    await store.close()
    shutil.rmtree(tmp_path / "state")
    (tmp_path / "snapshot").rename(tmp_path / "state")

    store = await opened(tmp_path / "state", _NOW + _DAY)
    began = store.revision
    later = await put(store, "f")
    assert [stored.key for stored in (await store.range("")).items] == ["k/a", "k/b", "k/f"]
    assert [store.has_given(revision) for revision in lost] == [False] * 4
    assert [store.has_given(revision) for revision in (*known, began, *later)] == [True] * 4
    assert min(began, *later) > max(lost)
    await store.close()


async def test_a_usual_restart_knows_all_revisions_also_those_of_starts_without_a_write(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    given = await put(store, "a")
    for day in range(1, 4):
        await store.close()
        store = await opened(tmp_path, _NOW + day * _DAY)
        given.append(store.revision)
    given += await put(store, "b")
    await store.close()
    store = await opened(tmp_path, _NOW + 9 * _DAY)
    assert given == sorted(given)
    assert all(map(store.has_given, given))
    assert not store.has_given(given[-1] - 1_000)
    await store.close()


async def test_an_empty_store_begins_with_one_and_a_clock_that_went_back_changes_nothing(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    assert await put(store, "a") == [1]
    await store.close()
    store = await opened(tmp_path, _NOW + _DAY)
    [second] = await put(store, "b")
    await store.close()
    store = await opened(tmp_path, _NOW - 365 * _DAY)
    assert store.revision == second
    assert await put(store, "c") == [second + 1]
    await store.close()


async def test_history_and_compaction_go_on_over_what_lies_between_two_starts(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    early = await put(store, *(f"a{number:04}" for number in range(1_500)))
    await store.close()
    store = await opened(tmp_path, _NOW + _DAY)
    late = await put(store, *(f"b{number:04}" for number in range(1_500)))
    events = await store.history("k/", since=early[9], until=store.revision)
    assert [event.revision for event in events] == [*early[10:], *late]
    assert store.earlier(store.revision, 2_000) == early[999]
    await store.compact(late[99])
    with pytest.raises(Compacted):
        await store.history("k/", since=early[-1], until=store.revision)
    assert [event.revision for event in await store.history("", since=late[99], until=late[-1])] == late[100:]
    assert store._db.execute("SELECT count(*) FROM starts").fetchone() == (1,)
    await store.close()
    store = await opened(tmp_path, _NOW + 2 * _DAY)
    assert store._db.execute("SELECT count(*) FROM starts").fetchone() == (1,), "those before the compaction are gone"
    assert len((await store.range("k/")).items) == 3_000
    await store.close()


def test_the_first_revision_rises_faster_than_a_server_writes_and_fits_into_a_double() -> None:
    assert first_revision(0, _NOW) == 0
    assert first_revision(7, _NOW + 60) - first_revision(7, _NOW) == 600_000
    assert first_revision(7, _NOW + 500 * 365 * _DAY) < 1 << 53
    assert first_revision(1 << 60, _NOW) == 1 << 60
