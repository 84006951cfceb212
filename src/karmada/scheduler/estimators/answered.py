"""An estimator whose estimates are known already: those that another process got a moment ago.

As with every estimator that sends requests, there is no estimate at all if one of the clusters in question failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from karmada.estimator.amounts import Ints
from karmada.estimator.terms import EstimateError
from karmada.kube.objects.types import Obj
from karmada.scheduler.estimators.merge import by_slot
from karmada.scheduler.estimators.protocol import EstimateRequest


@dataclass(slots=True)
class Answered:
    name: str
    replicas: Mapping[str, int]
    """By cluster."""
    failures: Mapping[str, str] = field(default_factory=dict)
    """By cluster, why there is no estimate."""

    def estimate(self, request: EstimateRequest) -> Ints:
        failed = {self.failures[name] for name in request.names() if name in self.failures} if self.failures else None
        if failed:
            texts = sorted(failed)
            raise EstimateError(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")
        return by_slot(request, self.replicas)

    def with_replicas(self, cluster: str, count: int) -> Answered:
        return replace(self, replicas={**self.replicas, cluster: count})

    # for the wire

    @property
    def data(self) -> Obj:
        return {"name": self.name, "replicas": dict(self.replicas), "failures": dict(self.failures)}

    @classmethod
    def of(cls, data: Obj) -> Answered:
        return cls(data["name"], data["replicas"], data["failures"])
