"""A full disk: what a SQLite store still does then, and how it gets out of it.

A file beside the database reserves disk space. When a write finds no space, the alarm is raised: the reserve is given
to the database, deletions and compaction go on in it, other writes are refused with StoreFull. What leads to a deletion
is accepted like one, until half of the reserve is used: objects with finalizers must be marked and written before they
can go. So are writes that make an object smaller. The reserve is larger
than what lies in the WAL between two checkpoints, because the database may have to grow by that much; when space gets
scarce, writes wait for each checkpoint, so that the WAL holds no more than that.

The alarm ends when there is half as much again as the reserve, which is then taken again, or when deletions and
compaction have left as many free pages in the database; in the second case the free pages are counted with every batch
until there is a reserve again. A small part of the reserve is kept for the next start, even in the alarm; after an
orderly stop only that part is.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path

import orjson

from karmada.kube.server.storage.interface import Stored, StoreFull, Write
from karmada.kube.server.storage.sqlite_files import PAGE_SIZE

RESERVE = 32 * 1024 * 1024
SMALL_RESERVE = 4 * 1024 * 1024
_FOR_THE_NEXT_START = 20  # the part: one of so many
_SCARCE = 128 * 1024 * 1024
_RECHECK_SECONDS = 5.0
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
log = logging.getLogger(__name__)


class Space:
    def __init__(self, path: Path, size: int) -> None:
        self._path = path
        self._size = size
        self._timer: asyncio.TimerHandle | None = None
        self.reserved = False
        """True if the whole reserve is there."""
        self.exceeded: StoreFull | None = None
        """The alarm: why only deletions are accepted."""

    def open(self) -> None:
        self._fd = os.open(f"{self._path}-reserve", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    @property
    def scarce(self) -> bool:
        return self._disk_space() < _SCARCE

    def watch(self, db: sqlite3.Connection) -> None:
        """Take the reserve, or raise the alarm, once the database is open."""
        self._db = db
        self._recheck()

    def check(self) -> None:
        """Before a batch, while there is no reserve."""
        if self.exceeded is None and not self._free_pages_suffice():
            self.exceed("the reserve is used up")

    def exceed(self, why: str) -> None:
        if self.reserved:
            os.ftruncate(self._fd, self._size // _FOR_THE_NEXT_START)
        self.reserved = False
        self.exceeded = StoreFull(
            f"{self._path}: database space exceeded ({why}): only deletions are accepted until there is space again"
        )
        log.error("%s", self.exceeded)
        self._recheck_later()

    def refused(self, writes: Iterable[Write], before: Callable[[Write], Stored | None]) -> dict[int, StoreFull]:
        """Return, in the alarm, all but deletions and what leads to them, by the identity of the write.

        `before` is what a write replaces. Deletions must have half of the reserve even after what is let through.
        """
        spare = self._disk_space() + PAGE_SIZE * self._pragma("freelist_count") > self._size // 2

        def accepted(write: Write) -> bool:
            if write.value is None:
                return write.packed is None  # a deletion
            replaced = before(write) if spare else None
            return replaced is not None and frees_space(write.value, replaced.value)

        return {id(write): StoreFull(str(self.exceeded)) for write in writes if not accepted(write)}

    def release(self) -> bool:
        """Give up all of the reserve, to open the database; return whether there was something."""
        something = os.fstat(self._fd).st_size > 0
        os.ftruncate(self._fd, 0)
        self.reserved = False
        return something

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if not self._allocate(self._size // _FOR_THE_NEXT_START):
            log.warning("%s: the disk is full, the next start may need space to be freed", self._path)
        os.close(self._fd)

    def _recheck(self) -> None:
        enough = (self._may_grow() and self._reserve()) or self._free_pages_suffice()
        if not enough and self.exceeded is None:
            self.exceed("there is no space for the reserve")
        elif enough and self.exceeded is not None:
            self.exceeded = None
            log.info("%s: there is space again, all writes are accepted", self._path)
        if not self.reserved:
            self._recheck_later()

    def _recheck_later(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(_RECHECK_SECONDS, self._recheck)

    def _reserve(self) -> bool:
        if self.reserved:
            return True
        if self.exceeded is not None and self._disk_space() < self._size * 3 // 2:
            return False  # not much more than what was released
        self.reserved = self._allocate(self._size)
        return self.reserved

    def _allocate(self, size: int) -> bool:
        """Make the reserve so large; False, and as it was, if there is no space."""
        before = os.fstat(self._fd).st_size
        try:
            os.posix_fallocate(self._fd, 0, size)
        except OSError as error:
            if error.errno not in _NO_SPACE:
                raise
            os.ftruncate(self._fd, before)
            return False
        os.ftruncate(self._fd, size)
        return True

    def _disk_space(self) -> int:
        disk = os.fstatvfs(self._fd)
        return disk.f_bavail * disk.f_frsize

    def _may_grow(self) -> bool:
        """Within SQLite's limit for the file."""
        return self._pragma("max_page_count") - self._pragma("page_count") > self._size // PAGE_SIZE

    def _free_pages_suffice(self) -> bool:
        return self._pragma("freelist_count") > self._size // PAGE_SIZE

    def _pragma(self, name: str) -> int:
        return int(self._db.execute(f"PRAGMA {name}").fetchone()[0])


def frees_space(value: bytes, before: bytes) -> bool:
    """Return whether a write in place of `before` makes it smaller, or is of an object being deleted."""
    if len(value) < len(before):
        return True
    try:
        return "deletionTimestamp" in orjson.loads(value)["metadata"]
    except (ValueError, KeyError, TypeError):
        return False  # no object


def is_full(error: BaseException | None) -> bool:
    if isinstance(error, OSError):
        return error.errno in _NO_SPACE
    return isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL
