"""Doing less: changes that come close together are reconciled once, and own writes do not requeue.

A key's first change starts a short wait; what changes meanwhile joins it. A key that keeps changing waits longer each
time. The wait is over for good only when the work is done: a key whose work failed is not held up again, so that the
queue's growing back-off stays in force.
"""

from __future__ import annotations

from collections.abc import Iterable

from karmada.kube.objects.clock import Clock
from karmada.kube.objects.types import Obj
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
        self._worked: dict[Key, float] = {}

    def left(self, key: Key) -> float:
        """Seconds to wait before working on the key; 0 when it is time."""
        now = self._clock.monotonic()
        due = self._due.get(key)
        if due is None:
            busy = self._worked.get(key, 0.0) > now - _MOMENT_FACTOR * self._seconds
            due = self._due[key] = now + self._seconds * (BUSY_FACTOR if busy else 1)
        return max(0.0, due - now)

    def done(self, key: Key) -> None:
        """The work succeeded: the next change starts a new wait."""
        now = self._clock.monotonic()
        self._due.pop(key, None)
        self._worked[key] = now
        if len(self._worked) > _REMEMBERED:
            since = now - _MOMENT_FACTOR * self._seconds
            self._worked = {key: at for key, at in self._worked.items() if at > since}


class OwnWrites:
    """The versions a controller is just writing: their events do not requeue the object."""

    def __init__(self) -> None:
        self._versions: set[str] = set()

    def note(self, written: Obj) -> Obj:
        self._versions.add(written["metadata"]["resourceVersion"])
        return written

    def forget(self, written: Iterable[Obj]) -> None:
        """The informers know them."""
        self._versions.difference_update(obj["metadata"]["resourceVersion"] for obj in written)

    def __contains__(self, obj: Obj) -> bool:
        return obj["metadata"].get("resourceVersion") in self._versions
