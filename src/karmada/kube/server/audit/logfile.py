"""Audit events as JSON lines in a file only its owner reads, rotated by size and removed by age and number.

A rotated file has the time in its name: audit.log becomes audit-2026-01-31T10-20-30.456.log. What is no regular file
(standard output, a pipe) is not rotated.
"""

from __future__ import annotations

import datetime
import os
import re
import stat
import sys
from pathlib import Path

import orjson

from karmada.kube.objects.clock import Clock
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.logging import get_logger

_STAMP = "%Y-%m-%dT%H-%M-%S"
_STAMPED = r"-(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3})"
_DAY = 86400.0
log = get_logger("audit")


class LogFile:
    name = "log"

    def __init__(self, path: Path, clock: Clock, *, max_bytes: int, max_backups: int = 0, max_days: int = 0) -> None:
        """OSError for a place that cannot be written to."""
        self._path = path
        self._clock = clock
        self._max_bytes = max_bytes
        self._max_backups = max_backups
        self._max_days = max_days
        self._backup = re.compile(re.escape(path.stem) + _STAMPED + re.escape(path.suffix))
        self.failed = 0
        self._failing = False
        self._open()

    def _open(self) -> None:
        if str(self._path) == "-":
            self._descriptor = os.dup(sys.stdout.fileno())
        else:
            self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        found = os.fstat(self._descriptor)
        self._rotates = stat.S_ISREG(found.st_mode)
        self._size = found.st_size if self._rotates else 0

    def write(self, event: Obj) -> None:
        """Write a line; a full disk fails no request: the event is lost, counted, and a row's first loss logged."""
        line = orjson.dumps(event) + b"\n"
        try:
            if self._rotates and self._size and self._size + len(line) > self._max_bytes:
                self._rotate()
            self._size += os.write(self._descriptor, line)
            self._failing = False
        except OSError as error:
            self.failed += 1
            if not self._failing:
                log.error("Audit events cannot be written", error, path=str(self._path))
            self._failing = True

    def _rotate(self) -> None:
        now = self._clock.now()
        moment = datetime.datetime.fromtimestamp(now, datetime.UTC)
        stamp = f"{moment.strftime(_STAMP)}.{moment.microsecond // 1000:03d}"
        os.rename(self._path, self._path.with_name(f"{self._path.stem}-{stamp}{self._path.suffix}"))
        former = self._descriptor
        self._open()
        os.close(former)
        self._remove_old(now)

    def _remove_old(self, now: float) -> None:
        files = self._path.parent.iterdir()
        backups = sorted((found[1], path) for path in files if (found := self._backup.fullmatch(path.name)))
        excess = backups[: -self._max_backups] if self._max_backups else []
        oldest = datetime.datetime.fromtimestamp(now - self._max_days * _DAY, datetime.UTC).strftime(_STAMP)
        aged = [backup for backup in backups if self._max_days and backup[0] < oldest]
        for _, path in {*excess, *aged}:
            path.unlink(missing_ok=True)

    async def close(self) -> None:
        os.close(self._descriptor)
