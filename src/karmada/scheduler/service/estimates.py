"""The estimates of a running scheduler's estimators for a workload: for predictions outside its process.

Every cluster is estimated on its own, also those that the workload would not go to: predictions of
other placements need those, too. The general estimator is left out, as anyone can compute what it does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

import numpy as np

from karmada.estimator.terms import EstimateError
from karmada.kube.objects.types import Obj
from karmada.scheduler.estimators.estimator_result import EstimatorResult
from karmada.scheduler.estimators.general import GeneralEstimator
from karmada.scheduler.estimators.in_process import InProcessEstimator
from karmada.scheduler.estimators.protocol import UNKNOWN, EstimateRequest, LocalEstimator, RemoteEstimator
from karmada.scheduler.fleet import Fleet
from karmada.scheduler.request import Request

PATH = "/debug/estimates"
"""Where the control plane serves them, as JSON."""
Call = Callable[[EstimateRequest], Awaitable[int]]
"""For one cluster."""


async def estimates(
    request: Request,
    fleet: Fleet,
    local: Sequence[LocalEstimator],
    remote: Sequence[RemoteEstimator],
    *,
    sets: bool = False,
) -> list[EstimatorResult]:
    """Return the results of the estimators that know something."""
    computed = [one for one in local if not isinstance(one, GeneralEstimator)]
    calls: list[tuple[str, Call]] = [(one.name, partial(_compute, one)) for one in computed]
    calls += [(one.name, partial(_call, one)) for one in remote]
    slots = fleet.by_name.tolist()
    requests = [EstimateRequest(request, fleet, np.array([slot], np.int64), sets) for slot in slots]
    found = [await _answered(name, call, requests) for name, call in calls]
    everywhere = EstimateRequest(request, fleet, fleet.by_name, sets)
    quotas = {one.name: one.under_quotas(everywhere) for one in computed if isinstance(one, InProcessEstimator)}
    return [_with_quotas(one, quotas.get(one.name, {})) for one in found if one.replicas or one.failures]


def _with_quotas(answered: EstimatorResult, found: Mapping[str, tuple[int, Sequence[Obj]]]) -> EstimatorResult:
    for cluster, (on_nodes, quotas) in found.items():
        answered = answered.with_replicas(cluster, on_nodes).with_quotas(cluster, quotas)
    return answered


async def _answered(name: str, call: Call, requests: Sequence[EstimateRequest]) -> EstimatorResult:
    results = await asyncio.gather(*map(call, requests), return_exceptions=True)
    replicas: dict[str, int] = {}
    failures: dict[str, str] = {}
    for request, result in zip(requests, results, strict=True):
        [cluster] = request.names()
        if isinstance(result, EstimateError):
            failures[cluster] = str(result)
        elif isinstance(result, BaseException):
            raise result
        elif result != UNKNOWN:
            replicas[cluster] = result
    return EstimatorResult(name, replicas, failures)


async def _compute(estimator: LocalEstimator, request: EstimateRequest) -> int:
    return int(estimator.estimate(request)[0])


async def _call(estimator: RemoteEstimator, request: EstimateRequest) -> int:
    [cluster] = request.names()
    return (await estimator.estimate(request)).get(cluster, UNKNOWN)
