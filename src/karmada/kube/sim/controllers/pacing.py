"""Batching: changes of a key that come close together are reconciled once.

A key's first change starts a short wait; what changes meanwhile joins it. A key that keeps changing waits longer each
time. The wait ends only when the reconcile succeeds: a key that failed is not delayed again, so that the queue's
back-off stays in force.
"""

from __future__ import annotations

from karmada.kube.objects.clock import Clock
from karmada.kube.objects.memo import Memo
from karmada.kube.runtime.keys import Key

ENDPOINT_SECONDS = 0.01
BUSY_FACTOR = 4
"""So many times longer is the wait of a key that was worked on a moment ago."""
_MOMENT_FACTOR = 10
_REMEMBERED = 1024


class Pacing:
    def __init__(self, clock: Clock, seconds: float = ENDPOINT_SECONDS) -> None:
        self._clock = clock
        self._seconds = seconds
        self._due: dict[Key, float] = {}
        self._worked: Memo[Key, bool] = Memo(_REMEMBERED, seconds=_MOMENT_FACTOR * seconds, clock=clock)

    def left(self, key: Key) -> float:
        """Seconds to wait before working on the key; 0 when it is time."""
        now = self._clock.monotonic()
        due = self._due.get(key)
        if due is None:
            due = self._due[key] = now + self._seconds * (BUSY_FACTOR if self._worked.get(key) else 1)
        return max(0.0, due - now)

    def done(self, key: Key) -> None:
        """Record that the work succeeded: the next change starts a new wait."""
        self._due.pop(key, None)
        self._worked.put(key, True)
