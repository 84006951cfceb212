"""How much of what happened, and how readily, a server keeps in memory.

Watches and lists from further back read the store.
"""

from __future__ import annotations

from collections import deque
from itertools import takewhile
from typing import NamedTuple

from karmada.kube.server.watchcache.entry import Change

_FRAMES = 256
"""Changes whose encoded frame is kept for watchers that are a little late."""


class History(NamedTuple):
    look_back: int = 2_000
    """So many of the last revisions are loaded at the start."""
    seconds: float = 300.0
    """Changes of each resource are kept for so long,"""
    at_least: int = 100
    """the last of them in any case,"""
    at_most: int = 5_000
    """but never more than so many"""
    most_bytes: int = 16 << 20
    """or so much."""
    uncompressed: int = 2_048
    """So many of each resource are not compressed, the last that were written."""


class RecentChanges:
    """The last changes of a resource: at least some, then those of the last minutes, within bounds of count and bytes.

    There is one for each resource, so churn in one flushes no other.
    """

    def __init__(self, keep: History, floor: int) -> None:
        self._keep = keep
        self._changes: deque[Change] = deque()
        self._bytes = 0
        self.floor = floor
        """Every change after this revision is here."""

    def add(self, change: Change) -> None:
        changes = self._changes
        changes.append(change)
        self._bytes += change.size
        if len(changes) > _FRAMES:
            changes[-_FRAMES - 1].forget_frame()
        self.trim(change.time)

    def trim(self, now: float) -> None:
        """Forget changes that are too old or too many."""
        changes, keep = self._changes, self._keep
        while changes and (
            (len(changes) > keep.at_least and changes[0].time < now - keep.seconds)
            or len(changes) > keep.at_most
            or self._bytes > keep.most_bytes
        ):
            dropped = changes.popleft()
            self._bytes -= dropped.size
            self.floor = dropped.revision

    def since(self, revision: int) -> list[Change] | None:
        """Return the changes after a revision, oldest first; None if this does not reach back that far."""
        if revision < self.floor:
            return None
        recent = list(takewhile(lambda change: change.revision > revision, reversed(self._changes)))
        recent.reverse()
        return recent

    def clear(self, floor: int) -> None:
        self._changes.clear()
        self._bytes = 0
        self.floor = floor
