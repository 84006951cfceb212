"""Replicas by usage: in proportion, with care for pods that are not ready or have no metrics, calibrated."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.autoscaling.metrics import MetricsError, PodMetric
from karmada.kube.autoscaling.replicas import Rules, Tolerances, by_average, by_share, by_utilization, by_value
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from tests.support.cases import cases

NOW = 1_700_000_000.0
RULES = Rules()


def named(pods: Iterable[Obj]) -> dict[str, Obj]:
    return {pod["metadata"]["name"]: pod for pod in pods}


def pod(name: str, *, phase: str = "Running", ready: bool = True, age: float = 3600, request: str = "1000m") -> Obj:
    started = NOW - age
    condition = {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": rfc3339(started + 5)}
    resources = {"requests": {"cpu": request}} if request else {}
    return {
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "resources": resources}]},
        "status": {"phase": phase, "startTime": rfc3339(started), "conditions": [condition]},
    }


def used(**values: int) -> dict[str, PodMetric]:
    return {name: PodMetric(value, NOW, 30.0) for name, value in values.items()}


ABC = [pod("a"), pod("b"), pod("c")]
CASES: list[tuple[str, list[Obj], dict[str, PodMetric], int, int]] = [
    ("in proportion", ABC, used(a=600, b=1000, c=1400), 50, 6),
    ("fewer", ABC, used(a=100, b=200, c=300), 50, 2),
    ("within the tolerance", ABC, used(a=510, b=540, c=540), 50, 3),
    ("a missing pod is idle on the way up", ABC, used(a=900, b=900), 50, 4),
    ("a missing pod is busy on the way down", ABC, used(a=100, b=100), 50, 3),
    ("a missing pod is as busy as a target beyond its request", ABC, used(a=900, b=900), 150, 3),
    ("a pending pod is idle on the way up", [*ABC[:2], pod("c", phase="Pending")], used(a=900, b=900), 50, 4),
    ("a pending pod is not counted on the way down", [*ABC[:2], pod("c", phase="Pending")], used(a=100, b=100), 50, 1),
    ("an unready pod that just started is idle", [*ABC[:2], pod("c", ready=False, age=60)],
     used(a=900, b=900, c=900), 50, 4),
    ("an unready pod that was ready once counts", [*ABC[:2], pod("c", ready=False, age=3600)],
     used(a=900, b=900, c=900), 50, 4),
    ("failed pods are ignored", [*ABC, pod("d", phase="Failed")], used(a=1000, b=1000, c=1000), 50, 6),
    ("assumptions that turn the direction change nothing", ABC, used(a=560), 50, 3),
]  # fmt: skip


@pytest.mark.parametrize(
    ("pods", "metrics", "target", "expected"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_replicas_follow_utilization(
    pods: list[Obj], metrics: dict[str, PodMetric], target: int, expected: int
) -> None:
    assert by_utilization(3, named(pods), metrics, "cpu", "", target, RULES, NOW).replicas == expected


def test_a_young_pod_counts_once_a_whole_window_was_measured_after_it_became_ready() -> None:
    young = pod("c", age=60)  # ready since 55 s
    early = {**used(a=900, b=900), "c": PodMetric(900, NOW - 50, 30.0)}
    late = {**used(a=900, b=900), "c": PodMetric(900, NOW - 10, 30.0)}
    assert by_utilization(3, named([*ABC[:2], young]), early, "cpu", "", 50, RULES, NOW).replicas == 4
    assert by_utilization(3, named([*ABC[:2], young]), late, "cpu", "", 50, RULES, NOW).replicas == 6


def test_utilization_is_shown_as_a_percentage_and_an_average() -> None:
    found = by_utilization(3, named(ABC), used(a=300, b=600, c=900), "cpu", "", 60, RULES, NOW)
    assert (found.usage, found.average) == (60, 600)


@cases(
    ([], {}, "no pods returned by selector while calculating replica count"),
    (ABC, {}, "did not receive metrics for targeted pods (pods might be unready)"),
    ([pod("a", request="")], used(a=1), "missing request for cpu in container c of Pod a"),
)
def test_without_numbers_there_is_no_proposal(pods: list[Obj], metrics: dict[str, PodMetric], message: str) -> None:
    with pytest.raises(MetricsError) as error:
        by_utilization(3, named(pods), metrics, "cpu", "", 50, RULES, NOW)
    assert str(error.value) == message


@cases(
    (used(a=20_000, b=10_000, c=30_000), (4, 20_000)),
    (used(a=15_500, b=15_500, c=15_500), (3, 15_500)),
    (used(a=5_000, b=5_000, c=5_000), (1, 5_000)),
    (used(a=5_000, b=5_000), (2, 5_000)),  # c is taken to be at the target
)
def test_replicas_follow_an_average_value(metrics: dict[str, PodMetric], expected: tuple[int, int]) -> None:
    found = by_average(3, named(ABC), metrics, "", 15_000, RULES, NOW)
    assert (found.replicas, found.average) == expected


@cases((3, 33_000, 5), (3, 21_000, 3), (3, 10_000, 2), (0, 45_000, 3))
def test_replicas_follow_one_value_for_all(current: int, usage: int, expected: int) -> None:
    assert by_value(current, ABC, usage, 20_000, RULES).replicas == expected


@cases((3, 31_000, 3, 10_334), (3, 60_000, 6, 20_000), (3, 4_000, 1, 1_334), (0, 25_000, 3, 0))
def test_replicas_follow_a_share_of_one_value(existing: int, usage: int, expected: int, share: int) -> None:
    found = by_share(existing, usage, 10_000, RULES)
    assert (found.replicas, found.usage) == (expected, share)


def test_tolerances_may_differ_by_direction() -> None:
    metrics = used(a=540, b=540, c=540)
    assert by_utilization(3, named(ABC), metrics, "cpu", "", 50, Rules(Tolerances(0.1, 0.05).allow), NOW).replicas == 4
    assert by_utilization(3, named(ABC), metrics, "cpu", "", 50, Rules(Tolerances(0.05, 0.1).allow), NOW).replicas == 3


@given(st.lists(st.integers(0, 5000), min_size=1, max_size=8), st.integers(1, 200))
def test_replicas_never_move_against_the_ratio(values: list[int], target: int) -> None:
    pods = [pod(f"p{n}") for n in range(len(values))]
    metrics = {f"p{n}": PodMetric(value, NOW, 30.0) for n, value in enumerate(values)}
    found = by_utilization(len(values), named(pods), metrics, "cpu", "", target, RULES, NOW)
    if found.usage > target * 1.1:
        assert found.replicas >= len(values)
    elif found.usage < target * 0.9:
        assert found.replicas <= len(values)
    else:
        assert found.replicas == len(values)
