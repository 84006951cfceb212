"""Which process runs: a file with its number, locked for as long as it lives.

The lock is taken before the process is started and handed down to it, so that it ends with the process however that
ends. A number in a file that nobody holds the lock of says nothing; nothing has to be cleaned up after a crash, and a
number that the system has given to another process in the meantime is never taken for ours.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path

_TRY_SECONDS = 1.0
"""Who only looks takes the lock for an instant; that is not being in use."""


@dataclass(frozen=True, slots=True)
class Holder:
    pid: int
    detached: bool = False


class Taken(Exception):
    """Somebody holds it."""


class Mark:
    def __init__(self, path: Path) -> None:
        self._path = path

    def take(self) -> int:
        """A descriptor that holds the lock, as do all copies of it; Taken."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        end = time.monotonic() + _TRY_SECONDS
        while not _lock(descriptor, fcntl.LOCK_EX):
            if time.monotonic() > end:
                os.close(descriptor)
                raise Taken(str(self._path))
            time.sleep(0.01)
        os.ftruncate(descriptor, 0)
        return descriptor

    @staticmethod
    def write(descriptor: int, holder: Holder) -> None:
        """Say who holds it: a reader finds nothing or all of it."""
        os.pwrite(descriptor, json.dumps({"pid": holder.pid, "detached": holder.detached}).encode(), 0)

    def holder(self) -> Holder | None:
        """Who holds it now; its number is 0 as long as it has not said so."""
        try:
            descriptor = os.open(self._path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        try:
            if _lock(descriptor, fcntl.LOCK_SH):
                return None
            content = os.pread(descriptor, 1000, 0)
        finally:
            os.close(descriptor)
        return Holder(**json.loads(content)) if content else Holder(0)


def _lock(descriptor: int, how: int) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
