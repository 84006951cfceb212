"""An estimator whose estimates are known already: those that another process got a moment ago.

As with every estimator that sends requests, there is no estimate at all if one of the candidate clusters failed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from karmada.estimator.amounts import Ints
from karmada.estimator.quota import ResourceQuotaEstimator
from karmada.estimator.results import Code, Result, merged
from karmada.estimator.terms import EstimateError
from karmada.kube.objects.types import Obj
from karmada.scheduler.estimators.protocol import UNKNOWN, EstimateRequest, by_slot


@dataclass(slots=True)
class EstimatorResult:
    name: str
    replicas: Mapping[str, int]
    """How many more replicas fit into each cluster."""
    failures: Mapping[str, str] = field(default_factory=dict)
    """The reason why there is no estimate, by cluster."""
    quotas: Mapping[str, Sequence[Obj]] = field(default_factory=dict)
    """ResourceQuotas that hold besides, by cluster: `replicas` is without them."""

    def estimate(self, request: EstimateRequest) -> Ints:
        failed = {self.failures[name] for name in request.names() if name in self.failures} if self.failures else None
        if failed:
            texts = sorted(failed)
            raise EstimateError(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")
        return by_slot(request, {**self.replicas, **{name: self._under_quotas(request, name) for name in self.quotas}})

    def _under_quotas(self, request: EstimateRequest, cluster: str) -> int:
        by_quotas = ResourceQuotaEstimator(lambda _namespace: self.quotas[cluster])
        on_nodes = Result(Code.SUCCESS, self.replicas[cluster])
        try:
            return merged([on_nodes, by_quotas.replicas(request.requirements, ())], "replica")
        except EstimateError:  # a quota that cannot be read
            return UNKNOWN

    def with_replicas(self, cluster: str, count: int) -> EstimatorResult:
        return replace(self, replicas={**self.replicas, cluster: count})

    def with_quotas(self, cluster: str, quotas: Sequence[Obj]) -> EstimatorResult:
        return replace(self, quotas={**self.quotas, cluster: quotas})

    # for the wire

    @property
    def data(self) -> Obj:
        quotas = {cluster: list(quotas) for cluster, quotas in self.quotas.items()}
        return {"name": self.name, "replicas": self.replicas, "failures": self.failures, "quotas": quotas}

    @classmethod
    def of(cls, data: Obj) -> EstimatorResult:
        return cls(data["name"], data["replicas"], data["failures"], data["quotas"])
