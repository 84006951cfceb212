"""When the write-ahead log of a SQLite store is copied into the database, and when writes wait for that.

A checkpoint starts after so many pages were written. It runs in the helper process and blocks no writer; if writers
outrun it until the log is long, or if disk space is scarce, writes wait until it is copied.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from karmada.kube.server.storage.sqlite_space import Space
from karmada.kube.server.storage.syncer import Checkpoint, Syncer, Unsynced

DUE_PAGES = 4_000  # write this much to the WAL between two checkpoints
_SCARCE_PAGES = 100  # the same while there is no reserve of disk space
HOLD_PAGES = 16_000  # a WAL longer than this makes writes wait until it is copied
_FULL = "database or disk is full"  # SQLite's text, as the helper process reports it
log = logging.getLogger(__name__)


class Checkpoints:
    def __init__(
        self, path: Path, space: Space, run_out: Callable[[Exception], None], ended: Callable[[], None]
    ) -> None:
        """`run_out` is called when the disk is full, `ended` when no checkpoint runs any more and writes may go on."""
        self._path = path
        self._space = space
        self._run_out = run_out
        self._ended = ended
        self._due = DUE_PAGES
        self.pages = 0
        """About how many are in the WAL."""
        self.running = False
        self.hold = False
        """True if writes wait."""
        self.syncer: Syncer | Unsynced

    def start_if_due(self) -> None:
        if self.pages >= self._due and not self.running:
            self.start()

    def start(self) -> None:
        self.running = True
        self.hold = self.hold or self._space.scarce
        started = self.pages
        self.syncer.checkpoint(lambda result: self._end(started, result))

    def _end(self, started: int, result: Checkpoint | str) -> None:
        self.running = False
        written = self.pages - started
        if isinstance(result, str):
            log.warning("checkpoint of %s failed: %s", self._path, result)
            if _FULL in result and self._space.exceeded is None:
                self._run_out(OSError(result))
                return
        else:
            complete = result.copied == result.frames and not written  # the next write starts the WAL anew
            self.pages = 0 if complete else result.frames + written
        self._due = self.pages + (DUE_PAGES if self._space.reserved else _SCARCE_PAGES)
        self.hold = self.pages > HOLD_PAGES and not self.hold
        if self.hold:
            self.start()
        else:
            self._ended()
