"""The log file of a program in the background: standard output and error, rotated by the program itself.

Who starts a program without a terminal opens its log and names the file in KARMADA_LOG_FILE. The program cannot know
otherwise when the file grows too large, and nobody else can move it away while the program writes.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import IO

VARIABLE = "KARMADA_LOG_FILE"
MAX_BYTES = 8 << 20
_CHECK_EVERY = 100
"""Lines between two looks at the size of the file."""


class RotatingHandler(logging.StreamHandler[IO[str]]):
    """Writes to a stream whose descriptor is a log file; the file before it stays as `.1`."""

    def __init__(self, stream: IO[str], path: Path, limit: int = MAX_BYTES) -> None:
        super().__init__(stream)
        self._path = path
        self._limit = limit
        self._lines = 0

    def emit(self, record: logging.LogRecord) -> None:
        super().emit(record)
        self._lines += 1
        if self._lines % _CHECK_EVERY == 0 and self._is_full():
            rotate(self._path, (1, self.stream.fileno()))

    def _is_full(self) -> bool:
        """Return whether the file is full; a process that merely inherited the variable leaves it alone."""
        now = os.fstat(self.stream.fileno())
        return now.st_size > self._limit and self._path.exists() and os.path.samestat(now, self._path.stat())


def rotate(path: Path, descriptors: tuple[int, ...] = ()) -> None:
    """Move the file away; the descriptors go on with a new one."""
    path.replace(path.with_name(f"{path.name}.1"))
    fresh = open_log(path)
    try:
        for descriptor in descriptors:
            os.dup2(fresh, descriptor)
    finally:
        os.close(fresh)


def open_log(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
