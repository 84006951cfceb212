"""Reading a SQLite store while a server has it open: one moment of it, held for as long as the reader is open.

SQLite lets other processes read beside the one that writes; a read transaction sees the state of its beginning.
Nothing is locked for the server but the restart of its write-ahead log, which waits until the reader is closed.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from karmada.kube.server.storage.encryption import AS_STORED
from karmada.kube.server.storage.interface import Page, Stored, StoreUnavailable
from karmada.kube.server.storage.sqlite_files import connect_to_read
from karmada.kube.server.storage.sqlite_log import WITHOUT_CHECKSUMS, count_range, format_of, read_range


class SqliteReader:
    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.revision = 0

    async def open(self) -> None:
        try:
            self._db = connect_to_read(self.path)
            self._summed = format_of(self._db.cursor(), self.path) != WITHOUT_CHECKSUMS
            self._db.execute("BEGIN")
            self.revision = self._db.execute("SELECT max(rev) FROM log").fetchone()[0] or 0
        except sqlite3.Error as error:
            raise StoreUnavailable(f"cannot read {self.path}: {error}") from error

    async def close(self) -> None:
        self._db.close()

    async def range(self, prefix: str, *, after: str = "", limit: int = 0, revision: int = 0) -> Page:
        try:
            cursor, at = self._db.cursor(), revision or self.revision
            items = read_range(cursor, self.path, prefix, after, limit, at, summed=self._summed)
            remaining = count_range(cursor, prefix, items[-1].key, at) if 0 < limit == len(items) else 0
        except sqlite3.Error as error:
            raise StoreUnavailable(f"cannot read {self.path}: {error}") from error
        found = [Stored(key, AS_STORED.decode(key, value), written) for key, value, written in items]
        return Page(found, at, remaining)
