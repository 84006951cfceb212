"""Delays between reconciles of large workloads, proportional to their number of pods.

Every change of one pod would have all pods of its workload counted again, which is too much while thousands of them
start one after the other. A change of the workload itself ends the delay.
"""

from __future__ import annotations

from karmada.kube.objects.clock import Clock
from karmada.kube.objects.meta import generation
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key, key_of

_LARGE = 200
_SECONDS_PER_POD = 100e-6


class Resting:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until: dict[Key, tuple[float, int]] = {}

    def left(self, workload: Obj) -> float:
        """Seconds until the next reconcile; 0 when it is due."""
        until, seen = self._until.get(key_of(workload), (0.0, -1))
        return max(0.0, until - self._clock.monotonic()) if seen == generation(workload) else 0.0

    def counted(self, workload: Obj, size: int) -> None:
        """Start the delay after a reconcile that only counted."""
        if size >= _LARGE:
            until = self._clock.monotonic() + size * _SECONDS_PER_POD
            self._until[key_of(workload)] = until, generation(workload)

    def forget(self, key: Key) -> None:
        self._until.pop(key, None)
