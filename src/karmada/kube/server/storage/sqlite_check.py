"""Is a SQLite store whole? And what can be saved of one that is not.

At the start the structure is checked (pages, index) and that no acknowledged revision is missing; the values are
checked by whoever reads them. On demand every row is. Nothing is changed by a check: it reads through a connection
that leaves a WAL as it is, so that what a damaged one still holds can be examined.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from karmada.kube.server.storage.sqlite_files import connect, connect_to_read
from karmada.kube.server.storage.sqlite_log import (
    APPEND,
    SET_META,
    WITHOUT_CHECKSUMS,
    format_of,
    intact,
    prepare_schema,
    row_problem,
)

_MOST_PROBLEMS = 100
_SCANS = (
    "SELECT rev FROM log INDEXED BY log_by_key ORDER BY key, rev",
    "SELECT rev FROM log NOT INDEXED ORDER BY rev",
    "SELECT rev FROM log NOT INDEXED ORDER BY rev DESC",
)


def examine(path: Path, acknowledged: int, *, rows: bool = False) -> list[str]:
    """Return what is wrong with it, empty if nothing is; `acknowledged` has to be read before."""
    if not path.exists() or not path.stat().st_size:
        return [] if not acknowledged else [f"it is empty, but revision {acknowledged} was acknowledged"]
    try:
        with closing(connect_to_read(path)) as db:
            return _examine(db.cursor(), path, acknowledged, rows=rows)
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):
            raise  # it cannot be read now, which says nothing about what it holds
        return [str(error)]


def _examine(cursor: sqlite3.Cursor, path: Path, acknowledged: int, *, rows: bool) -> list[str]:
    version = format_of(cursor, path)
    if version == 0:
        return [] if not acknowledged else [f"it has no tables, but revision {acknowledged} was acknowledged"]
    cursor.execute("BEGIN")
    found = [text for (text,) in cursor.execute(f"PRAGMA integrity_check({_MOST_PROBLEMS})") if text != "ok"]
    newest = _newest(cursor)
    if acknowledged > newest:
        found.append(f"it ends at revision {newest}, but revision {acknowledged} was acknowledged: writes are lost")
    if rows:
        total = "sum" if version > WITHOUT_CHECKSUMS else "NULL"
        for rev, key, value, given in cursor.execute(f"SELECT rev, key, value, {total} FROM log"):
            if not intact(rev, key, value, given):
                found.append(row_problem(rev, key))
    return found


def _newest(cursor: sqlite3.Cursor) -> int:
    newest, compacted = cursor.execute(
        "SELECT coalesce((SELECT max(rev) FROM log), 0), coalesce((SELECT value FROM meta WHERE name = 'compacted'), 0)"
    ).fetchone()
    return int(max(newest, compacted))


def salvage(path: Path, acknowledged: int) -> list[str]:
    """Replace a damaged database by one with the rows that are intact; returns what was dropped.

    The damaged files are kept under another name. All history is compacted away at a revision beyond every known one,
    so that clients list again. A key whose newest version is lost has the version before it, if that still is there.
    """
    fresh = path.with_name(f"{path.name}.salvaged")
    fresh.unlink(missing_ok=True)
    dropped: list[str] = []
    with closing(connect(fresh, "FULL")) as target:
        cursor = target.cursor()
        prepare_schema(cursor, fresh)
        cursor.execute("BEGIN")
        newest = acknowledged
        for rev, key, live, prev, value, total in _readable_rows(path, dropped):
            newest = max(newest, rev)
            if intact(rev, key, value, total):
                cursor.execute(APPEND, (rev, key, live, prev, value, total))
            else:
                dropped.append(row_problem(rev, key))
        cursor.execute(SET_META, (newest + 1, "compacted"))
        cursor.execute(SET_META, (newest, "legacy"))
        cursor.execute("COMMIT")
    _put_aside(path)
    fresh.rename(path)
    return dropped


def _readable_rows(path: Path, dropped: list[str]) -> Iterator[Any]:
    try:
        with closing(connect_to_read(path)) as db:
            cursor = db.cursor()
            total = "sum" if format_of(cursor, path) > WITHOUT_CHECKSUMS else "NULL"
            cursor.execute("BEGIN")
            for rev in sorted(_revisions(cursor, dropped)):
                try:
                    row = cursor.execute(
                        f"SELECT rev, key, live, prev, value, {total} FROM log WHERE rev = ?", (rev,)
                    ).fetchone()
                except sqlite3.DatabaseError as error:
                    dropped.append(f"revision {rev}: {error}")
                    continue
                if row is not None:
                    yield row
    except sqlite3.DatabaseError as error:
        dropped.append(f"{path}: {error}")


def _revisions(cursor: sqlite3.Cursor, dropped: list[str]) -> set[int]:
    """Return all that can be found: by the index, and through the table from either end up to a damaged page."""
    found: set[int] = set()
    for sql in _SCANS:
        try:
            for (rev,) in cursor.execute(sql):
                found.add(rev)
        except sqlite3.DatabaseError as error:
            dropped.append(f"{sql}: {error}")
    return found


def _put_aside(path: Path) -> None:
    number = 1
    while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    for suffix in ("-wal", "-shm", ""):
        if os.path.exists(f"{path}{suffix}"):
            os.rename(f"{path}{suffix}", f"{aside}{suffix}")
