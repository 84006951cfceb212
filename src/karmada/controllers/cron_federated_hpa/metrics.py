"""How long reconciles and rules of CronFederatedHPAs take, for /metrics."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from prometheus_client import Histogram
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

_BUCKETS: Final = tuple(0.001 * 2**step for step in range(12))


class CronMetrics(Collector):
    def __init__(self) -> None:
        self._reconciles = _histogram("cronfederatedhpa_process_duration_seconds", "Seconds for one reconcile")
        self._rules = _histogram("cronfederatedhpa_rule_process_duration_seconds", "Seconds for one run of a rule")

    def reconciled(self, seconds: float, *, error: bool) -> None:
        self._reconciles.labels(_result(error)).observe(seconds)

    def ran(self, seconds: float, *, error: bool) -> None:
        self._rules.labels(_result(error)).observe(seconds)

    def collect(self) -> Iterable[Metric]:
        yield from self._reconciles.collect()
        yield from self._rules.collect()


def _histogram(name: str, text: str) -> Histogram:
    return Histogram(name, text, ["result"], buckets=_BUCKETS, registry=None)


def _result(error: bool) -> str:
    return "error" if error else "success"
