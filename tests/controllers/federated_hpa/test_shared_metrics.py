"""Answers of the metrics APIs are shared for a moment, and forgotten."""

from __future__ import annotations

import asyncio

import pytest

from karmada.controllers.federated_hpa.figures import Figures
from karmada.controllers.federated_hpa.shared_metrics import SharedMetrics
from karmada.kube.autoscaling.metrics import MetricsError
from karmada.kube.objects.clock import FakeClock
from tests.controllers.federated_hpa.scaling_plane import Metrics


@pytest.fixture
def source(clock: FakeClock) -> Metrics:
    return Metrics(clock, pods={("m1", "ns", "p"): "web"}, cpu={"m1": 1})


@pytest.fixture
def figures() -> Figures:
    return Figures()


@pytest.fixture
def shared(source: Metrics, clock: FakeClock, figures: Figures) -> SharedMetrics:
    return SharedMetrics(source, clock, figures, timeout=15.0)


async def test_requests_of_a_moment_are_one(shared: SharedMetrics, source: Metrics, clock: FakeClock) -> None:
    await asyncio.gather(*(shared.pod_metrics("ns", "") for _ in range(5)))
    await clock.advance(4)
    await shared.pod_metrics("ns", "")
    assert source.requests["resource ns"] == 1
    await clock.advance(2)
    await shared.pod_metrics("ns", "")
    assert source.requests["resource ns"] == 2


async def test_different_questions_are_different_requests(shared: SharedMetrics, source: Metrics) -> None:
    described = {"kind": "Service", "name": "s"}
    await shared.pod_metrics("ns", "")
    await shared.pod_metrics("ns", "app=web")
    await shared.pod_values("ns", "", "rps", "")
    await shared.object_value("ns", described, "rps", "")
    await shared.object_value("ns", {**described, "name": "t"}, "rps", "")
    assert source.requests == {"resource ns": 2, "custom ns": 3}


async def test_an_answer_from_before_is_not_used_where_a_newer_one_is_needed(
    shared: SharedMetrics, source: Metrics, clock: FakeClock
) -> None:
    await shared.pod_metrics("ns", "")
    await clock.advance(1)
    await shared.pod_metrics("ns", "", newer_than=clock.monotonic())
    assert source.requests["resource ns"] == 2


async def test_failures_are_not_kept(shared: SharedMetrics, source: Metrics) -> None:
    source.broken = {"resource"}
    with pytest.raises(MetricsError):
        await shared.pod_metrics("ns", "")
    source.broken = set()
    assert await shared.pod_metrics("ns", "")


async def test_old_answers_are_forgotten(shared: SharedMetrics, clock: FakeClock) -> None:
    for number in range(50):
        await shared.pod_metrics(f"ns-{number}", "")
    assert len(shared) == 50
    await clock.advance(6)
    await shared.pod_metrics("ns", "")
    assert len(shared) == 1


async def test_a_waiter_that_is_cancelled_leaves_the_request_to_the_others(
    shared: SharedMetrics, source: Metrics, clock: FakeClock
) -> None:
    source.slow = {"resource ns": 10.0}
    first, second = (asyncio.create_task(shared.pod_metrics("ns", "")) for _ in range(2))
    await clock.advance(1)
    first.cancel()
    await clock.advance(10)
    assert len(await second) == 1
    await shared.stop()


async def test_requests_are_measured_by_kind_and_result(
    shared: SharedMetrics, source: Metrics, figures: Figures
) -> None:
    await shared.pod_metrics("ns", "")
    source.broken = {"custom"}
    with pytest.raises(MetricsError):
        await shared.pod_values("ns", "", "rps", "")
    counted = {
        (sample.labels["metricType"], sample.labels["result"]): sample.value
        for metric in figures.collect()
        for sample in metric.samples
        if sample.name == "federatedhpa_pull_metrics_duration_seconds_count"
    }
    assert counted == {("ResourceMetric", "success"): 1.0, ("RawMetric", "error"): 1.0}
