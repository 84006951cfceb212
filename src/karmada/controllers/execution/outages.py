"""Members that do not answer: after a failed connection everybody holds back for a while, and longer each time.

Without this, every Work for a member that has just died would be tried again and again until the member is noted as not
ready. Now one of them tries after every pause, and the first answer ends it.
"""

from __future__ import annotations

from dataclasses import dataclass

from karmada.kube.objects.clock import Clock

_FIRST = 0.25
_MOST = 8.0


@dataclass(slots=True)
class _Outage:
    pause: float
    until: float
    trying: bool = False
    """Somebody was let through after the last pause."""


class Outages:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._outages: dict[str, _Outage] = {}

    def hold(self, cluster: str) -> float:
        """Seconds for which to leave the cluster alone; 0 for whoever may try."""
        outage = self._outages.get(cluster)
        if outage is None:
            return 0.0
        now = self._clock.monotonic()
        if now < outage.until:
            return outage.until - now
        outage.until = now + outage.pause
        outage.trying = True
        return 0.0

    def failed(self, cluster: str) -> None:
        """A connection failed. Failures of calls that were under way together count once."""
        now = self._clock.monotonic()
        outage = self._outages.get(cluster)
        if outage is None:
            self._outages[cluster] = _Outage(_FIRST, now + _FIRST)
        elif outage.trying:
            outage.trying = False
            outage.pause = min(_MOST, outage.pause * 2)
            outage.until = now + outage.pause

    def over(self, cluster: str) -> bool:
        """It answered, or there is reason to believe that it will; whether that is news."""
        return self._outages.pop(cluster, None) is not None
