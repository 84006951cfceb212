"""The result of scheduling a request, with the steps it took: enough to explain it later.

A decision has one attempt, or one for each group of clusters that was tried. A failure is a value: a reason that
programs read and a text that people read. The reason decides what the binding's condition says and whether trying again
can help. Failing to write a result is a failure too, and may come together with one of the algorithm; `verdict` is what
to report of all that. A binding that no cluster fits is not tried again: only another cluster, binding or placement
changes that, and those are events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.types import Obj

if TYPE_CHECKING:
    from karmada.estimator.amounts import Ints
    from karmada.scheduler.assignment import Assignment
    from karmada.scheduler.candidates import Candidates
    from karmada.scheduler.estimators.protocol import Estimate
    from karmada.scheduler.ranking import Ranking
    from karmada.scheduler.request import Request


SUCCESS = "Success"
SUCCESS_TEXT = "Binding has been scheduled successfully."
_FORBIDDEN = 403


class Reason(StrEnum):
    """The reason of the condition Scheduled when it is False."""

    NO_CLUSTER_FIT = "NoClusterFit"
    UNSCHEDULABLE = "Unschedulable"
    QUOTA_EXCEEDED = "QuotaExceeded"
    SCHEDULER_ERROR = "SchedulerError"


class Failure(NamedTuple):
    reason: Reason
    text: str

    def during(self, step: str) -> Failure:
        """Return the failure with the step it happened in."""
        return Failure(self.reason, f"{step}: {self.text}")

    def __str__(self) -> str:
        return self.text


class Verdict(NamedTuple):
    """The content of the condition Scheduled, and whether the binding is tried again."""

    status: str
    reason: str
    message: str
    retry: bool


def no_fit(clusters: int, reasons: Iterable[str]) -> Failure:
    """Return the failure that no cluster passed the filters; `reasons` has one for each cluster."""
    counted = sorted(f"{count} {reason}" for reason, count in Counter(reasons).items())
    texts = ", ".join(counted) or "no cluster exists"
    return Failure(Reason.NO_CLUSTER_FIT, f"0/{clusters} clusters are available: {texts}.")


def shortage(room: int) -> Failure:
    return Failure(Reason.UNSCHEDULABLE, f"Clusters available replicas {room} are not enough to schedule.")


TIERS_SHORTAGE = Failure(Reason.UNSCHEDULABLE, "Clusters available replicas are not enough to schedule.")
"""All tiers together have too little room."""


def error(text: str) -> Failure:
    return Failure(Reason.SCHEDULER_ERROR, text)


def verdict(failure: Failure | None, writes: Sequence[Exception] = ()) -> Verdict:
    """Return what to report of a run, from its failure, if any, and what went wrong when its result was written."""
    if not writes:
        if failure is None:
            return Verdict("True", SUCCESS, SUCCESS_TEXT, False)
        return Verdict("False", failure.reason, failure.text, failure.reason is not Reason.NO_CLUSTER_FIT)
    if failure is not None and failure.reason is Reason.UNSCHEDULABLE:
        return Verdict("False", failure.reason, together(failure, writes), True)
    if failure is not None and failure.reason is Reason.NO_CLUSTER_FIT:
        return Verdict("False", failure.reason, together(failure, writes), True)
    for wrong in writes:
        if is_quota_exceeded(wrong):
            return Verdict("False", Reason.QUOTA_EXCEEDED, str(wrong), True)
    return Verdict("False", Reason.SCHEDULER_ERROR, together(failure, writes), True)


def is_quota_exceeded(wrong: Exception) -> bool:
    """Return whether a write was refused because a federated quota would be overdrawn."""
    return (
        isinstance(wrong, ApiError)
        and wrong.http_code == _FORBIDDEN
        and wrong.status_reason == Reason.QUOTA_EXCEEDED.value
    )


def together(failure: Failure | None, writes: Sequence[Exception]) -> str:
    """Return one text of several errors; each text once, in brackets when there are several."""
    texts = ([failure.text] if failure is not None else []) + [str(wrong) for wrong in writes]
    distinct = list(dict.fromkeys(texts))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


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
