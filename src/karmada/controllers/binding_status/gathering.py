"""When the reports of a binding's Works are read: rarely for many clusters, at once for few.

Reading them takes as long as the binding has clusters, and writes an item for each. Were that done for every report,
the cost would be the square of the number of clusters. So the reports are counted, and read when an eighth of the
clusters has reported since they were last read, or after a while that grows with the number of clusters. The first
report after a quiet time is read at once.
"""

from __future__ import annotations

from typing import Final

from karmada.kube.objects.clock import Clock
from karmada.kube.runtime.keys import Key

SHARE: Final = 8
"""Reports of one cluster in so many are read at once."""
PER_CLUSTER: Final = 0.01
"""Seconds for which fewer are gathered, for each cluster: a second for a hundred."""
MOST: Final = 10.0
"""Seconds for which they are gathered at most."""


def enough(clusters: int) -> int:
    """So many reports are worth reading at once."""
    return -(-clusters // SHARE)


def pause(clusters: int) -> float:
    """Seconds until fewer reports are read."""
    return min(MOST, PER_CLUSTER * clusters)


class _Wait:
    __slots__ = ("for_missing", "reports", "until", "wanted")

    def __init__(self, wanted: int, until: float, *, for_missing: bool) -> None:
        self.wanted = wanted
        self.until = until
        self.for_missing = for_missing
        self.reports = 0


class Gathering:
    """The reports that are awaited for each binding. One whose every report is worth reading has no entry."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waits: dict[Key, _Wait] = {}

    def reported(self, key: Key) -> None:
        wait = self._waits.get(key)
        if wait is not None:
            wait.reports += 1

    def remaining(self, key: Key) -> float:
        """Seconds until the reports are to be read; 0 when they are now."""
        wait = self._waits.get(key)
        if wait is None or wait.reports >= wait.wanted:
            return 0.0
        return max(0.0, wait.until - self._clock.monotonic())

    def await_missing(self, key: Key, missing: int, seconds: float) -> float:
        """So many clusters have not reported yet: how long to wait for them, `seconds` at most from the first call."""
        wait, now = self._waits.get(key), self._clock.monotonic()
        until = wait.until if wait is not None and wait.for_missing else now + seconds
        if until <= now:
            return 0.0
        self._waits[key] = _Wait(missing, until, for_missing=True)
        return until - now

    def was_read(self, key: Key, clusters: int) -> None:
        """Record that all reports up to now are in the status."""
        if enough(clusters) > 1:
            until = self._clock.monotonic() + pause(clusters)
            self._waits[key] = _Wait(enough(clusters), until, for_missing=False)
        else:
            self.forget(key)

    def forget(self, key: Key) -> None:
        self._waits.pop(key, None)
