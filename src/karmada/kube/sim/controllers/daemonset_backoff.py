"""Back-off of failed daemon pods: replaced at once the first time on a node, then after growing delays.

Kept in memory only: a restart of the controller resets it.
"""

from __future__ import annotations

from karmada.kube.runtime.keys import Key

FIRST_SECONDS, MOST_SECONDS = 1.0, 900.0
_FORGET_AFTER = 2 * MOST_SECONDS


class FailureBackoff:
    def __init__(self) -> None:
        self._pauses: dict[Key, dict[str, tuple[float, float]]] = {}

    def wait(self, workload: Key, node: str, now: float) -> float:
        """Seconds until the next failed pod of a workload on a node may be replaced; 0 when it may be now."""
        pause, since = self._pauses.get(workload, {}).get(node, (0.0, 0.0))
        return max(0.0, since + pause - now)

    def replaced(self, workload: Key, node: str, now: float) -> None:
        """Record a replacement: the delay of the next one doubles, unless there is no failure for long."""
        pauses = self._pauses.setdefault(workload, {})
        pause, since = pauses.get(node, (0.0, now))
        fresh = not pause or now - since > _FORGET_AFTER
        pauses[node] = (FIRST_SECONDS if fresh else min(MOST_SECONDS, pause * 2), now)

    def forget(self, workload: Key) -> None:
        self._pauses.pop(workload, None)
