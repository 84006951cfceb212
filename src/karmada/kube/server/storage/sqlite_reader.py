"""Reading a SQLite store while a server has it open: one moment of it, held for as long as the reader is open.

SQLite lets other processes read beside the one that writes; a read transaction sees the state of its beginning.
Nothing is locked for the server but the restart of its write-ahead log, which waits until the reader is closed.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from karmada.kube.server.storage.interface import Page, Stored, StoreUnavailable
from karmada.kube.server.storage.sqlite import FORMAT, read_range


class SqliteReader:
    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.revision = 0

    async def open(self) -> None:
        try:
            self._db = sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, isolation_level=None, timeout=5.0)
            version = self._db.execute("PRAGMA user_version").fetchone()[0]
            if version != FORMAT:
                raise StoreUnavailable(f"{self.path} has format {version}; this program knows format {FORMAT}")
            self._db.execute("BEGIN")
            self.revision = self._db.execute("SELECT max(rev) FROM log").fetchone()[0] or 0
        except sqlite3.Error as error:
            raise StoreUnavailable(f"cannot read {self.path}: {error}") from error

    async def close(self) -> None:
        self._db.close()

    async def range(self, prefix: str, *, after: str = "", limit: int = 0, revision: int = 0) -> Page:
        try:
            rows, remaining = read_range(self._db.cursor(), prefix, after, limit, revision or self.revision)
        except sqlite3.Error as error:
            raise StoreUnavailable(f"cannot read {self.path}: {error}") from error
        return Page([Stored(*row) for row in rows], revision or self.revision, remaining)
