"""What all metrics of an autoscaler propose together: the largest wins; one that fails never lets a target shrink."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from karmada.kube.autoscaling.replicas import Rules
from karmada.kube.autoscaling.sources import Reading, SourceFailed, Sources, Target
from karmada.kube.objects.types import Obj

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Proposals:
    current: int
    readings: Sequence[Reading | None]
    """One for each metric; None for those that failed."""
    failures: Sequence[SourceFailed]

    @property
    def best(self) -> Reading | None:
        found = [reading for reading in self.readings if reading is not None]
        return max(found, key=lambda reading: reading.replicas, default=None)

    @property
    def blocked(self) -> bool:
        """Return whether failures forbid to use the others: they might have proposed more."""
        best = self.best
        return best is None or (bool(self.failures) and best.replicas < self.current)

    @property
    def problem(self) -> str:
        """Return what failed, in one text; empty if nothing did."""
        if not self.failures:
            return ""
        count = f"{len(self.failures)} invalid out of {len(self.readings)}"
        return f"invalid metrics ({count}), first error is: {self.failures[0]}"

    @property
    def statuses(self) -> list[Obj]:
        return [reading.status if reading is not None else {"type": ""} for reading in self.readings]

    def reason(self, wanted: int) -> str:
        """Why replicas change, for the event; empty if they do not."""
        if wanted > self.current and self.best is not None:
            return f"{self.best.name} above target"
        return "All metrics below target" if wanted < self.current else ""


async def propose(
    sources: Sources[K], metrics: Sequence[Obj], target: Target[K], rules: Rules, now: float
) -> Proposals:
    readings: list[Reading | None] = []
    failures: list[SourceFailed] = []
    for metric in metrics:
        try:
            readings.append(await sources.read(metric, target, rules, now))
        except SourceFailed as failure:
            failures.append(failure)
            readings.append(None)
    return Proposals(target.wanted, readings, failures)
