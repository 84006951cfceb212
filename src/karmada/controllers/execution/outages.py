"""Members that do not answer: after a failed connection everybody holds back for a while, and longer each time.

Without this, every Work for a member that has just died would be tried again and again until the member is noted as not
ready. Now a handful of tries show that it is still away, and the first answer ends it.
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


class Outages:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._outages: dict[str, _Outage] = {}

    def left(self, cluster: str) -> float:
        """Seconds for which the cluster is better left alone."""
        outage = self._outages.get(cluster)
        return 0.0 if outage is None else max(0.0, outage.until - self._clock.monotonic())

    def failed(self, cluster: str) -> None:
        """A connection failed. Failures of calls that were under way together count once."""
        now = self._clock.monotonic()
        outage = self._outages.get(cluster)
        if outage is None:
            self._outages[cluster] = _Outage(_FIRST, now + _FIRST)
        elif now >= outage.until:
            outage.pause = min(_MOST, outage.pause * 2)
            outage.until = now + outage.pause

    def over(self, cluster: str) -> bool:
        """It answered, or there is reason to believe that it will; whether that is news."""
        return self._outages.pop(cluster, None) is not None
