"""Pid files that are locked as long as their process lives.

The lock is taken before the process is started and is inherited by it, so it ends with the process, however that ends.
A pid in an unlocked file has no meaning: nothing has to be cleaned up after a crash, and a reused pid is never mistaken
for ours.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path

_TRY_SECONDS = 1.0
"""A reader takes the lock for an instant; that does not count as held."""


@dataclass(frozen=True, slots=True)
class Holder:
    pid: int
    detached: bool = False


class Taken(Exception):
    """The lock is held."""


class Mark:
    def __init__(self, path: Path) -> None:
        self._path = path

    def take(self) -> int:
        """Return a descriptor that holds the lock, as do its copies; raises Taken."""
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
        """Write the holder in one step."""
        os.pwrite(descriptor, json.dumps({"pid": holder.pid, "detached": holder.detached}).encode(), 0)

    def holder(self) -> Holder | None:
        """Return the current holder; its pid is 0 until it is written."""
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
