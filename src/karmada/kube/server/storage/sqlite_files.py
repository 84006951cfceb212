"""The files of a SQLite store: the database, its lock, and the last acknowledged revision.

Never open and close a descriptor of the database file itself: closing one drops SQLite's POSIX locks on it.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import stat
from pathlib import Path
from urllib.parse import quote

from karmada.kube.server.storage.interface import StoreDamaged, StoreLocked, StoreUnavailable

PAGE_SIZE = 4096


def connect(path: Path, synchronous: str) -> sqlite3.Connection:
    make_private(path)
    db = sqlite3.connect(path, isolation_level=None, timeout=5.0, cached_statements=64)
    try:
        db.execute(f"PRAGMA page_size = {PAGE_SIZE}")
        if db.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
            raise StoreUnavailable(f"{path}: its file system does not support SQLite's write-ahead log")
        db.execute(f"PRAGMA synchronous = {synchronous}")
        db.execute("PRAGMA wal_autocheckpoint = 0")
        db.execute("PRAGMA cache_size = -8192")
    except BaseException:
        db.close()
        raise
    return db


def make_private(path: Path) -> None:
    """Create it if need be; SQLite gives its other files the same mode."""
    if not path.exists():
        os.mknod(path, stat.S_IFREG | 0o600)  # made without opening it
    path.chmod(0o600)


def connect_to_read(path: Path) -> sqlite3.Connection:
    """Beside a server that writes; closing it neither checkpoints nor deletes a WAL."""
    return sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, isolation_level=None, timeout=5.0)


def lock(path: Path) -> int:
    """Take the lock file beside the database for this process; it is freed by the kernel, however the process ends."""
    fd = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as e:
        owner = os.read(fd, 20).decode(errors="replace").strip() or "unknown"
        os.close(fd)
        raise StoreLocked(f"{path} is in use by another process (pid {owner})") from e
    os.pwrite(fd, b"%-19d\n" % os.getpid(), 0)  # in place: on a full disk a shorter file could not grow again
    return fd


def sync_file(path: str | Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


class Acknowledged:
    """The last revision that was acknowledged, in a file beside the database.

    A database that ends before it has lost writes, which SQLite does not notice when the end of a WAL is damaged or a
    file is replaced.

    Written in place after each sync, so it never is ahead of what is durable. It is not synced itself: after a power
    cut it may be some seconds behind, which only makes it less strict.
    """

    def __init__(self, path: Path) -> None:
        self.revision = read_acknowledged(path)
        self._fd = os.open(_acknowledged_file(path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def record(self, revision: int) -> None:
        os.pwrite(self._fd, b"%020d\n" % revision, 0)
        self.revision = revision

    def close(self) -> None:
        os.fsync(self._fd)
        os.close(self._fd)


def read_acknowledged(path: Path) -> int:
    """0 if there is no such file yet."""
    file = _acknowledged_file(path)
    try:
        text = file.read_bytes()
    except FileNotFoundError:
        return 0
    if text and not text.strip().isdigit():
        raise StoreDamaged(f"{file} is damaged: it should hold a revision. Run karmadactl check-store, then remove it")
    return int(text or b"0")


def _acknowledged_file(path: Path) -> Path:
    return path.with_name(f"{path.name}-acknowledged")
