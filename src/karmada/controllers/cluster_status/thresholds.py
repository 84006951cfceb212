"""A cluster's Ready condition does not change on one observation: it must have been seen long enough.

What is remembered of a cluster is the status last observed and since when it is so. An observation that differs from
the stored condition counts once it has held for its threshold; until then the stored condition stays. Only the step
between True and not True is held back. The first observation of a process counts at once, and so does everything while
a cluster has no condition yet.
"""

from __future__ import annotations

from dataclasses import dataclass

from karmada.kube.objects.types import Obj

_LONG_AGO = float("-inf")


@dataclass(frozen=True, slots=True)
class Memory:
    status: str
    since: float


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Seconds an observation must hold before it counts."""

    success: float
    failure: float

    def settle(self, memory: Memory | None, stored: Obj | None, observed: Obj, now: float) -> tuple[Memory, Obj]:
        """Return what to remember, and the condition that counts now: the observed or the stored one."""
        status: str = observed["status"]
        if memory is None:
            return Memory(status, _LONG_AGO), observed
        if stored is None:
            return memory, observed
        if memory.status != status:
            memory = Memory(status, now)
        good = status == "True"
        limit = self.success if good else self.failure
        if good != (stored.get("status") == "True") and now < memory.since + limit:
            return memory, stored
        return memory, observed
