"""The accurate estimator without a network: the estimators of members that are in this process.

It knows nothing of clusters that have none, or whose caches are not complete yet. A number is computed once for each
cluster and requirements, until something changes in that cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from karmada.estimator.amounts import Ints
from karmada.estimator.terms import Assumption, EstimateError, MemberEstimator
from karmada.kube.objects.memo import Memo
from karmada.kube.objects.types import Obj
from karmada.scheduler.estimators.protocol import UNKNOWN, EstimateRequest

NAME = "in-process-estimator"
_REQUIREMENTS = 256
"""As many different ones are remembered."""


class VersionedEstimator(MemberEstimator, Protocol):
    @property
    def version(self) -> int:
        """Return another number, another state of the member."""
        ...

    def replicas_on_nodes(self, requirements: Obj | None, /) -> int:
        """Return how many more replicas the nodes have capacity for, whatever quotas allow."""
        ...

    def quotas(self, namespace: str, /) -> list[Obj]:
        """Return the ResourceQuotas of a namespace that estimates depend on."""
        ...


class Estimators(Protocol):
    def get(self, cluster: str, /) -> VersionedEstimator | None: ...


class InProcessEstimator:
    name = NAME

    def __init__(self, estimators: Estimators) -> None:
        self._estimators = estimators
        self._known: Memo[bytes, dict[str, tuple[VersionedEstimator, int, int]]] = Memo(_REQUIREMENTS)
        """Estimates by requirements and cluster: whose number it is, as of which version, and the number."""

    def estimate(self, request: EstimateRequest) -> Ints:
        known, assumed, find = self._of(request.key()), request.assumed, self._estimators.get
        found: list[int] = []
        for name in request.names():
            estimator = find(name)
            if estimator is None:
                found.append(UNKNOWN)
                continue
            if assumed and name in assumed:
                found.append(_estimate(estimator, request, assumed[name]))
                continue
            version, last = estimator.version, known.get(name)
            if last is None or last[1] != version or last[0] is not estimator:
                last = known[name] = (estimator, version, _estimate(estimator, request, ()))
                if last[2] == UNKNOWN:
                    del known[name]
            found.append(last[2])
        return np.array(found, np.int64)

    def under_quotas(self, request: EstimateRequest) -> dict[str, tuple[int, list[Obj]]]:
        """Return how many replicas fit on nodes, and the quotas, where there are any, without what is just placed."""
        found: dict[str, tuple[int, list[Obj]]] = {}
        namespace = (request.requirements or {}).get("namespace") or ""
        for name in request.names() if namespace and not request.sets else ():
            estimator = self._estimators.get(name)
            if estimator is None or name in request.assumed:
                continue
            quotas = estimator.quotas(namespace)
            if quotas and _estimate(estimator, request, ()) != UNKNOWN:
                found[name] = estimator.replicas_on_nodes(request.requirements), quotas
        return found

    def _of(self, key: bytes) -> dict[str, tuple[VersionedEstimator, int, int]]:
        known = self._known.get(key)
        return self._known.put(key, {}) if known is None else known


def _estimate(estimator: VersionedEstimator, request: EstimateRequest, assumed: Sequence[Assumption]) -> int:
    try:
        if request.sets:
            return estimator.max_available_component_sets(request.components, request.namespace, assumed)
        return estimator.max_available_replicas(request.requirements, assumed)
    except EstimateError:
        return UNKNOWN
