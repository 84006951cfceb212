"""The filter that keeps a resource from going back to a cluster it is being evicted from."""

from __future__ import annotations

from karmada.scheduler.filters.protocol import Refusal
from karmada.scheduler.request import Request

EVICTED = "cluster(s) is in the process of eviction"


class ClusterEviction:
    name = "ClusterEviction"
    spares_targets = False

    def refusal(self, request: Request) -> Refusal | None:
        return Refusal(EVICTED, request.evicted) if request.evicted else None
