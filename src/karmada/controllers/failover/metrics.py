"""Figures of evictions by taints, for /metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from prometheus_client import Counter as CounterMetric
from prometheus_client import Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

_BUCKETS: Final = (0.001, 0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0)


class EvictionMetrics(Collector):
    """One for both kinds of bindings; each has a queue under a name of its own."""

    def __init__(self) -> None:
        self._depths: dict[str, Callable[[], int]] = {}
        self._kinds: Counter[tuple[str, str]] = Counter()
        self._latency = Histogram(
            "eviction_processing_latency_seconds",
            "Seconds for one eviction",
            ["name"],
            buckets=_BUCKETS,
            registry=None,
        )
        self._processed = CounterMetric(
            "eviction_processing_total", "Evictions that were processed", ["name", "result"], registry=None
        )

    def follow(self, name: str, depth: Callable[[], int]) -> None:
        self._depths[name] = depth

    def processed(self, name: str, seconds: float, *, error: bool) -> None:
        self._latency.labels(name).observe(seconds)
        self._processed.labels(name, "error" if error else "success").inc()

    def evicted(self, cluster: str, kind: str) -> None:
        self._kinds[cluster, kind] += 1

    def collect(self) -> Iterable[Metric]:
        depth = GaugeMetricFamily("eviction_queue_depth", "Bindings that wait for their eviction", labels=["name"])
        for name, read in self._depths.items():
            depth.add_metric([name], read())
        yield depth
        kinds = GaugeMetricFamily(
            "eviction_kind_total", "Evictions by cluster and kind", labels=["member_cluster", "resource_kind"]
        )
        for labels, count in sorted(self._kinds.items()):
            kinds.add_metric(labels, count)
        yield kinds
        yield from self._latency.collect()
        yield from self._processed.collect()
