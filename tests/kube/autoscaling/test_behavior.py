"""From what metrics recommend to what is set: windows, rates, bounds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.autoscaling.behavior import Bounds, History, Moment, decide, down_limit, up_limit
from karmada.kube.objects.types import Obj
from tests.support.cases import cases

NOW = 1_700_000_000.0
WIDE = Bounds(1, 100)


def behavior(up: Obj | None = None, down: Obj | None = None) -> Obj:
    default = [{"type": "Percent", "value": 100, "periodSeconds": 15}]
    fast = [*default, {"type": "Pods", "value": 4, "periodSeconds": 15}]
    return {
        "scaleUp": {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": fast, **(up or {})},
        "scaleDown": {"selectPolicy": "Max", "policies": default, **(down or {})},
    }


@cases(
    (5, 7, WIDE, 7, "DesiredWithinRange"),
    (5, 30, WIDE, 10, "ScaleUpLimit"),
    (1, 30, WIDE, 4, "ScaleUpLimit"),
    (5, 30, Bounds(1, 8), 8, "TooManyReplicas"),
    (5, 5, Bounds(1, 8), 5, "DesiredWithinRange"),
)
def test_without_behavior_replicas_at_most_double(
    current: int, wanted: int, bounds: Bounds, expected: int, reason: str
) -> None:
    decision = decide(History(), current, wanted, bounds, None, NOW)
    assert (decision.replicas, decision.limit[0]) == (expected, reason)
    assert decision.limited is (reason != "DesiredWithinRange")


def test_without_behavior_the_highest_recommendation_of_five_minutes_wins() -> None:
    history = History()
    held = decide(history, 5, 2, WIDE, None, NOW)
    assert (held.replicas, held.able[0]) == (5, "ScaleDownStabilized")
    still = decide(history, 5, 3, WIDE, None, NOW + 299)
    assert still.replicas == 5
    assert decide(history, 5, 3, WIDE, None, NOW + 300).replicas == 5, "one as old as the window counts"
    free = decide(history, 5, 1, WIDE, None, NOW + 301)
    assert (free.replicas, free.able[0]) == (3, "ScaleDownStabilized")
    low = decide(history, 3, 0, Bounds(1, 10), None, NOW + 1000)
    assert (low.replicas, low.limit[0], low.able[0]) == (1, "TooFewReplicas", "ReadyForNewScale")


def test_a_window_for_scaling_up_takes_the_lowest_recent_recommendation() -> None:
    history, rules = History(), behavior(up={"stabilizationWindowSeconds": 60})
    held = decide(history, 5, 9, WIDE, rules, NOW)
    assert (held.replicas, held.able[0]) == (5, "ScaleUpStabilized")
    assert decide(history, 5, 7, WIDE, rules, NOW + 61).replicas == 7


def test_a_window_of_zero_scales_down_at_once() -> None:
    rules = behavior(down={"stabilizationWindowSeconds": 0})
    assert decide(History(), 10, 3, WIDE, rules, NOW).replicas == 3
    assert decide(History(), 10, 3, WIDE, behavior(), NOW).replicas == 10


def test_a_window_for_scaling_down_holds_for_as_long_as_it_lasts() -> None:
    history, rules = History(), behavior(down={"stabilizationWindowSeconds": 300})
    for seconds in (0, 15, 30, 150, 299):
        held = decide(history, 10, 3, WIDE, rules, NOW + seconds)
        assert (held.replicas, held.able[0]) == (10, "ScaleDownStabilized"), seconds
    assert decide(history, 10, 3, WIDE, rules, NOW + 301).replicas == 3


PODS_2 = {"type": "Pods", "value": 2, "periodSeconds": 60}
PERCENT_10 = {"type": "Percent", "value": 10, "periodSeconds": 60}


@cases(
    ("Max", [PODS_2, PERCENT_10], 110, 90),
    ("Min", [PODS_2, PERCENT_10], 102, 98),
    ("Max", [PODS_2], 102, 98),
    ("Disabled", [PODS_2], 100, 100),
)
def test_policies_bound_the_change(select: str, policies: list[Obj], up: int, down: int) -> None:
    rules = {"selectPolicy": select, "policies": policies}
    assert up_limit(History(), 100, rules, NOW) == up
    assert down_limit(History(), 100, rules, NOW) == down


def test_changes_within_the_period_count_against_the_policies() -> None:
    rules = {"selectPolicy": "Max", "policies": [PODS_2]}
    history = History(added=[Moment(NOW - 30, 1), Moment(NOW - 90, 5)])
    assert up_limit(history, 10, rules, NOW) == 11
    assert down_limit(History(removed=[Moment(NOW - 30, 1)]), 10, rules, NOW) == 9


def test_a_used_up_rate_holds_replicas_where_they_are() -> None:
    rules = behavior(up={"policies": [PODS_2]})
    history = History()
    first = decide(history, 10, 30, WIDE, rules, NOW)
    assert (first.replicas, first.limit[0]) == (12, "ScaleUpLimit")
    history.scaled(10, 12, rules, NOW)
    assert decide(history, 12, 30, WIDE, rules, NOW + 15).replicas == 12
    assert decide(history, 12, 30, WIDE, rules, NOW + 61).replicas == 14
    history.scaled(12, 14, rules, NOW + 61)
    assert history.added == [Moment(NOW + 61, 2)]


def test_changes_are_remembered_for_the_longest_period_of_a_policy() -> None:
    rules = behavior(up={"selectPolicy": "Min", "policies": [PODS_2, {**PODS_2, "value": 4, "periodSeconds": 15}]})
    history = History()
    history.scaled(10, 12, rules, NOW)
    history.scaled(12, 12, rules, NOW + 30)
    assert decide(history, 12, 30, WIDE, rules, NOW + 40).replicas == 12


@given(st.lists(st.integers(0, 40), min_size=1, max_size=20), st.integers(1, 20), st.booleans(), st.integers(1, 5))
def test_decisions_stay_within_bounds(wanted: list[int], current: int, with_behavior: bool, low: int) -> None:
    bounds, history, rules = Bounds(low, 25), History(), behavior() if with_behavior else None
    current = min(max(current, low), 25)
    for step, replicas in enumerate(wanted):
        decision = decide(history, current, replicas, bounds, rules, NOW + 15 * step)
        assert bounds.low <= decision.replicas <= bounds.high
        history.scaled(current, decision.replicas, rules or {}, NOW + 15 * step)
        current = decision.replicas
