"""The check of a store that begins before the store is opened is as strict as one that begins then."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from karmada.kube.server.storage import sqlite_early_check
from karmada.kube.server.storage.interface import StoreDamaged
from karmada.kube.server.storage.open import begin_check
from karmada.kube.server.storage.sqlite import SqliteStore
from karmada.kube.server.storage.sqlite_check import examine


@pytest.fixture
def examined(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The stores that were examined, each time."""
    seen: list[Path] = []

    def noted(path: Path, acknowledged: int) -> list[str]:
        seen.append(path)
        return examine(path, acknowledged)

    monkeypatch.setattr(sqlite_early_check, "examine", noted)
    monkeypatch.setattr(sqlite_early_check, "_WORTHWHILE", 1)
    monkeypatch.setattr(sqlite_early_check, "_begun", {})
    return seen


async def _write(path: Path, *keys: str) -> None:
    store = SqliteStore(path)
    await store.open()
    for key in keys:
        await store.write(key, b'{"metadata":{}}', expected=0)
    await store.close()


async def test_what_was_found_while_the_program_loaded_is_not_looked_for_again(
    tmp_path: Path, examined: list[Path]
) -> None:
    path = tmp_path / "state.db"
    await _write(path, "a", "b")
    examined.clear()
    begin_check(f"sqlite://{path}")
    await _write(path, "c")
    assert examined == [path]
    await _write(path, "d")
    assert examined == [path, path], "the next opening is another one"


async def test_a_store_that_changed_since_the_check_began_is_examined_when_it_is_opened(
    tmp_path: Path, examined: list[Path]
) -> None:
    path = tmp_path / "state.db"
    await _write(path, "a", "b")
    begin_check(f"sqlite://{path}")
    sqlite_early_check._begun[path].end()
    with closing(sqlite3.connect(path)) as db:
        db.execute("DELETE FROM log WHERE rev = 2")
        db.commit()
    with pytest.raises(StoreDamaged, match="writes are lost"):
        await _write(path)


async def test_damage_that_was_found_early_keeps_the_store_from_being_opened(
    tmp_path: Path, examined: list[Path]
) -> None:
    path = tmp_path / "state.db"
    await _write(path, "a", "b")
    with closing(sqlite3.connect(path)) as db:
        db.execute("DELETE FROM log WHERE rev = 2")
        db.commit()
    examined.clear()
    begin_check(f"sqlite://{path}")
    with pytest.raises(StoreDamaged, match="writes are lost"):
        await _write(path)
    assert examined == [path]


async def test_what_cannot_be_read_early_is_reported_by_the_opening(tmp_path: Path, examined: list[Path]) -> None:
    path = tmp_path / "state.db"
    await _write(path, "a")
    (tmp_path / "state.db-acknowledged").write_bytes(b"?")
    begin_check(f"sqlite://{path}")
    with pytest.raises(StoreDamaged, match="should hold a revision"):
        await _write(path)


@pytest.mark.parametrize("url", ["memory://", "sqlite:///no/such/file", "etcd://127.0.0.1:2379"])
def test_where_there_is_nothing_to_examine_nothing_begins(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: dict[Path, object] = {}
    monkeypatch.setattr(sqlite_early_check, "_begun", begun)
    begin_check(url)
    assert not begun
