"""Back-off per member: after a failed connection no Work is tried for a while, and longer after each failure.

Without it, every Work of an unreachable member would be retried until the member is marked not ready. Here one of them
tries after every pause, and the first response ends the outage.
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
    """A caller may have tried since the last pause."""


class Outages(dict[str, _Outage]):
    """Outages by cluster. A response, or a sign that the member is back, ends one: it is removed."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def hold(self, cluster: str) -> float:
        """Seconds to wait before the next request during an outage; 0 for the caller that may try."""
        outage = self[cluster]
        now = self._clock.monotonic()
        if now < outage.until:
            return outage.until - now
        outage.until = now + outage.pause
        outage.trying = True
        return 0.0

    def left(self, cluster: str) -> float:
        """Seconds until somebody may try, for those who have just failed."""
        outage = self.get(cluster)
        return 0.0 if outage is None else max(_FIRST, outage.until - self._clock.monotonic())

    def failed(self, cluster: str) -> None:
        """Record that a connection failed. Failures of calls that were under way together count once."""
        now = self._clock.monotonic()
        outage = self.get(cluster)
        if outage is None:
            self[cluster] = _Outage(_FIRST, now + _FIRST)
        elif outage.trying:
            outage.trying = False
            outage.pause = min(_MOST, outage.pause * 2)
            outage.until = now + outage.pause
