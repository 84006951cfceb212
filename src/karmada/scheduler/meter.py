"""Observer of how long scheduling takes; the default one does nothing.

The algorithm reports the time of its steps and of the plug-ins that ran in them. What looks at clusters one by one is
timed for all of them together, and not at all when its answers were known already.
"""

from __future__ import annotations

from typing import Final, Protocol

FILTER, SCORE, SELECT, ASSIGN = "Filter", "Score", "Select", "AssignReplicas"
"""Steps. Estimating is one, too: what is estimated (see estimator/terms)."""
SUCCESS, UNSCHEDULABLE, ERROR = "Success", "Unschedulable", "Error"
"""How it went. Of a filter UNSCHEDULABLE means that it refused clusters, of all filters that they left none."""


class Meter(Protocol):
    """Times are in seconds."""

    def now(self) -> float: ...

    def took(self, step: str, seconds: float, outcome: str = SUCCESS, plugin: str = "") -> None:
        """Note how long a step took, or a plug-in that took part in it. Of estimates, ERROR: some are missing."""
        ...


class _Nobody:
    def now(self) -> float:
        return 0.0

    def took(self, step: str, seconds: float, outcome: str = SUCCESS, plugin: str = "") -> None:
        pass


NO_METRICS: Final[Meter] = _Nobody()
