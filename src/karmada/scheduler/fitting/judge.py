"""The verdict on a situation, whether it fits: the scheduler's own algorithm decides, on a fleet of its own.

Trials follow one another on one line of fleets, since kept arrays are only valid along one: the next trial's fleet is
the last one's with what it changed put back. So a trial costs a decision and a few rows, however many clusters there
are. Trials are limited in number, and in time, for fleets on which a single decision is slow.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from karmada.estimator.amounts import Ints
from karmada.kube.objects.types import Obj
from karmada.scheduler.algorithm import Profile, default_profile, schedule
from karmada.scheduler.decision import Decision
from karmada.scheduler.estimators.protocol import EstimateRequest, LocalEstimator, estimate_locally, settle
from karmada.scheduler.fitting.situation import Situation
from karmada.scheduler.fleet import Fleet
from karmada.scheduler.meter import NO_METRICS

TRIALS = 800
SECONDS = 1.0


class OutOfTrials(Exception):
    """No more trials: what was found so far is all there is."""


class Judge:
    def __init__(
        self,
        estimators: Sequence[LocalEstimator],
        profile: Profile | None = None,
        *,
        trials: int = TRIALS,
        seconds: float = SECONDS,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._estimators = estimators
        self._profile = replace(profile or default_profile(), meter=NO_METRICS)
        self.trials = trials
        """How many are left."""
        self._now = now
        self._end = now() + seconds
        self._base: Fleet | None = None
        self._fleet = Fleet()
        self._changed: Mapping[str, Obj] = {}

    def fits(self, situation: Situation) -> bool:
        """Return whether the situation fits, as a decision on trial finds. Raises OutOfTrials."""
        if not self.trials or self._now() > self._end:
            raise OutOfTrials
        self.trials -= 1
        return fits(situation, self.decide(situation))

    def decide(self, situation: Situation) -> Decision:
        estimators = [*self._estimators, *situation.answers]
        return schedule(situation.request, self._following(situation), estimators, self._profile)

    def estimate(self, situation: Situation, slots: Ints) -> Ints:
        """Return how many more replicas there is capacity for, in any clusters, be they refused by filters or not."""
        request = EstimateRequest(situation.request, self._following(situation), slots)
        return settle(estimate_locally(request, [*self._estimators, *situation.answers]), request).room

    def _following(self, situation: Situation) -> Fleet:
        if self._base is not situation.fleet:
            self._base, self._changed = situation.fleet, {}
            self._fleet = Fleet.of(cluster for cluster in situation.fleet.clusters if cluster is not None)
        wanted, had = situation.changed, self._changed
        changes: dict[str, Obj | None] = {name: situation.cluster(name) for name in had if name not in wanted}
        changes.update({name: cluster for name, cluster in wanted.items() if had.get(name) is not cluster})
        if changes:
            self._fleet, self._changed = self._fleet.updated(changes), wanted
        return self._fleet


def fits(situation: Situation, decision: Decision) -> bool:
    """Return whether it is scheduled, to the cluster that is wanted if one is, and no quota refuses the result."""
    if decision.failure is not None or exceeded(situation, decision.targets):
        return False
    return not situation.into or any(target["name"] == situation.into for target in decision.targets)


def exceeded(situation: Situation, targets: Sequence[Obj]) -> str:
    """Return what the first quota says that refuses the result; "" if none does."""
    if not situation.quotas:
        return ""
    from karmada.admission.binding_quota import charge, difference, used_with
    from karmada.admission.context import Refusal

    charged = (situation.original or situation.request).spec
    spec = {**situation.request.spec, "clusters": list(targets)}
    change = difference(charge({"spec": spec}), charge({"spec": charged}))
    for quota in situation.quotas:
        try:
            used_with(quota, change)
        except Refusal as refusal:
            return str(refusal)
    return ""
