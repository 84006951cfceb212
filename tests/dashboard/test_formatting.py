from __future__ import annotations

from karmada.dashboard import formatting
from tests.support.cases import cases


@cases(
    (-3, "0s"),
    (0, "0s"),
    (119, "119s"),
    (120, "2m"),
    (7199, "119m"),
    (7200, "2h"),
    (8100, "2h15m"),
    (40_000, "11h"),
    (172_800, "2d"),
)
def test_durations_are_short(seconds: float, shown: str) -> None:
    assert formatting.duration(seconds) == shown


def test_an_age_is_since_a_timestamp() -> None:
    assert formatting.age("2026-01-01T00:00:00Z", 1_767_225_660.0) == "60s"
    assert formatting.age(None, 0) == formatting.age("yesterday", 0) == "unknown"


@cases((0, "0"), (0.25, "250m"), (1.5, "1.5"), (12, "12"), (1200, "1,200"))
def test_cpu_is_shown_in_cores(value: float, shown: str) -> None:
    assert formatting.cores(value) == shown


@cases((0, "0"), (2**29, "512Mi"), (1.5 * 2**30, "1.5Gi"), (2**42, "4Ti"))
def test_bytes_are_shown_in_binary_units(value: float, shown: str) -> None:
    assert formatting.size(value) == shown


@cases((0, 0, 0), (0, 5, 0), (1, 1000, 1), (999, 1000, 99), (5, 5, 100), (9, 5, 100), (1, 3, 33))
def test_a_share_is_never_nothing_or_all_when_it_is_not(part: float, whole: float, shown: int) -> None:
    assert formatting.percent(part, whole) == shown


def test_yaml_leaves_out_what_nobody_reads() -> None:
    shown = formatting.as_yaml({"metadata": {"name": "a", "managedFields": [1]}, "spec": {}})
    assert "managedFields" not in shown
    assert "name: a" in shown
