"""The result of scheduling a request, with the steps it took: enough to explain it later.

A decision has one attempt, or one for each group of clusters that was tried.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from karmada.kube.objects.types import Obj
from karmada.scheduler.failures import Failure

if TYPE_CHECKING:
    from karmada.estimator.amounts import Ints
    from karmada.scheduler.assignment import Assignment
    from karmada.scheduler.candidates import Candidates
    from karmada.scheduler.estimators.merge import Estimate
    from karmada.scheduler.ranking import Ranking
    from karmada.scheduler.request import Request


@dataclass(slots=True)
class Attempt:
    """Steps are None from where it failed on."""

    request: Request
    index: int
    """The index of the group of clusters; 0 if there are no groups."""
    candidates: Candidates
    estimate: Estimate | None = None
    ranking: Ranking | None = None
    selected: Ints | None = None
    """Places in the ranking."""
    assignment: Assignment | None = None
    """None also when nothing was divided: then all selected clusters are targets without a number."""
    targets: list[Obj] = field(default_factory=list)
    failure: Failure | None = None

    @property
    def affinity_name(self) -> str:
        """Return the group of clusters; empty if there are no groups."""
        return self.request.affinity_name if self.request.plan.terms else ""


@dataclass(slots=True)
class Decision:
    attempts: list[Attempt]

    @property
    def targets(self) -> list[Obj]:
        """Return the new spec.clusters; empty if scheduling failed."""
        return self.attempts[-1].targets

    @property
    def failure(self) -> Failure | None:
        """With groups of clusters, why the first one that was tried failed, if all did."""
        return self.attempts[0].failure if self.attempts[-1].failure is not None else None

    @property
    def affinity_name(self) -> str:
        """Return the group of clusters that was taken; empty if there are no groups or all failed."""
        last = self.attempts[-1]
        return last.affinity_name if last.failure is None else ""

    @property
    def failed_attempts(self) -> list[Attempt]:
        return [attempt for attempt in self.attempts if attempt.failure is not None]
