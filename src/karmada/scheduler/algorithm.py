"""Scheduling, from a request and the fleet to a decision.

Filter, score, estimate, rank, select, assign. Only requests to remote estimators take time, so the algorithm is a
generator that yields its estimate requests: `schedule` computes them at once, `schedule_remotely` also sends them to
remote estimators. Nothing else differs. With several groups of clusters, they are tried in order, beginning with the
one that was taken last time, until one succeeds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Sequence
from dataclasses import dataclass

from karmada.estimator.amounts import Ints
from karmada.estimator.terms import EstimateError
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.time_slice import TimeSlice
from karmada.scheduler.assignment import NO_CLUSTERS, Division, assign
from karmada.scheduler.candidates import FilterSet
from karmada.scheduler.decision import Attempt, Decision, Failure, error, no_fit
from karmada.scheduler.estimators.protocol import (
    Estimate,
    EstimateRequest,
    LocalEstimator,
    RemoteEstimator,
    by_slot,
    estimate_locally,
    nothing_to_estimate,
    settle,
    take,
    unlimited,
)
from karmada.scheduler.fleet import Fleet
from karmada.scheduler.meter import ASSIGN, ERROR, FILTER, NO_METRICS, SCORE, SELECT, SUCCESS, UNSCHEDULABLE, Meter
from karmada.scheduler.ranking import Score, ScoreError, rank
from karmada.scheduler.request import Request
from karmada.scheduler.spread import select

Steps = Generator[EstimateRequest | None, Estimate, Decision]
"""What it needs on the way: an estimate, or nothing between two terms, where others may get their turn."""


@dataclass(slots=True)
class Profile:
    """How to schedule: what takes part, and the switches."""

    filters: FilterSet
    scores: Sequence[Score]
    divisions: Sequence[Division]
    """The first that handles a request divides it."""
    components: bool = False
    """True if workloads of several components are fitted as a whole."""
    propagate_empty: bool = False
    """True if selected clusters that get no replicas are targets all the same."""
    meter: Meter = NO_METRICS


def schedule(
    request: Request, fleet: Fleet, estimators: Sequence[LocalEstimator], profile: Profile | None = None
) -> Decision:
    profile = profile or default_profile()
    steps, meter = decide(request, fleet, profile), profile.meter
    try:
        wanted = next(steps)
        while True:
            if wanted is None:
                wanted = next(steps)
                continue
            began = meter.now()
            estimate = settle(estimate_locally(wanted, estimators, meter), wanted)
            _observe(meter, wanted, estimate, began)
            wanted = steps.send(estimate)
    except StopIteration as done:
        decision: Decision = done.value
        return decision


async def schedule_remotely(
    request: Request,
    fleet: Fleet,
    estimators: Sequence[LocalEstimator],
    remote: Sequence[RemoteEstimator],
    profile: Profile | None = None,
) -> Decision:
    """Schedule a request with estimators that are awaited, besides those that compute, and many terms in slices."""
    profile = profile or default_profile()
    steps, meter, turn = decide(request, fleet, profile), profile.meter, TimeSlice()
    try:
        wanted = next(steps)
        while True:
            if wanted is None:
                if turn.is_over():
                    await turn.next()
                wanted = next(steps)
                continue
            began = meter.now()
            estimate = estimate_locally(wanted, estimators, meter)
            if remote:
                await _estimate_remotely(wanted, estimate, remote, meter)
            settle(estimate, wanted)
            _observe(meter, wanted, estimate, began)
            wanted = steps.send(estimate)
    except StopIteration as done:
        decision: Decision = done.value
        return decision


def _observe(meter: Meter, wanted: EstimateRequest, estimate: Estimate, began: float) -> None:
    meter.took(wanted.what, meter.now() - began, ERROR if estimate.failures else SUCCESS)


async def _estimate_remotely(
    wanted: EstimateRequest, estimate: Estimate, remote: Sequence[RemoteEstimator], meter: Meter
) -> None:
    async def estimate_remotely(estimator: RemoteEstimator) -> Ints | EstimateError:
        began = meter.now()
        try:
            return by_slot(wanted, await estimator.estimate(wanted))
        except EstimateError as wrong:
            return wrong
        finally:
            meter.took(wanted.what, meter.now() - began, plugin=estimator.name)

    for estimator, answer in zip(remote, await asyncio.gather(*map(estimate_remotely, remote)), strict=True):
        if isinstance(answer, EstimateError):
            estimate.failures.append((estimator.name, str(answer)))
        else:
            take(estimate, estimator.name, answer)


_default: list[Profile] = []


def default_profile() -> Profile:
    """Return all that is built in and on by default."""
    if not _default:
        from karmada.scheduler.plugins import builtin_profile

        _default.append(builtin_profile())
    return _default[0]


# the algorithm


def decide(request: Request, fleet: Fleet, profile: Profile) -> Steps:
    """Yield the requests to estimators, get the settled estimates, and return the decision."""
    terms = request.plan.terms
    if not terms:
        return Decision([(yield from _attempt(request, 0, fleet, profile))])
    attempts: list[Attempt] = []
    for index in range(request.plan.first_term(request.affinity_name), len(terms)):
        if attempts:
            yield None
        under = request.under(terms[index].get("affinityName") or "")
        attempts.append((yield from _attempt(under, index, fleet, profile)))
        if attempts[-1].failure is None:
            break
    return Decision(attempts)


def _attempt(
    request: Request, index: int, fleet: Fleet, profile: Profile
) -> Generator[EstimateRequest, Estimate, Attempt]:
    meter = profile.meter
    began = meter.now()
    attempt = Attempt(request, index, profile.filters.candidates(request, fleet, meter))
    slots = attempt.candidates.slots
    filtered = meter.now()
    meter.took(FILTER, filtered - began, SUCCESS if len(slots) else UNSCHEDULABLE)
    if not len(slots):
        attempt.failure = no_fit(fleet.count, (reason for _, _, reason in attempt.candidates.reasons()))
        return attempt
    score = _score(request, fleet, slots, profile)
    scored = meter.now()
    meter.took(SCORE, scored - filtered, ERROR if isinstance(score, Failure) else SUCCESS)
    if isinstance(score, Failure):
        attempt.failure = score
        return attempt
    sets = in_sets(request, profile)
    wanted = EstimateRequest(request, fleet, slots, sets)
    attempt.estimate = unlimited(wanted) if nothing_to_estimate(wanted) else (yield wanted)
    attempt.ranking = rank(request, fleet, slots, score, attempt.estimate.room)
    selected = select(request, attempt.ranking, sets=sets)
    chosen = meter.now()
    meter.took(SELECT, chosen - scored)
    if isinstance(selected, Failure):
        attempt.failure = selected.during("failed to select clusters")
        return attempt
    attempt.selected = selected
    failure = _assign(attempt, profile)
    meter.took(ASSIGN, meter.now() - chosen)
    if failure is not None:
        attempt.failure = failure.during("failed to assign replicas")
    return attempt


def in_sets(request: Request, profile: Profile) -> bool:
    """Return whether complete sets of components are fitted, and not replicas."""
    return profile.components and request.plan.one_cluster and len(request.components) > 0


def _score(request: Request, fleet: Fleet, slots: Ints, profile: Profile) -> Ints | Failure | None:
    total: Ints | None = None
    meter = profile.meter
    for one in profile.scores:
        began = meter.now()
        try:
            points = one.points(request, fleet, slots)
            meter.took(SCORE, meter.now() - began, plugin=one.name)
        except ScoreError as wrong:
            meter.took(SCORE, meter.now() - began, ERROR, one.name)
            return error(f'failed to prioritize clusters: plugin "{one.name}" failed with: {wrong}')
        if points is not None:
            total = points if total is None else total + points
    return total


def _assign(attempt: Attempt, profile: Profile) -> Failure | None:
    request, ranking, selected = attempt.request, attempt.ranking, attempt.selected
    assert ranking is not None
    assert selected is not None
    if not len(selected):
        return error(NO_CLUSTERS)
    if not request.divides_replicas:
        attempt.targets = [{"name": name} for name in ranking.names(selected)]
        return None
    result = assign(request, ranking, selected, profile.divisions)
    if isinstance(result, Failure):
        return result
    attempt.assignment = result
    attempt.targets = [{"name": name, "replicas": count} for name, count in result.shares.items() if count > 0]
    if profile.propagate_empty:
        attempt.targets += _without_replicas(attempt.targets, ranking.names(selected))
    return None


def _without_replicas(targets: Sequence[Obj], names: Sequence[str]) -> list[Obj]:
    have = {target["name"] for target in targets}
    return [{"name": name} for name in names if name not in have]
