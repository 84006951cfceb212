"""The metrics of a scheduler, under the names that dashboards know.

Filters and scores are timed once for all clusters of a decision. An estimate counts as a request to estimators, and
each estimator as a plug-in that takes part in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from prometheus_client.core import GaugeMetricFamily, Metric

from karmada.build_info import build_info
from karmada.estimator.metrics import EstimateMetrics
from karmada.estimator.terms import REPLICAS, SETS
from karmada.kube.objects.clock import Clock
from karmada.kube.runtime.metrics import Counters, Histograms, growing
from karmada.scheduler.meter import ERROR, FILTER, SCORE, SUCCESS

_DECISIONS, _POINTS, _PLUGINS = growing(0.001, 2, 15), growing(0.0001, 2, 12), growing(0.00001, 1.5, 20)


def _nothing() -> Mapping[str, int]:
    return {}


class SchedulerMetrics:
    """A collector: register it with the registry of the process. And the meter of the algorithm."""

    def __init__(self, clock: Clock) -> None:
        self.now = clock.monotonic
        self.pending: Callable[[], Mapping[str, int]] = _nothing
        """Bindings by where they wait: active, backoff, unschedulable."""
        scheduler = "karmada_scheduler"
        by_result = ["result", "schedule_type"]
        self._attempts = Counters(
            f"{scheduler}_schedule_attempts", "Decisions on bindings, by how it ended and what for", by_result
        )
        self._whole = Histograms(
            f"{scheduler}_e2e_scheduling_duration_seconds",
            "From the beginning of a decision until it is written",
            by_result,
            _DECISIONS,
        )
        self._steps = Histograms(
            f"{scheduler}_scheduling_algorithm_duration_seconds",
            "The steps of a decision; selecting clusters includes estimating their available replicas",
            ["schedule_step"],
            _DECISIONS,
        )
        self._incoming = Counters(
            f"{scheduler}_queue_incoming_bindings", "Bindings to be scheduled, by what triggered it", ["event"]
        )
        self._points = Histograms(
            f"{scheduler}_framework_extension_point_duration_seconds",
            "All filters, or all scores, of a decision",
            ["extension_point", "result"],
            _POINTS,
        )
        self._plugins = Histograms(
            f"{scheduler}_plugin_execution_duration_seconds",
            "One filter or score, for all clusters",
            ["plugin", "extension_point", "result"],
            _PLUGINS,
        )
        self._estimates = EstimateMetrics()
        self._families = (
            self._attempts,
            self._whole,
            self._steps,
            self._incoming,
            self._points,
            self._plugins,
        )

    def collect(self) -> Iterable[Metric]:
        yield from (one.family() for one in self._families)
        yield from self._estimates.collect()
        pending = GaugeMetricFamily("scheduler_pending_bindings", "Bindings that wait, by what for", labels=["queue"])
        for queue, count in self.pending().items():
            pending.add_metric([queue], count)
        yield pending
        yield build_info()

    # what happens to bindings

    def attempted(self, result: str, schedule_type: str, seconds: float) -> None:
        labels = (result, schedule_type)
        self._attempts[labels].value += 1
        self._whole[labels].observe(seconds)

    def incoming(self, event: str) -> None:
        self._incoming[(event,)].value += 1

    # the steps of the algorithm

    def took(self, step: str, seconds: float, outcome: str = SUCCESS, plugin: str = "") -> None:
        if step in (REPLICAS, SETS):
            self._estimates.plugin(step, seconds, plugin)
            if not plugin:
                self._estimates.ended(step, seconds, failed=outcome == ERROR)
        elif plugin:
            self._plugins[plugin, step, outcome].observe(seconds)
        else:
            self._steps[(step,)].observe(seconds)
            if step in (FILTER, SCORE):
                self._points[step, outcome].observe(seconds)
