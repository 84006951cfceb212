"""Metrics of estimates, under the names that dashboards know; schedulers and estimators have them alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from prometheus_client.core import Metric

from karmada.build_info import build_info
from karmada.estimator.terms import REPLICAS, SETS, EstimateError
from karmada.kube.objects.clock import Clock
from karmada.kube.runtime.metrics import Counters, Histograms, growing

UNSCHEDULABLE = "GetUnschedulableReplicas"
"""What is estimated, besides what the scheduler requests."""
TOTAL, GET_OBJECT, GET_PODS = "Total", "GetObjectFromCache", "GetWorkloadUnschedulablePods"
"""The steps of it."""
_POINTS = {REPLICAS: "estimate_replicas", SETS: "estimate_components"}
_PREFIX = "karmada_scheduler_estimator_estimating"


class EstimateMetrics:
    """`what` is estimated: REPLICAS, SETS or UNSCHEDULABLE."""

    def __init__(self) -> None:
        self._requests = Counters(f"{_PREFIX}_request", "Estimates, by how they ended", ["result", "type"])
        self._estimates = Histograms(
            f"{_PREFIX}_algorithm_duration_seconds",
            "The steps of an estimate",
            ["result", "type", "step"],
            growing(0.001, 2, 10),
        )
        self._points = Histograms(
            f"{_PREFIX}_plugin_extension_point_duration_seconds",
            "All plug-ins of an estimate",
            ["estimating_plugin_extension_point"],
            growing(0.0001, 2, 12),
        )
        self._plugins = Histograms(
            f"{_PREFIX}_plugin_execution_duration_seconds",
            "One plug-in",
            ["estimating_plugin", "estimating_plugin_extension_point"],
            growing(0.00001, 1.5, 20),
        )

    def collect(self) -> Iterable[Metric]:
        yield from (one.family() for one in (self._requests, self._estimates, self._points, self._plugins))

    def ended(self, what: str, seconds: float, *, failed: bool) -> None:
        """Count and time a whole estimate."""
        result = "error" if failed else "success"
        self._requests[result, what].value += 1
        self._estimates[result, what, TOTAL].observe(seconds)

    def step(self, what: str, step: str, seconds: float) -> None:
        self._estimates["success", what, step].observe(seconds)

    def plugin(self, what: str, seconds: float, name: str = "") -> None:
        """Time a plug-in; without a name, all of them."""
        if name:
            self._plugins[name, _POINTS[what]].observe(seconds)
        else:
            self._points[(_POINTS[what],)].observe(seconds)


class EstimatorMetrics(EstimateMetrics):
    """The metrics of an estimator's process: a collector for its registry."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.now = clock.monotonic

    def collect(self) -> Iterable[Metric]:
        yield from super().collect()
        yield build_info()

    @contextmanager
    def request(self, what: str) -> Iterator[None]:
        """Count and time a whole request."""
        began, failed = self.now(), False
        try:
            yield
        except EstimateError:
            failed = True
            raise
        finally:
            self.ended(what, self.now() - began, failed=failed)
