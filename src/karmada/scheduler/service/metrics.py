"""The metrics of a scheduler, under the names that dashboards know.

Filters and scores are timed once for all clusters of a decision. An estimate counts as a request to estimators, and
each estimator as a plug-in that takes part in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from prometheus_client.core import GaugeMetricFamily, Metric

from karmada.kube.objects.clock import Clock
from karmada.scheduler.meter import FILTER, SCORE
from karmada.scheduler.service.families import Counters, Histograms, growing
from karmada.version import info

_DECISIONS, _POINTS, _PLUGINS = growing(0.001, 2, 15), growing(0.0001, 2, 12), growing(0.00001, 1.5, 20)
_ESTIMATES = growing(0.001, 2, 10)

_FILTER, _SCORE, _SELECT, _ASSIGN = (FILTER,), (SCORE,), ("Select",), ("AssignReplicas",)
_REPLICAS, _SETS = "MaxAvailableReplicas", "MaxAvailableComponentSets"
_REPLICAS_POINT, _SETS_POINT = ("estimate_replicas",), ("estimate_components",)


def _nothing() -> Mapping[str, int]:
    return {}


class SchedulerMetrics:
    """A collector: register it with the registry of the process. And the meter of the algorithm."""

    def __init__(self, clock: Clock) -> None:
        self.now = clock.monotonic
        self.pending: Callable[[], Mapping[str, int]] = _nothing
        """Bindings by where they wait: active, backoff, unschedulable."""
        scheduler, estimator = "karmada_scheduler", "karmada_scheduler_estimator_estimating"
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
        self._requests = Counters(f"{estimator}_request", "Estimates of available replicas", ["result", "type"])
        self._estimates = Histograms(
            f"{estimator}_algorithm_duration_seconds",
            "Estimating available replicas, for all candidate clusters",
            ["result", "type", "step"],
            _ESTIMATES,
        )
        self._estimator_points = Histograms(
            f"{estimator}_plugin_extension_point_duration_seconds",
            "All estimators of an estimate",
            ["estimating_plugin_extension_point"],
            _POINTS,
        )
        self._estimators = Histograms(
            f"{estimator}_plugin_execution_duration_seconds",
            "One estimator",
            ["estimating_plugin", "estimating_plugin_extension_point"],
            _PLUGINS,
        )
        self._families = (
            self._attempts,
            self._whole,
            self._steps,
            self._incoming,
            self._points,
            self._plugins,
            self._requests,
            self._estimates,
            self._estimator_points,
            self._estimators,
        )

    def collect(self) -> Iterable[Metric]:
        yield from (one.family() for one in self._families)
        pending = GaugeMetricFamily("scheduler_pending_bindings", "Bindings that wait, by what for", labels=["queue"])
        for queue, count in self.pending().items():
            pending.add_metric([queue], count)
        yield pending
        yield build_info()

    # what happens to bindings

    def attempted(self, result: str, schedule_type: str, seconds: float) -> None:
        labels = (result, schedule_type)
        self._attempts.count(labels)
        self._whole.observe(labels, seconds)

    def incoming(self, event: str) -> None:
        self._incoming.count((event,))

    # the steps of the algorithm

    def filtered(self, outcome: str, seconds: float) -> None:
        self._steps.observe(_FILTER, seconds)
        self._points.observe((FILTER, outcome), seconds)

    def scored(self, outcome: str, seconds: float) -> None:
        self._steps.observe(_SCORE, seconds)
        self._points.observe((SCORE, outcome), seconds)

    def selected(self, seconds: float) -> None:
        self._steps.observe(_SELECT, seconds)

    def assigned(self, seconds: float) -> None:
        self._steps.observe(_ASSIGN, seconds)

    def plugin(self, name: str, point: str, outcome: str, seconds: float) -> None:
        self._plugins.observe((name, point, outcome), seconds)

    def estimated(self, seconds: float, *, sets: bool, failed: bool) -> None:
        result, what = "error" if failed else "success", _SETS if sets else _REPLICAS
        self._requests.count((result, what))
        self._estimates.observe((result, what, "Total"), seconds)
        self._estimator_points.observe(_SETS_POINT if sets else _REPLICAS_POINT, seconds)

    def estimator(self, name: str, seconds: float, *, sets: bool) -> None:
        self._estimators.observe((name, *(_SETS_POINT if sets else _REPLICAS_POINT)), seconds)


def build_info() -> Metric:
    """Which version of the programs this is, always 1."""
    found = info()
    family = GaugeMetricFamily("karmada_build_info", "Which version this is, in its labels", labels=found._fields)
    family.add_metric(found, 1)
    return family
