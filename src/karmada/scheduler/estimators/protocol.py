"""The interface of estimators.

A `LocalEstimator` computes; a `RemoteEstimator` sends requests and is awaited. Both return a number for each
cluster, `UNKNOWN` without an estimate. A response is taken as a whole or not at all: one that raises `EstimateError` is
left out for this request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import Protocol, cast, runtime_checkable

import orjson

from karmada.estimator.amounts import Ints
from karmada.estimator.terms import Assumption
from karmada.kube.objects.types import Obj
from karmada.scheduler.fleet import Fleet
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
