"""Back-off of failed daemon pods: replaced at once the first time on a node, then after growing delays.

Kept in memory only: a restart of the controller resets it.
"""

from __future__ import annotations

from karmada.kube.runtime.back_off import BackOff
from karmada.kube.runtime.keys import Key

BACK_OFF = BackOff(1.0, 900.0)
_FORGET_AFTER = 2 * BACK_OFF.max_delay


class Replacements:
    def __init__(self) -> None:
        self._replaced: dict[Key, dict[str, tuple[int, float]]] = {}
        """How often in a row, and when for the last time."""

    def wait(self, workload: Key, node: str, now: float) -> float:
        """Seconds until the next failed pod of a workload on a node may be replaced; 0 when it may be now."""
        times, since = self._replaced.get(workload, {}).get(node, (0, 0.0))
        return max(0.0, since + BACK_OFF.pause(times - 1) - now) if times else 0.0

    def replaced(self, workload: Key, node: str, now: float) -> None:
        """Record a replacement: the delay of the next one doubles, unless there is no failure for long."""
        replaced = self._replaced.setdefault(workload, {})
        times, since = replaced.get(node, (0, now))
        replaced[node] = (1 if now - since > _FORGET_AFTER else times + 1, now)

    def forget(self, workload: Key) -> None:
        self._replaced.pop(workload, None)
