"""Several estimates become one: for each cluster the smallest, and the replicas wanted where there is no estimate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from karmada.estimator.amounts import Ints
from karmada.estimator.terms import MAX_REPLICAS, EstimateError
from karmada.scheduler.estimators.protocol import UNKNOWN, EstimateRequest, LocalEstimator
from karmada.scheduler.meter import NO_METRICS, Meter


@dataclass(slots=True)
class Estimate:
    """`room`: how many more replicas each of the request's clusters takes."""

    room: Ints
    answers: list[tuple[str, Ints]] = field(default_factory=list)
    """The estimates of each estimator, which `explain` reports."""
    failures: list[tuple[str, str]] = field(default_factory=list)
    """Estimators that were left out, and why."""


def nothing_to_estimate(request: EstimateRequest) -> bool:
    """Return whether there are no replicas: then there is room everywhere."""
    return not request.workload.replicas and not request.workload.components


def unlimited(request: EstimateRequest) -> Estimate:
    room = np.empty(len(request.slots), np.int64)
    room.fill(MAX_REPLICAS)  # np.full takes four times as long for a few
    return Estimate(room)


def estimate_locally(
    request: EstimateRequest, estimators: Sequence[LocalEstimator], meter: Meter = NO_METRICS
) -> Estimate:
    """Return what all estimators that compute say, not yet settled."""
    estimate = unlimited(request)
    for estimator in estimators:
        began = meter.now()
        try:
            take(estimate, estimator.name, estimator.estimate(request))
        except EstimateError as wrong:
            estimate.failures.append((estimator.name, str(wrong)))
        meter.estimator(estimator.name, meter.now() - began, sets=request.sets)
    return estimate


def take(estimate: Estimate, name: str, answer: Ints) -> None:
    """Take the smaller of two: UNKNOWN, read as a number without a sign, is the greatest there is."""
    estimate.answers.append((name, answer))
    room = estimate.room.view(np.uint64)
    np.minimum(room, np.asarray(answer, np.int64).view(np.uint64), out=room)


def by_slot(request: EstimateRequest, answer: Mapping[str, int]) -> Ints:
    return np.array([answer.get(name, UNKNOWN) for name in request.names()], np.int64)


def settle(estimate: Estimate, request: EstimateRequest) -> Estimate:
    """Return the estimate with all replicas where there is none."""
    estimate.room[estimate.room == MAX_REPLICAS] = request.workload.replicas
    return estimate
