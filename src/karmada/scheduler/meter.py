"""Observer of how long scheduling takes; the default one does nothing.

The algorithm reports the time of its steps and of the plug-ins that ran in them. What looks at clusters one by one is
timed for all of them together, and not at all when its answers were known already.
"""

from __future__ import annotations

from typing import Protocol

FILTER, SCORE = "Filter", "Score"
"""Where plug-ins take part."""
SUCCESS, UNSCHEDULABLE, ERROR = "Success", "Unschedulable", "Error"
"""How it went. Of a filter UNSCHEDULABLE means that it refused clusters, of all filters that they left none."""


class Meter(Protocol):
    """Times are in seconds."""

    def now(self) -> float: ...

    def filtered(self, outcome: str, seconds: float) -> None: ...

    def scored(self, outcome: str, seconds: float) -> None: ...

    def selected(self, seconds: float) -> None: ...

    def assigned(self, seconds: float) -> None: ...

    def plugin(self, name: str, point: str, outcome: str, seconds: float) -> None:
        """Note that a filter or a score has run."""
        ...

    def estimated(self, seconds: float, *, sets: bool, failed: bool) -> None:
        """Note that all estimators have answered; `failed`: or some of them have not."""
        ...

    def estimator(self, name: str, seconds: float, *, sets: bool) -> None:
        """Note that one estimator has answered."""
        ...


class _Nobody:
    def now(self) -> float:
        return 0.0

    def filtered(self, outcome: str, seconds: float) -> None:
        pass

    def scored(self, outcome: str, seconds: float) -> None:
        pass

    def selected(self, seconds: float) -> None:
        pass

    def assigned(self, seconds: float) -> None:
        pass

    def plugin(self, name: str, point: str, outcome: str, seconds: float) -> None:
        pass

    def estimated(self, seconds: float, *, sets: bool, failed: bool) -> None:
        pass

    def estimator(self, name: str, seconds: float, *, sets: bool) -> None:
        pass


NO_METRICS: Meter = _Nobody()
