"""Why a decision is as it is, cluster by cluster, for people.

Nothing of this is computed while scheduling: a decision keeps its steps, and the text is made from them on request.
A cluster was refused by a filter, or was not selected, or was selected and got a number of replicas for a reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from karmada.estimator.terms import MAX_REPLICAS
from karmada.scheduler.assignment import Divided
from karmada.scheduler.decision import Attempt, Decision
from karmada.scheduler.estimators.protocol import UNKNOWN
from karmada.scheduler.estimators.shortage import shortage
from karmada.scheduler.placement import BY_DUPLICATION

_SHORT = {
    "general-estimator": "summary",
    "scheduler-estimator": "estimator",
    "in-process-estimator": "in-process estimator",
}
"""The source of the figures: the resource summary of the Cluster, or the nodes and Pods of the member."""


class Fate(StrEnum):
    REFUSED = "refused"
    LEFT_OUT = "not selected"
    SELECTED = "selected"
    DELETING = "being deleted"


@dataclass(frozen=True, slots=True)
class ClusterReason:
    """`filter` is the one that refused it; the fields after it are of candidates.

    `room` is for further replicas: the least that estimators report, which are in `estimates` by name.
    """

    cluster: str
    fate: Fate
    why: str
    filter: str = ""
    score: int | None = None
    room: int | None = None
    replicas: int | None = None
    estimates: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.cluster}: {self.fate}, {self.why}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """One attempt: the outcome in a sentence, and a reason for every cluster, in the order of names."""

    affinity_name: str
    outcome: str
    clusters: list[ClusterReason]

    def __str__(self) -> str:
        title = f"{self.affinity_name}: {self.outcome}" if self.affinity_name else self.outcome
        return "\n".join([title, *(f"  {cluster}" for cluster in self.clusters)])


def explain(decision: Decision) -> list[Explanation]:
    """Return one explanation for each attempt, in order."""
    return [explain_attempt(attempt) for attempt in decision.attempts]


def explain_attempt(attempt: Attempt) -> Explanation:
    clusters = sorted([*_refused(attempt), *_candidates(attempt)], key=lambda reason: reason.cluster)
    return Explanation(attempt.affinity_name, _outcome(attempt), clusters)


def _outcome(attempt: Attempt) -> str:
    text = attempt.failure.text if attempt.failure is not None else f"{len(attempt.targets)} cluster(s)"
    failures = attempt.estimate.failures if attempt.estimate is not None else []
    return text + "".join(f"; without {name}: {why}" for name, why in failures)


def _refused(attempt: Attempt) -> Iterator[ClusterReason]:
    candidates = attempt.candidates
    fleet = candidates.fleet
    for name, filter_name, reason in candidates.reasons():
        yield ClusterReason(name, Fate.REFUSED, f"{filter_name}: {reason}", filter_name)
    for slot in np.flatnonzero(fleet.deleting).tolist():
        yield ClusterReason(fleet.names[slot], Fate.DELETING, "the Cluster has a deletionTimestamp")


def _candidates(attempt: Attempt) -> Iterator[ClusterReason]:
    ranking = attempt.ranking
    if ranking is None:
        for slot in attempt.candidates.slots.tolist():
            yield ClusterReason(attempt.candidates.fleet.names[slot], Fate.LEFT_OUT, "nothing was selected")
        return
    selected = {} if attempt.selected is None else {place: n for n, place in enumerate(attempt.selected.tolist())}
    replicas = {target["name"]: target.get("replicas") for target in attempt.targets}
    estimates = _estimates(attempt)
    for place, name in enumerate(ranking.names(np.arange(len(ranking.slots)))):
        score, room = int(ranking.score[place]), int(ranking.room[place])
        here = estimates[int(ranking.slots[place])]
        rank = f"number {place + 1} of {len(ranking.slots)} with score {score} and {_room(room, here)}"
        if room == 0:
            cause = shortage(attempt.candidates.fleet.cluster(int(ranking.slots[place])), attempt.request.requirements)
            rank += f" ({cause})" if cause else ""
        if place not in selected:
            why = f"{rank}; {_left_out(attempt)}"
            yield ClusterReason(name, Fate.LEFT_OUT, why, score=score, room=room, estimates=here)
        else:
            why = f"{rank}; {_share(attempt, name)}"
            given = replicas.get(name)
            yield ClusterReason(name, Fate.SELECTED, why, score=score, room=room, replicas=given, estimates=here)


def _estimates(attempt: Attempt) -> dict[int, dict[str, int]]:
    """Return the estimates by slot and estimator, where the estimator knows; in the order of the estimators."""
    slots: list[int] = attempt.candidates.slots.tolist()
    found: dict[int, dict[str, int]] = {slot: {} for slot in slots}
    for name, answer in attempt.estimate.answers if attempt.estimate is not None else ():
        for slot, count in zip(slots, answer.tolist(), strict=True):
            if count != UNKNOWN:
                found[slot][name] = count
    return found


def _room(room: int, estimates: Mapping[str, int]) -> str:
    """Return the room with the estimator that decided, and what others report."""
    if room >= MAX_REPLICAS:
        return "room for any number of replicas"
    text = f"room for {room} more replica(s)"
    decided = [name for name, count in estimates.items() if count == room]
    if not decided:
        return f"{text} as wanted, since no estimator knows"
    others = [f"{count} by {_short(name)}" for name, count in estimates.items() if name != decided[-1]]
    return f"{text} by {_short(decided[-1])}" + (f" ({', '.join(others)})" if others else "")


def _short(estimator: str) -> str:
    return _SHORT.get(estimator, estimator)


def _left_out(attempt: Attempt) -> str:
    if attempt.selected is None:
        return "nothing was selected"
    return f"{len(attempt.selected)} cluster(s) were selected by the spread constraints"


def _share(attempt: Attempt, name: str) -> str:
    if attempt.assignment is None:
        return "no replicas were assigned" if attempt.failure is not None else "gets the resource as it is"
    for tier, divided in attempt.assignment.tiers:
        if name in divided.shares:
            prefix = f"in tier {tier}: " if len(attempt.assignment.tiers) > 1 else ""
            return prefix + _in_division(attempt, divided, name)
    return "gets 0 replicas, as others have room for all"


def _in_division(attempt: Attempt, divided: Divided, name: str) -> str:
    count, had = divided.shares[name], attempt.request.previous.get(name, 0)
    if attempt.request.plan.strategy == BY_DUPLICATION or not divided.weights:
        return f"{count} replica(s), {divided.how}"
    weight, total = divided.weights.get(name, 0), sum(divided.weights.values())
    share = f"weight {weight} of {total} in {divided.placed} replica(s)"
    before = f", had {had}" if had else ""
    return f"{count} replica(s), {divided.how}: {share}{before}"
