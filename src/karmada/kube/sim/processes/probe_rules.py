"""The rules of probes as pure data: when a probe is due, and what a number of results in a row means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from karmada.kube.objects.types import Obj

Kind = Literal["startupProbe", "readinessProbe", "livenessProbe"]
_WORDS: dict[Kind, str] = {"startupProbe": "Startup", "readinessProbe": "Readiness", "livenessProbe": "Liveness"}


@dataclass(frozen=True, slots=True)
class Timing:
    """The numbers of a probe in seconds, with Kubernetes' defaults."""

    initial_delay: float
    period: float
    timeout: float
    failures: int
    successes: int

    @classmethod
    def of(cls, probe: Obj) -> Timing:
        return cls(
            float(probe.get("initialDelaySeconds") or 0),
            float(probe.get("periodSeconds") or 10),
            float(probe.get("timeoutSeconds") or 1),
            int(probe.get("failureThreshold") or 3),
            int(probe.get("successThreshold") or 1),
        )


@dataclass(slots=True)
class Streak:
    """Counts equal results in a row; the verdict changes when a threshold is reached."""

    timing: Timing
    verdict: bool
    """Until the first threshold is reached, what holds at the start: alive, but not ready and not started."""
    _last: bool | None = None
    _count: int = 0

    def add(self, passed: bool) -> bool:
        """Return whether a threshold was reached with this result, be it again."""
        self._count = self._count + 1 if passed == self._last else 1
        self._last = passed
        if self._count < (self.timing.successes if passed else self.timing.failures):
            return False
        self.verdict = passed
        return True


def title(kind: Kind) -> str:
    """Return how events call the probe."""
    return _WORDS[kind]
