"""The rules of a FederatedHPA as tables: grouping, calibration, windows, rates, several metrics."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from karmada.controllers.context import Settings
from karmada.controllers.federated_hpa.figures import Figures
from karmada.controllers.federated_hpa.pods import PodKey
from karmada.controllers.federated_hpa.rules import rules_of
from karmada.controllers.federated_hpa.sources import FederatedSources
from karmada.kube.autoscaling.behavior import Bounds, History, Moment, decide, down_limit, up_limit
from karmada.kube.autoscaling.metrics import MetricsError, PodMetric
from karmada.kube.autoscaling.proposals import Proposals
from karmada.kube.autoscaling.replicas import by_average, by_share, by_utilization, by_value, group_pods
from karmada.kube.autoscaling.sources import Reading, SourceFailed, Target
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from tests.support.cases import cases

NOW = 1_700_000_000.0
SETTINGS = Settings()
MINUTE = 60.0


def pod(*, phase: str = "Running", ready: bool = True, started: float = 3600, since: float = 3590) -> Obj:
    """`started` and `since` (when Ready became what it is) are seconds ago."""
    condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": rfc3339(NOW - since)}
    return {
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "100m"}}}]},
        "status": {"phase": phase, "startTime": rfc3339(NOW - started), "conditions": [condition]},
    }


def keyed(*pods: Obj) -> dict[PodKey, Obj]:
    return {PodKey("m1", str(index)): one for index, one in enumerate(pods)}


def used(*values: int, ago: float = 0.0, window: float = 30.0) -> dict[PodKey, PodMetric]:
    return {PodKey("m1", str(index)): PodMetric(value, NOW - ago, window) for index, value in enumerate(values)}


# 0: grouping


@cases(
    (pod(started=2 * MINUTE, since=100), 90, False),
    (pod(started=2 * MINUTE, since=100), 60, True),
    (pod(ready=False, started=10 * MINUTE, since=590), 0, False),
    (pod(ready=False, started=10 * MINUTE, since=MINUTE), 0, True),
    ids=["sampled before it was ready for a window", "sampled after", "never ready", "ready once"],
)
def test_whether_the_cpu_usage_of_a_pod_counts(one: Obj, sampled: float, ready: bool) -> None:
    groups = group_pods(keyed(one), used(1, ago=sampled), "cpu", NOW, rules_of(SETTINGS))
    assert groups.ready == (1 if ready else 0)
    assert len(groups.unready) == (0 if ready else 1)


def test_the_flags_say_what_a_young_pod_is() -> None:
    settings = Settings(
        horizontal_pod_autoscaler_cpu_initialization_period=60.0,
        horizontal_pod_autoscaler_initial_readiness_delay=5.0,
    )
    rules = rules_of(settings)
    young = pod(started=2 * MINUTE, since=100)
    assert group_pods(keyed(young), used(1, ago=90), "cpu", NOW, rules).ready == 1
    late = pod(ready=False, started=10 * MINUTE, since=590)
    assert group_pods(keyed(late), used(1), "cpu", NOW, rules).ready == 1


# 1 to 5: utilization


@cases(
    (2, [pod()] * 2, [150, 150], 50, 1.0, 6, 150),
    (2, [pod()] * 2, [150, 150], 50, 0.5, 12, 150),
    (2, [pod()] * 2, [52, 48], 50, 1.0, 2, 50),
    (3, [pod(), pod(), pod(phase="Pending")], [150, 150], 50, 1.0, 6, 150),
    (4, [pod()] * 4, [10, 10, 10], 50, 1.0, 3, 10),
    (10, [pod()] * 6, [90] * 6, 60, 0.6, 15, 90),
    (10, [pod()] * 10, [55] * 10, 50, 1.0, 11, 55),
    ids=["up", "half in sight", "tolerated", "one pending", "one missing", "a cluster is away", "at the tolerance"],
)
def test_replicas_by_utilization(
    current: int, pods: list[Obj], values: list[int], target: int, calibration: float, expected: int, percent: int
) -> None:
    rules = rules_of(SETTINGS, calibration)
    found = by_utilization(current, keyed(*pods), used(*values), "cpu", "", target, rules, NOW)
    assert (found.replicas, found.usage) == (expected, percent)


def test_without_samples_of_ready_pods_there_is_no_proposal() -> None:
    with pytest.raises(MetricsError, match=r"^did not receive metrics for any ready pods$"):
        by_utilization(2, keyed(pod(phase="Pending")), used(1), "cpu", "", 50, rules_of(SETTINGS), NOW)


# 6 to 8: averages and values


def test_replicas_by_an_average_of_pods() -> None:
    found = by_average(2, keyed(pod(), pod()), used(15_000, 25_000), "", 10_000, rules_of(SETTINGS), NOW)
    assert (found.replicas, found.average) == (4, 20_000)


@cases((2, 1.0, 3), (2, 0.5, 6), (0, 1.0, 2), ids=["all", "half", "from zero"])
def test_replicas_by_the_value_of_an_object(current: int, calibration: float, expected: int) -> None:
    rules = rules_of(SETTINGS, calibration)
    assert by_value(current, [pod(), pod()], 15_000, 10_000, rules).replicas == expected


@cases((2, 30, (3, 15)), (3, 32, (3, 11)))
def test_replicas_by_the_share_of_an_object(existing: int, usage: int, expected: tuple[int, int]) -> None:
    found = by_share(existing, usage, 10, rules_of(SETTINGS))
    assert (found.replicas, found.usage) == expected


class Hits:
    """Metrics with one value of an object."""

    def __init__(self, value: int) -> None:
        self.value = value

    async def object(self, *_which: object) -> int:
        return self.value

    async def resource(self, *_which: str) -> dict[PodKey, PodMetric]:
        raise NotImplementedError

    async def pods(self, *_which: str) -> dict[PodKey, PodMetric]:
        raise NotImplementedError

    async def external(self, *_which: str) -> list[int]:
        raise NotImplementedError


def sources(metrics: Hits, figures: Figures | None = None) -> FederatedSources:
    return FederatedSources(metrics, figures or Figures(), FakeClock(NOW))


@cases((2, 30_000, 1.0, 3, "15"), (2, 30_000, 0.5, 12, "15"), (3, 32_000, 1.0, 3, "10667m"))
async def test_replicas_by_the_share_of_an_object_are_calibrated_twice(
    existing: int, usage: int, calibration: float, expected: int, reported: str
) -> None:
    metric = {
        "type": "Object",
        "object": {
            "describedObject": {"kind": "Service", "name": "s"},
            "metric": {"name": "hits"},
            "target": {"type": "AverageValue", "averageValue": "10"},
        },
    }
    target = Target("ns", "app=web", existing, existing, keyed(*[pod()] * existing))
    rules = rules_of(SETTINGS, calibration)
    reading = await sources(Hits(usage)).read(metric, target, rules, NOW)
    assert reading.replicas == expected
    assert reading.status["object"]["current"] == {"averageValue": reported}


async def test_external_metrics_are_an_unknown_source() -> None:
    target, figures = Target("ns", "app=web", 1, 1, keyed(pod())), Figures()
    with pytest.raises(SourceFailed) as failed:
        await sources(Hits(1), figures).read({"type": "External"}, target, rules_of(SETTINGS), NOW)
    assert (failed.value.reason, failed.value.problem) == (
        "InvalidMetricSourceType",
        'unknown metric source type "External"',
    )
    [counted] = [
        sample.labels
        for metric in figures.collect()
        for sample in metric.samples
        if sample.name.endswith("metric_computation_total")
    ]
    assert counted == {"action": "none", "error": "spec", "metric_type": "External"}


# 9 to 11: windows


@cases(
    (3, 20, Bounds(1, 50), 6, "ScaleUpLimit"),
    (1, 20, Bounds(1, 50), 4, "ScaleUpLimit"),
    (5, 15, Bounds(1, 10), 10, "TooManyReplicas"),
    (3, 2, Bounds(3, 10), 3, "TooFewReplicas"),
)
def test_limits_without_a_behavior(current: int, wanted: int, bounds: Bounds, expected: int, reason: str) -> None:
    history = History([Moment(NOW - 3600, wanted)])
    decision = decide(history, current, wanted, bounds, None, NOW)
    assert (decision.replicas, decision.limit[0], decision.limited) == (expected, reason, True)


def ago(*moments: tuple[float, int]) -> list[Moment]:
    return [Moment(NOW - seconds, replicas) for seconds, replicas in moments]


@cases(
    ([(30, 3), (45, 4)], 2, 4, 3),
    ([(120, 7), (45, 4)], 5, 5, 2),
    ([(60, 7)], 5, 7, 2),
    ids=["the highest of the window", "an old one is replaced", "as old as the window"],
)
def test_the_window_of_the_flag(stored: list[tuple[float, int]], wanted: int, expected: int, entries: int) -> None:
    history = History(ago(*stored))
    assert decide(history, expected, wanted, Bounds(1, 50), None, NOW, down_window=60).replicas == expected
    assert len(history.recommendations) == entries


def behavior(up: int, down: int | None) -> Obj:
    anything = [{"type": "Percent", "value": 1000, "periodSeconds": 15}]
    rules: Obj = {"selectPolicy": "Max", "policies": anything}
    window = {} if down is None else {"stabilizationWindowSeconds": down}
    return {"scaleUp": {**rules, "stabilizationWindowSeconds": up}, "scaleDown": {**rules, **window}}


@cases(
    (5, 10, [(120, 8), (240, 7)], 7, "ScaleUpStabilized"),
    (8, 3, [(300, 5), (480, 4)], 5, "ScaleDownStabilized"),
)
def test_windows_of_a_behavior(
    current: int, wanted: int, stored: list[tuple[float, int]], expected: int, reason: str
) -> None:
    decision = decide(History(ago(*stored)), current, wanted, Bounds(1, 50), behavior(300, 600), NOW)
    assert (decision.replicas, decision.able[0]) == (expected, reason)


def test_a_downward_window_that_is_not_set_is_that_of_the_flag() -> None:
    stored = [(120.0, 8)]
    held = decide(History(ago(*stored)), 8, 3, Bounds(1, 50), behavior(0, None), NOW, down_window=300)
    free = decide(History(ago(*stored)), 8, 3, Bounds(1, 50), behavior(0, None), NOW, down_window=60)
    assert (held.replicas, free.replicas) == (8, 3)


# 12 and 13: rates


def policies(select: str, *given: tuple[str, int]) -> Obj:
    return {
        "selectPolicy": select,
        "policies": [{"type": kind, "value": value, "periodSeconds": 60} for kind, value in given],
    }


@cases(
    (up_limit, 5, policies("Max", ("Pods", 4)), 0, 9),
    (up_limit, 5, policies("Max", ("Pods", 4)), 2, 7),
    (up_limit, 5, policies("Disabled", ("Pods", 4)), 0, 5),
    (up_limit, 5, policies("Min", ("Pods", 4), ("Pods", 2)), 0, 7),
    (up_limit, 10, policies("Max", ("Percent", 50)), 0, 15),
    (down_limit, 10, policies("Max", ("Percent", 20)), 0, 8),
    (down_limit, 10, policies("Max", ("Percent", 20)), 1, 8),
    (down_limit, 100, policies("Max", ("Percent", 10), ("Pods", 5)), 0, 90),
    (down_limit, 100, policies("Min", ("Percent", 10), ("Pods", 15)), 0, 90),
)
def test_rates(
    limit: Callable[[History, int, Obj, float], int], current: int, rules: Obj, changes: int, expected: int
) -> None:
    recent = ago((30, changes)) if changes else []
    history = History(added=recent if limit is up_limit else [], removed=recent if limit is down_limit else [])
    assert limit(history, current, rules, NOW) == expected


# 14: several metrics


@cases((7, False), (3, True))
def test_a_metric_that_fails_blocks_only_fewer_replicas(proposed: int, blocked: bool) -> None:
    failure = SourceFailed("FailedGetPodsMetric", "down", "failed to get pods metric value: down")
    found = Proposals(5, [Reading(proposed, "cpu resource", {}), None], [failure])
    assert found.blocked is blocked
    problem = "invalid metrics (1 invalid out of 2), first error is: failed to get pods metric value: down"
    assert found.problem == problem
