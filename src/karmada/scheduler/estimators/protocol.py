"""The interface of estimators.

A `LocalEstimator` computes; a `RemoteEstimator` sends requests and is awaited. Both return a number for each
cluster, `UNKNOWN` without an estimate. A response is taken as a whole or not at all: one that raises `EstimateError` is
left out for this request. Several estimates become one: for each cluster the smallest, and the replicas wanted where
there is no estimate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from typing import Protocol, cast, runtime_checkable

import numpy as np
import orjson

from karmada.estimator.amounts import Ints
from karmada.estimator.terms import MAX_REPLICAS, REPLICAS, SETS, Assumption, EstimateError
from karmada.kube.objects.types import Obj
from karmada.scheduler.fleet import Fleet
from karmada.scheduler.meter import NO_METRICS, Meter
from karmada.scheduler.request import Request

UNKNOWN = -1


@dataclass(slots=True)
class EstimateRequest:
    """How many more replicas, or, if `sets`, complete sets of the components, do these clusters have room for?"""

    workload: Request
    fleet: Fleet
    slots: Ints
    sets: bool = False

    @property
    def requirements(self) -> Obj | None:
        """Return what one replica needs; None when nothing is said but that it is a Pod."""
        return self.workload.requirements

    @property
    def components(self) -> Sequence[Obj]:
        return self.workload.components

    @property
    def assumed(self) -> Mapping[str, Sequence[Assumption]]:
        """Return, by cluster, what was placed there but does not show yet."""
        return self.workload.assumed

    @property
    def namespace(self) -> str:
        return self.workload.resource.get("namespace") or ""

    @property
    def what(self) -> str:
        """Return what is estimated, as metrics name it."""
        return SETS if self.sets else REPLICAS

    def key(self) -> bytes:
        """Return what is equal for requests that differ at most in their clusters and in what is assumed there."""
        if self.sets:
            return orjson.dumps([self.namespace, self.components])
        return orjson.dumps(self.requirements)

    def names(self) -> list[str]:
        names: list[str] = self.fleet.named[self.slots].tolist()
        return names


@runtime_checkable
class LocalEstimator(Protocol):
    name: str

    def estimate(self, request: EstimateRequest) -> Ints:
        """Return a number for each of the request's slots, in their order. May raise EstimateError."""
        ...


@runtime_checkable
class RemoteEstimator(Protocol):
    name: str

    async def estimate(self, request: EstimateRequest) -> Mapping[str, int]:
        """Return numbers by the name of the cluster. May raise EstimateError."""
        ...


@runtime_checkable
class FollowsReports(Protocol):
    """An estimator that remembers answers, and may have to forget them."""

    def changed(self, cluster: str) -> None:
        """Note that a workload reports another status in this cluster."""
        ...


Estimator = LocalEstimator | RemoteEstimator


def divided(estimators: Iterable[Estimator]) -> tuple[list[LocalEstimator], list[RemoteEstimator]]:
    """Return the estimators that compute and those that are awaited; `isinstance` compares names of methods only."""
    local: list[LocalEstimator] = []
    remote: list[RemoteEstimator] = []
    for one in estimators:
        if iscoroutinefunction(one.estimate):
            remote.append(cast("RemoteEstimator", one))
        else:
            local.append(cast("LocalEstimator", one))
    return local, remote


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
        meter.took(request.what, meter.now() - began, plugin=estimator.name)
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
