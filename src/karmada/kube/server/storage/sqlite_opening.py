"""Opening the database of a SQLite store: its files are checked first, and a full disk does not prevent it."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable
from pathlib import Path

from karmada.kube.server.storage.sqlite_check import examine, salvage
from karmada.kube.server.storage.sqlite_early_check import problems_of
from karmada.kube.server.storage.sqlite_files import connect, make_private
from karmada.kube.server.storage.sqlite_log import refusal
from karmada.kube.server.storage.sqlite_space import Space

log = logging.getLogger(__name__)


class Opening:
    def __init__(self, path: Path, acknowledged: int, *, synced: bool, accept_loss: bool) -> None:
        self._path = path
        self._acknowledged = acknowledged
        self._synced = synced
        self._accept_loss = accept_loss

    def open(self, space: Space, prepare: Callable[[sqlite3.Connection], None]) -> sqlite3.Connection:
        """Return the database after `prepare`; on a full disk, with the space that was reserved for that."""
        try:
            return self._try(prepare)
        except (sqlite3.OperationalError, OSError) as e:
            if not space.release():
                raise
            log.warning("%s: opening it again without the reserve of disk space: %s", self._path, e)
            return self._try(prepare)

    def _try(self, prepare: Callable[[sqlite3.Connection], None]) -> sqlite3.Connection:
        self._check_files()
        db = connect(self._path, "NORMAL" if self._synced else "OFF")
        try:
            prepare(db)
        except BaseException:
            db.close()
            raise
        return db

    def _check_files(self) -> None:
        """Before anything is written: the first write would overwrite what a damaged WAL still holds."""
        make_private(self._path)
        if self._accept_loss:
            problems = examine(self._path, self._acknowledged, rows=True)
        else:
            problems = problems_of(self._path, self._acknowledged)
        if not problems:
            return
        if not self._accept_loss:
            raise refusal(self._path, problems)
        for problem in [*problems, *salvage(self._path, self._acknowledged)]:
            log.error("%s: loss accepted: %s", self._path, problem)
