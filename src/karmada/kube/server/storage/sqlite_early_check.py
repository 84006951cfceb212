"""The check of a SQLite store, begun in a thread while the program still loads.

Of a large store it takes as long as loading the program does, and most of that without the interpreter lock. Nobody
holds the store's lock yet, so what is found counts only if the files are the same when the store is opened: else they
are examined then.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from threading import Thread
from typing import Final, NamedTuple, TypeAlias

from karmada.kube.server.storage.interface import StoreUnavailable
from karmada.kube.server.storage.sqlite_check import examine
from karmada.kube.server.storage.sqlite_files import read_acknowledged

_WORTHWHILE: Final = 1 << 20
"""Bytes below which a thread costs more than it saves."""


_Files: TypeAlias = tuple[tuple[int, int, int] | None, ...]


class _Found(NamedTuple):
    files: _Files
    acknowledged: int
    problems: list[str]


_begun: dict[Path, _Early] = {}


def begin_check(path: Path) -> None:
    """Examine the store at this path now, for `problems_of` later."""
    path = path.absolute()
    if path.exists() and path.stat().st_size >= _WORTHWHILE:
        _begun[path] = _Early(path)


def problems_of(path: Path, acknowledged: int) -> list[str]:
    """Return what is wrong with a store whose lock is held: as it was found already, if nothing has changed since."""
    early = _begun.pop(path.absolute(), None)
    found = None if early is None else early.end()
    if found is not None and found.files == _files(path) and found.acknowledged == acknowledged:
        return found.problems
    return examine(path, acknowledged)


class _Early:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._found: _Found | None = None
        self._thread = Thread(target=self._examine, name="store check", daemon=True)
        self._thread.start()

    def end(self) -> _Found | None:
        """Return what was found; None if it could not be read."""
        self._thread.join()
        return self._found

    def _examine(self) -> None:
        try:
            files, acknowledged = _files(self._path), read_acknowledged(self._path)
            self._found = _Found(files, acknowledged, examine(self._path, acknowledged))
        except (sqlite3.Error, OSError, StoreUnavailable):
            return  # whoever opens the store finds out, and reports it


def _files(path: Path) -> _Files:
    """Return what shows a change of the database or its log."""
    return tuple(map(_state, (path, path.with_name(f"{path.name}-wal"))))


def _state(file: Path) -> tuple[int, int, int] | None:
    """Return the state of the files; an empty log is as good as none: whoever reads the database makes one."""
    try:
        state = file.stat()
    except FileNotFoundError:
        return None
    return (state.st_ino, state.st_size, state.st_mtime_ns) if state.st_size else None
