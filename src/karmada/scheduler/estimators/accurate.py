"""The accurate estimator: the numbers that the estimators of all candidate clusters return, shared between bindings.

If one cluster fails there is no estimate at all. Half an answer would be worse than none: clusters that are known
exactly would look smaller than those that are not, and replicas would go to clusters without an estimate.

A burst of bindings would send thousands of equal requests a second, far more than either side can process. So a request
that is on its way is sent once, and its answer counts for a second for everyone with equal requirements: no longer than
it takes anyway until replicas that were just placed are Pods that an estimator can see. It ends earlier when a workload
in that cluster reports a change: who has seen there what became of one workload is not given an older answer for the
next. Replicas that are assumed in a cluster since an answer (overcommit protection) are subtracted from it, which is
exact for those with equal requirements; others make it void.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from karmada.estimator.client.calls import Answer, Calls, about, settled
from karmada.estimator.contract import (
    MAX_AVAILABLE_COMPONENT_SETS,
    MAX_AVAILABLE_REPLICAS,
    ReplicasQuery,
    SetsQuery,
    replicas_request,
    sets_request,
)
from karmada.estimator.terms import Assumption, EstimateError
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.memo import Memo
from karmada.scheduler.estimators.protocol import EstimateRequest

NAME = "scheduler-estimator"
SHARED_SECONDS = 1.0
_REQUIREMENTS = 4096
"""As many different ones are remembered within that time."""
_NOTHING: Sequence[Assumption] = ()


@dataclass(slots=True)
class _Shared:
    """The answer of one cluster, or the call for it, and what was assumed there at the time."""

    future: asyncio.Future[Answer]
    began: float
    assumed: Sequence[Assumption]


@dataclass(slots=True)
class _Known:
    """The answers for equal requirements; `encoded` is the part of the request that all clusters have in common."""

    encoded: bytes
    by_cluster: dict[str, _Shared] = field(default_factory=dict)


class AccurateEstimator:
    name = NAME

    def __init__(self, calls: Calls, clock: Clock) -> None:
        self._calls = calls
        self._clock = clock
        self._known: Memo[bytes, _Known] = Memo(_REQUIREMENTS, seconds=SHARED_SECONDS, clock=clock)
        self._changed: dict[str, float] = {}
        """When a workload in a cluster last reported a change."""

    def changed(self, cluster: str) -> None:
        """Note that a workload in the cluster reports another status."""
        self._changed[cluster] = self._clock.monotonic()

    async def estimate(self, request: EstimateRequest) -> Mapping[str, int]:
        names = request.names()
        self._calls.check(names)
        shared = self._answers(names, request)
        pending = [one.future for one, _ in shared.values() if not one.future.done()]
        if pending:
            await asyncio.wait(pending)
        answers = settled({name: one.future.result() for name, (one, _) in shared.items()})
        return {name: _without(answers[name], taken) for name, (_, taken) in shared.items()}

    def _answers(self, names: Sequence[str], request: EstimateRequest) -> dict[str, tuple[_Shared, int]]:
        """Return for each cluster the answer to use and what to subtract from it; what is missing is called for."""
        now, assumed = self._clock.monotonic(), request.assumed
        known = self._of(request)
        found: dict[str, tuple[_Shared, int]] = {}
        missing: list[str] = []
        for name in names:
            one = known.by_cluster.get(name)
            taken = None if one is None else self._taken(one, name, now, assumed.get(name, _NOTHING), request)
            if one is None or taken is None:
                missing.append(name)
            else:
                found[name] = one, taken
        if missing:
            for name, future in self._call(missing, known.encoded, request).items():
                known.by_cluster[name] = one = _Shared(future, now, assumed.get(name, _NOTHING))
                found[name] = one, 0
        return found

    def _taken(
        self, one: _Shared, name: str, now: float, assumed: Sequence[Assumption], request: EstimateRequest
    ) -> int | None:
        """Return the replicas that were assumed since the answer; None when it does not count any more."""
        if now - one.began >= SHARED_SECONDS or one.began <= self._changed.get(name, -1.0):
            return None
        if one.future.done() and isinstance(one.future.result(), EstimateError):
            return None
        return 0 if assumed is one.assumed else _replicas_since(one.assumed, assumed, request)

    def _of(self, request: EstimateRequest) -> _Known:
        """Return what is known, which from now on is kept for as long as any answer counts."""
        key = request.key()
        return self._known.put(key, self._known.get(key) or _Known(_encoded(request)))

    def _call(
        self, clusters: Sequence[str], encoded: bytes, request: EstimateRequest
    ) -> dict[str, asyncio.Future[Answer]]:
        """Concatenated messages are one message with the fields of both."""
        method = MAX_AVAILABLE_COMPONENT_SETS if request.sets else MAX_AVAILABLE_REPLICAS
        requests = {name: _addressed(name, request) + encoded for name in clusters}
        return self._calls.begin(method, requests, about(request.workload.resource))


def _without(answer: int, taken: int) -> int:
    """Subtract what was placed meanwhile from an answer; an unknown one stays unknown."""
    return max(answer - taken, 0) if taken and answer > 0 else answer


def _encoded(request: EstimateRequest) -> bytes:
    try:
        if request.sets:
            message = sets_request(SetsQuery("", request.components, request.namespace))
        else:
            message = replicas_request(ReplicasQuery("", request.requirements))
    except ValueError as error:
        raise EstimateError(str(error)) from None
    encoded: bytes = message.SerializeToString()
    return encoded


def _addressed(name: str, request: EstimateRequest) -> bytes:
    assumed = request.assumed.get(name, _NOTHING)
    query = SetsQuery(name, (), "", assumed) if request.sets else ReplicasQuery(name, None, assumed)
    message = sets_request(query) if isinstance(query, SetsQuery) else replicas_request(query)
    encoded: bytes = message.SerializeToString()
    return encoded


def _replicas_since(before: Sequence[Assumption], now: Sequence[Assumption], request: EstimateRequest) -> int | None:
    """Return the replicas that were assumed since; None if they are not the only difference, or need something else."""
    if request.sets:
        return None
    known = {id(one) for one in before}
    added = [one for one in now if id(one) not in known]
    if len(now) - len(added) != len(before):
        return None
    replicas = 0
    for component in (component for one in added for component in one.components):
        if component.get("replicaRequirements") != request.requirements:
            return None
        replicas += component.get("replicas") or 0
    return replicas
