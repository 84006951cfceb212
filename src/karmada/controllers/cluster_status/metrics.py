"""Prometheus metrics of the member clusters; those of a cluster that is gone are removed.

The gauges are read from the last status of each cluster at every scrape: they cost nothing in between. Register a
`ClusterMetrics` with the registry of the process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from prometheus_client import Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from karmada.kube.objects.meta import has_condition
from karmada.kube.objects.quantity import Quantity
from karmada.kube.objects.types import Obj

_LABEL = "member_cluster"
_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


def _nodes(field: str) -> Callable[[Obj], float]:
    return lambda status: float((status.get("nodeSummary") or {}).get(field) or 0)


def _amount(field: str, resource: str) -> Callable[[Obj], float]:
    def read(status: Obj) -> float:
        amounts = (status.get("resourceSummary") or {}).get(field) or {}
        return Quantity.parse(amounts.get(resource) or "0").nano / 1e9

    return read


_GAUGES: tuple[tuple[str, str, Callable[[Obj], float]], ...] = (
    ("cluster_ready_state", "1 if the cluster is ready", lambda s: float(has_condition(s.get("conditions"), "Ready"))),
    ("cluster_node_number", "Nodes of the cluster", _nodes("totalNum")),
    ("cluster_ready_node_number", "Nodes of the cluster that are ready", _nodes("readyNum")),
    ("cluster_memory_allocatable_bytes", "Memory for Pods", _amount("allocatable", "memory")),
    ("cluster_cpu_allocatable_number", "CPUs for Pods", _amount("allocatable", "cpu")),
    ("cluster_pod_allocatable_number", "Places for Pods", _amount("allocatable", "pods")),
    ("cluster_memory_allocated_bytes", "Memory that Pods on nodes request", _amount("allocated", "memory")),
    ("cluster_cpu_allocated_number", "CPUs that Pods on nodes request", _amount("allocated", "cpu")),
    ("cluster_pod_allocated_number", "Pods on nodes", _amount("allocated", "pods")),
)


class ClusterMetrics(Collector):
    def __init__(self) -> None:
        self._statuses: dict[str, Obj] = {}
        self._bound: dict[str, Any] = {}
        self._duration = Histogram(
            "cluster_sync_status_duration_seconds",
            "Seconds for one pass over a cluster",
            [_LABEL],
            buckets=_BUCKETS,
            registry=None,
        )

    def record(self, cluster: str, status: Obj) -> None:
        self._statuses[cluster] = status

    def observe_pass(self, cluster: str, seconds: float) -> None:
        bound = self._bound.get(cluster)
        if bound is None:
            bound = self._bound[cluster] = self._duration.labels(cluster)
        bound.observe(seconds)

    def forget(self, cluster: str) -> None:
        self._statuses.pop(cluster, None)
        if self._bound.pop(cluster, None) is not None:
            self._duration.remove(cluster)

    def collect(self) -> Iterable[Metric]:
        statuses = sorted(self._statuses.items())
        for name, text, read in _GAUGES:
            family = GaugeMetricFamily(name, text, labels=[_LABEL])
            for cluster, status in statuses:
                family.add_metric([cluster], read(status))
            yield family
        yield from self._duration.collect()
