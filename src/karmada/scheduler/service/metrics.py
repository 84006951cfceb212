"""What a scheduler tells about itself, under the names that dashboards know."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import Metric

_BUCKETS = tuple(0.001 * 2**step for step in range(15))


class SchedulerMetrics:
    """A collector: register it with the registry of the process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._attempts = Counter(
            "karmada_scheduler_schedule_attempts",
            "Bindings that were scheduled, by how it ended",
            ["result", "schedule_type"],
            registry=self.registry,
        )
        self._duration = Histogram(
            "karmada_scheduler_e2e_scheduling_duration_seconds",
            "From the decision to its being written",
            ["result", "schedule_type"],
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self._incoming = Counter(
            "karmada_scheduler_queue_incoming_bindings",
            "Bindings that were looked at, by what made it necessary",
            ["event"],
            registry=self.registry,
        )

    def collect(self) -> Iterable[Metric]:
        return self.registry.collect()

    def attempted(self, result: str, schedule_type: str, seconds: float) -> None:
        self._attempts.labels(result, schedule_type).inc()
        self._duration.labels(result, schedule_type).observe(seconds)

    def incoming(self, event: str) -> None:
        self._incoming.labels(event).inc()
