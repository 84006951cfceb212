"""Scheduling on trial: a binding decided with clusters that fail or are cordoned, by the control plane's own rules."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from karmada.kube.objects.types import Obj
from karmada.prediction import scheduling
from karmada.prediction.errors import PredictionError
from karmada.prediction.failing import Failover

if TYPE_CHECKING:
    from karmada.scheduler.decision import Decision
    from karmada.scheduler.estimators.answered import Answered
    from karmada.scheduler.fitting.suggestions import Advice
    from karmada.scheduler.fleet import Fleet as Clusters

_ADVICE_SECONDS = 3.0
"""How long to look for what would make things fit, for all of them together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What is to be other than it is."""

    failing: frozenset[str] = frozenset()
    cordoned: frozenset[str] = frozenset()
    replicas: int | None = None
    anew: bool = False
    rebalance: bool = False
    """Whether a WorkloadRebalancer lists what is scheduled."""
    with_failover: bool = False


@dataclass(slots=True)
class Outcome:
    resource: Obj
    policy: str
    before: list[Obj]
    """Where it is now."""
    decision: Decision
    notes: list[str] = field(default_factory=list)
    estimates: Sequence[Answered] = ()
    """What the decision was made with, besides the clusters' summaries."""
    advice: Advice | None = None
    """What would make it fit; None if it fits, or if there was no time left to find out."""

    @property
    def namespace(self) -> str:
        return str(self.resource["metadata"].get("namespace", ""))

    @property
    def after(self) -> list[Obj]:
        """Where it is then: what cannot be scheduled stays, unless no cluster fits it any more."""
        failure = self.decision.failure
        return self.before if failure is not None and failure.reason != "NoClusterFit" else self.decision.targets


def check(clusters: Sequence[Obj], names: Iterable[str]) -> None:
    """PredictionError for a cluster that is not joined."""
    known = sorted(cluster["metadata"]["name"] for cluster in clusters)
    for name in sorted(names):
        if name not in known:
            raise PredictionError(f'cluster "{name}" is not joined (known: {", ".join(known) or "none"})')


@dataclass(frozen=True)
class Fleet:
    """The clusters as they would be, how failures are handled, and the bindings that matter for affinity."""

    clusters: Sequence[Obj]
    failover: Failover
    others: Sequence[Obj]

    @cached_property
    def snapshot(self) -> Clusters:
        """For the scheduler, which keeps what it has found out about its clusters."""
        from karmada.scheduler.fleet import Fleet as Clusters

        return Clusters.of(self.clusters)


def decide(
    scheduler: scheduling.Scheduler,
    resource: Obj,
    policy: str,
    spec: Obj,
    binding: Obj | None,
    state: Fleet,
    trial: Trial,
    notes: list[str],
    estimates: Sequence[Answered] = (),
) -> Outcome:
    """What the scheduler would decide on a binding's spec, with the clusters as they would be.

    `estimates` are what the estimators of the running scheduler report for it.
    """
    before = ((binding or {}).get("spec") or {}).get("clusters") or []
    status = (binding or {}).get("status") or {}
    tasks = ((binding or {}).get("spec") or {}).get("gracefulEvictionTasks") or []
    staying = _staying(spec, before, state, trial)
    leaving = {target["name"] for target in before if target["name"] in trial.failing} - staying.keys()
    kept = [] if trial.anew else [target for target in before if target["name"] not in leaving]
    tasks = [*tasks, *({"fromCluster": name} for name in sorted(leaving))]
    spec = {**spec, "clusters": kept, "gracefulEvictionTasks": tasks}
    notes = [*notes, *dict.fromkeys(staying.values())]
    name = "" if trial.anew else status.get("schedulerObservingAffinityName") or ""
    fresh = trial.rebalance and bool(status.get("lastScheduledTime"))
    clusters, others = state.snapshot, state.others
    decision = scheduler.decide(spec, clusters, others, affinity_name=name, fresh=fresh, estimates=estimates)
    return Outcome(resource, policy, list(before), decision, notes, estimates)


def _staying(spec: Obj, before: Sequence[Obj], state: Fleet, trial: Trial) -> dict[str, str]:
    """The failed clusters that it does not leave, and why."""
    there = {target["name"] for target in before} & trial.failing
    failed = {cluster["metadata"]["name"]: cluster for cluster in state.clusters}
    reasons = {name: state.failover.reason_to_stay(spec, failed[name]) for name in sorted(there)}
    return {name: reason for name, reason in reasons.items() if reason}


def changed(cluster: Obj, trial: Trial, failover: Failover) -> Obj:
    """A cluster as it would be."""
    from karmada.api.well_known import NO_SCHEDULE, TAINT_UNSCHEDULABLE

    name = cluster["metadata"]["name"]
    if name in trial.failing:
        cluster = failover.failed(cluster)
    if name in trial.cordoned:
        taints = [*(cluster["spec"].get("taints") or ()), {"key": TAINT_UNSCHEDULABLE, "effect": NO_SCHEDULE}]
        cluster = {**cluster, "spec": {**cluster["spec"], "taints": taints}}
    return cluster


def advise(scheduler: scheduling.Scheduler, outcomes: Sequence[Outcome], quotas: Mapping[str, Sequence[Obj]]) -> None:
    """Say what would make things fit, for as many as there is time for; quotas are by namespace."""
    end = time.monotonic() + _ADVICE_SECONDS
    for outcome in outcomes:
        left = min(end - time.monotonic(), scheduling.ADVICE_SECONDS)
        if left > 0:
            outcome.advice = scheduler.advise(
                outcome.decision, quotas[outcome.namespace], outcome.estimates, seconds=left
            )
