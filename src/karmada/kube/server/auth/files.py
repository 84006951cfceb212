"""Secret files: written whole or not at all, readable by their owner only."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path


def private_directory(path: Path) -> None:
    """Make the directory (and its parents) if needed; nobody but the owner may look into it."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.chmod(0o700)


def check_trusted(path: Path) -> None:
    """PermissionError for a file or directory that somebody else could put there, or may have put there before.

    It and what is above it must be this user's or root's. Where others may write, they must not be able to replace what
    is not theirs: that is what the sticky bit of /tmp, and of volumes that are mounted, is for.
    """
    path = path.resolve()
    for place in (path, *path.parents):
        try:
            found = place.stat()
        except FileNotFoundError:
            continue  # it will be made, with rights that are known
        if found.st_uid not in (0, os.geteuid()):
            raise PermissionError(f"{place} belongs to another user and cannot be trusted")
        others = stat.S_IWOTH | (stat.S_IWGRP if place == path else 0)
        if found.st_mode & others and not found.st_mode & stat.S_ISVTX:
            raise PermissionError(f"{place} can be written to by others and cannot be trusted")


def write_private(path: Path, content: bytes) -> None:
    """Replace the file in one step: a reader (or a crash) sees the old content or the new, never a part."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_directory(path.parent)


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_optional(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Only one process at a time fills the directory."""
    descriptor = os.open(directory / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
