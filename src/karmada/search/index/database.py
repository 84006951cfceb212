"""The index itself: SQLite with FTS5 in a temporary file that disappears with its connection.

`words` has the texts, and in a column of its own a token for each label, field and owner: one expression selects by all
of them. `objects` has names only: the objects are in the caches. Methods block; one thread owns the connection.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from karmada.kube.objects.gvk import GVR
from karmada.search.index.terms import Words, owner_pair
from karmada.search.pending import Source

CACHE_KIB: Final = 16 * 1024
"""Pages in memory; the others are in the file."""
_COLUMNS: Final = ", ".join(Words._fields)
_SCHEMA: Final = """
PRAGMA journal_mode = MEMORY;
PRAGMA synchronous = OFF;
CREATE TABLE sources (
    id INTEGER PRIMARY KEY, cluster TEXT NOT NULL, kind TEXT NOT NULL,
    grp TEXT NOT NULL, version TEXT NOT NULL, resource TEXT NOT NULL,
    UNIQUE (cluster, grp, version, resource)
);
CREATE INDEX sources_in_order ON sources (cluster, kind, id);
CREATE TABLE objects (
    id INTEGER PRIMARY KEY, source INTEGER NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL
);
CREATE UNIQUE INDEX objects_by_name ON objects (source, namespace, name);
CREATE VIRTUAL TABLE words USING fts5(name, images, labels, messages, place, rest, tokens, tokenize = 'unicode61');
"""


class Named(NamedTuple):
    """An object by its name within its source."""

    namespace: str
    name: str


class Database:
    def __init__(self) -> None:
        self.connection = sqlite3.connect(_place(), isolation_level=None)
        self.connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        self.connection.executescript(_SCHEMA)
        self.connection.create_function("owner_token", 2, _owner_token, deterministic=True)

    def close(self) -> None:
        self.connection.close()

    # writes

    def apply(
        self, source: Source, kind: str, upserts: Sequence[tuple[Named, Words]], deletes: Iterable[Named]
    ) -> tuple[list[int], list[int]]:
        """Return one transaction; the ids of objects that were written, and of those that are gone."""
        execute = self.connection.execute
        execute("BEGIN")
        try:
            number = self._source(source, kind)
            written = [self._upsert(number, named, words) for named, words in upserts]
            gone = [row for named in deletes if (row := self._delete(number, named)) is not None]
            execute("COMMIT")
        except BaseException:
            execute("ROLLBACK")
            raise
        return written, gone

    def names(self, source: Source, after: Named, count: int) -> list[Named]:
        """Return the objects of a source that follow a name, in order."""
        number = self.source_id(source)
        sql = (
            "SELECT namespace, name FROM objects WHERE source = ? AND (namespace, name) > (?, ?)"
            " ORDER BY namespace, name LIMIT ?"
        )
        return [Named(*row) for row in self.connection.execute(sql, (number, *after, count))]

    def sources(self) -> dict[int, tuple[Source, str]]:
        """Return the sources that have, or had, objects, with their kinds."""
        rows = self.connection.execute("SELECT id, cluster, grp, version, resource, kind FROM sources")
        return {row[0]: (Source(row[1], GVR(*row[2:5])), row[5]) for row in rows}

    def source_id(self, source: Source) -> int | None:
        sql = "SELECT id FROM sources WHERE cluster = ? AND grp = ? AND version = ? AND resource = ?"
        row = self.connection.execute(sql, (source.cluster, *source.gvr)).fetchone()
        return None if row is None else int(row[0])

    def count(self) -> int:
        return int(self.connection.execute("SELECT count(*) FROM objects").fetchone()[0])

    def _source(self, source: Source, kind: str) -> int:
        found = self.source_id(source)
        if found is not None:
            return found
        sql = "INSERT INTO sources (cluster, grp, version, resource, kind) VALUES (?, ?, ?, ?, ?)"
        return int(self.connection.execute(sql, (source.cluster, *source.gvr, kind)).lastrowid or 0)

    def _upsert(self, source: int, named: Named, words: Words) -> int:
        execute = self.connection.execute
        found = self._id(source, named)
        if found is None:
            sql = "INSERT INTO objects (source, namespace, name) VALUES (?, ?, ?)"
            found = int(execute(sql, (source, *named)).lastrowid or 0)
            execute(f"INSERT INTO words (rowid, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (found, *words))
        elif execute(f"SELECT {_COLUMNS} FROM words WHERE rowid = ?", (found,)).fetchone() != words:
            execute(f"REPLACE INTO words (rowid, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (found, *words))
        return found

    def _delete(self, source: int, named: Named) -> int | None:
        found = self._id(source, named)
        if found is not None:
            self.connection.execute("DELETE FROM words WHERE rowid = ?", (found,))
            self.connection.execute("DELETE FROM objects WHERE id = ?", (found,))
        return found

    def _id(self, source: int, named: Named) -> int | None:
        sql = "SELECT id FROM objects WHERE source = ? AND namespace = ? AND name = ?"
        found = self.connection.execute(sql, (source, *named)).fetchone()
        return None if found is None else int(found[0])


def _place() -> str:
    """Return a temporary file of SQLite's own; memory where no folder can be written to."""
    try:
        tempfile.gettempdir()
    except FileNotFoundError:
        return ":memory:"
    return ""


def _owner_token(kind: str, name: str) -> str:
    return owner_pair(kind, name).token
