"""Thresholds of probes."""

from __future__ import annotations

from karmada.kube.sim.processes.probe_rules import Streak, Timing
from tests.support.cases import cases


@cases(
    ("..+", "--+"),
    ("+...", "+++-"),
    ("+.+..+...", "++++++++-"),
    ("...+", "---+"),
)
def test_a_verdict_changes_after_a_number_of_equal_results(results: str, verdicts: str) -> None:
    streak = Streak(Timing.of({"failureThreshold": 3}), False)
    seen = ""
    for result in results:
        streak.add(result == "+")
        seen += "+" if streak.verdict else "-"
    assert seen == verdicts


def test_a_success_threshold_delays_readiness() -> None:
    streak = Streak(Timing.of({"successThreshold": 2}), False)
    assert [streak.add(True) for _ in range(3)] == [False, True, True]
    assert streak.verdict


def test_the_defaults_are_those_of_kubernetes() -> None:
    assert Timing.of({}) == Timing(0.0, 10.0, 1.0, 3, 1)
