"""Figures of FederatedHPAs, for /metrics."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from prometheus_client import Counter, Histogram
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

_BUCKETS: Final = tuple(0.01 * 2**step for step in range(12))
_CONTROLLER: Final = "horizontal_pod_autoscaler_controller"


def _result(failed: bool) -> str:
    return "error" if failed else "success"


class Figures(Collector):
    def __init__(self) -> None:
        self._processed = Histogram(
            "federatedhpa_process_duration_seconds",
            "Seconds for one reconcile of a FederatedHPA",
            ["result"],
            buckets=_BUCKETS,
            registry=None,
        )
        self._pulled = Histogram(
            "federatedhpa_pull_metrics_duration_seconds",
            "Seconds for one request of metrics",
            ["result", "metricType"],
            buckets=_BUCKETS,
            registry=None,
        )
        self._reconciled = Counter(
            f"{_CONTROLLER}_reconciliations_total",
            "Reconciles of FederatedHPAs, by what they did and what went wrong",
            ["action", "error"],
            registry=None,
        )
        self._reconciling = Histogram(
            f"{_CONTROLLER}_reconciliation_duration_seconds",
            "Seconds for one reconcile, by what it did and what went wrong",
            ["action", "error"],
            buckets=_BUCKETS,
            registry=None,
        )

        self._computed = Counter(
            f"{_CONTROLLER}_metric_computation_total",
            "Computations of replicas for one metric, by what they propose and what went wrong",
            ["action", "error", "metric_type"],
            registry=None,
        )
        self._computing = Histogram(
            f"{_CONTROLLER}_metric_computation_duration_seconds",
            "Seconds for one metric, its request included, by what it proposes and what went wrong",
            ["action", "error", "metric_type"],
            buckets=_BUCKETS,
            registry=None,
        )

    def processed(self, seconds: float, *, action: str, error: str) -> None:
        """Count; `action` is scale_up, scale_down or none, `error` is spec, internal or none."""
        self._processed.labels(_result(error != "none")).observe(seconds)
        self._reconciled.labels(action, error).inc()
        self._reconciling.labels(action, error).observe(seconds)

    def pulled(self, kind: str, seconds: float, *, failed: bool) -> None:
        """`kind` is ResourceMetric, RawMetric or ObjectMetric."""
        self._pulled.labels(_result(failed), kind).observe(seconds)

    def computed(self, kind: str, seconds: float, *, action: str, error: str) -> None:
        """`kind` is that of the metric's source; the others are as for `processed`."""
        self._computed.labels(action, error, kind).inc()
        self._computing.labels(action, error, kind).observe(seconds)

    def collect(self) -> Iterable[Metric]:
        for metric in (
            self._processed, self._pulled, self._reconciled, self._reconciling, self._computed, self._computing,
        ):  # fmt: skip
            yield from metric.collect()
