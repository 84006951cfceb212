"""Scheduling on trial: a binding decided with clusters that fail or are cordoned, by the control plane's own rules."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from karmada.kube.objects.types import Obj
from karmada.prediction.failing import Failover, failover_of
from karmada.prediction.intended_binding import name_of
from karmada.prediction.scheduling import counts
from karmada.prediction.world import ADVICE_SECONDS, World

if TYPE_CHECKING:
    from karmada.scheduler.decision import Decision
    from karmada.scheduler.fitting.situation import Situation
    from karmada.scheduler.fitting.suggestions import Advice

_ADVICE_SECONDS = 3.0
"""How long to look for what would make things fit, for all of them together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """The circumstances of a trial, where they differ from the present ones."""

    failing: frozenset[str] = frozenset()
    cordoned: frozenset[str] = frozenset()
    replicas: int | None = None
    anew: bool = False
    rebalance: bool = False
    """True if a WorkloadRebalancer lists what is scheduled."""
    with_failover: bool = False


@dataclass(slots=True)
class Outcome:
    resource: Obj
    policy: str
    before: list[Obj]
    """Where it is now."""
    situation: Situation
    """Everything that the decision depended on."""
    decision: Decision
    notes: list[str] = field(default_factory=list)
    advice: Advice | None = None
    """Changes that would make it fit; None if it fits, or if there was no time left to find out."""

    @property
    def after(self) -> list[Obj]:
        """Return where it is then: what cannot be scheduled stays, unless no cluster fits it any more."""
        failure = self.decision.failure
        return self.before if failure is not None and failure.reason != "NoClusterFit" else self.decision.targets

    @property
    def title(self) -> str:
        return f"{self.resource['kind']} {name_of(self.resource)}"

    @property
    def divided(self) -> bool:
        """Return True if clusters get numbers of replicas."""
        return self.situation.request.divides_replicas

    @property
    def same(self) -> bool:
        return self.decision.failure is None and counts(self.before) == counts(self.after)

    @property
    def moves(self) -> int:
        """Replicas that would start in a cluster that has fewer of them now."""
        before = counts(self.before)
        return sum(max(0, count - before.get(name, 0)) for name, count in counts(self.after).items())

    @property
    def copies(self) -> int:
        """Replicas, or copies of what has none, that would start in a cluster."""
        return self.moves if self.divided else len(counts(self.after).keys() - counts(self.before).keys())


async def begin(world: World, trial: Trial) -> Failover:
    """Have clusters fail and be cordoned in the world; return how failures are handled there."""
    from karmada.api.cluster import Cluster

    clusters = await world.clusters(*trial.failing, *trial.cordoned)
    failover = await failover_of(world, assumed=trial.with_failover)
    for cluster in clusters:
        changed = _changed(cluster, trial, failover)
        if changed is not cluster:
            world.put(Cluster.gvr, changed)
    return failover


def _changed(cluster: Obj, trial: Trial, failover: Failover) -> Obj:
    from karmada.api.well_known import NO_SCHEDULE, TAINT_UNSCHEDULABLE

    name = cluster["metadata"]["name"]
    if name in trial.failing:
        cluster = failover.failed(cluster)
    if name in trial.cordoned:
        taints = [*(cluster["spec"].get("taints") or ()), {"key": TAINT_UNSCHEDULABLE, "effect": NO_SCHEDULE}]
        cluster = {**cluster, "spec": {**cluster["spec"], "taints": taints}}
    return cluster


async def decide(
    world: World,
    trial: Trial,
    failover: Failover,
    resource: Obj,
    policy: str,
    spec: Obj,
    binding: Obj | None,
    notes: Sequence[str] = (),
) -> Outcome:
    """Return what the scheduler would decide on a binding's spec in a world where the trial has begun."""
    before = ((binding or {}).get("spec") or {}).get("clusters") or []
    status = (binding or {}).get("status") or {}
    tasks = ((binding or {}).get("spec") or {}).get("gracefulEvictionTasks") or []
    staying = await _staying(world, spec, before, failover, trial)
    leaving = {target["name"] for target in before if target["name"] in trial.failing} - staying.keys()
    kept = [] if trial.anew else [target for target in before if target["name"] not in leaving]
    tasks = [*tasks, *({"fromCluster": name} for name in sorted(leaving))]
    situation = await world.situation(
        {**spec, "clusters": kept, "gracefulEvictionTasks": tasks},
        affinity_name="" if trial.anew else status.get("schedulerObservingAffinityName") or "",
        fresh=trial.rebalance and bool(status.get("lastScheduledTime")),
    )
    notes = [*notes, *dict.fromkeys(staying.values())]
    return Outcome(resource, policy, list(before), situation, world.decide(situation), notes)


async def _staying(world: World, spec: Obj, before: Sequence[Obj], failover: Failover, trial: Trial) -> dict[str, str]:
    """Return the failed clusters that it does not leave, and why."""
    there = {target["name"] for target in before} & trial.failing
    if not there:
        return {}
    failed = {cluster["metadata"]["name"]: cluster for cluster in await world.clusters()}
    reasons = {name: failover.reason_to_stay(spec, failed[name]) for name in sorted(there)}
    return {name: reason for name, reason in reasons.items() if reason}


def advise(world: World, outcomes: Sequence[Outcome]) -> None:
    """Say what would make things fit, for as many as there is time for."""
    end = time.monotonic() + _ADVICE_SECONDS
    for outcome in outcomes:
        left = min(end - time.monotonic(), ADVICE_SECONDS)
        if left > 0:
            outcome.advice = world.advise(outcome.situation, outcome.decision, seconds=left)
