"""When what a node observes becomes its condition, and what the cluster's is."""

from __future__ import annotations

from typing import Any

import pytest

from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.problemdetector.rules import (
    CONDITION,
    Observation,
    Seen,
    Thresholds,
    cluster_condition,
    damped,
    node_condition,
)

THRESHOLDS = Thresholds(success=30, failure=20, stale=60)
WORKS, FAILS = Observation("True", "Ready", ""), Observation("False", "Failed", "no such host")
NOW = 1_700_000_000.0


def history(current: Obj | None, *moments: tuple[float, Observation]) -> list[str]:
    """The statuses of a node's condition after each of these observations."""
    seen: Seen | None = None
    found = []
    for at, observed in moments:
        seen, wanted = damped(seen, observed, current, NOW + at, THRESHOLDS)
        current = node_condition(current, wanted, NOW + at)
        found.append(wanted.status)
    return found


@pytest.mark.parametrize(
    ("current", "moments", "statuses"),
    [
        (None, [(0, FAILS)], ["False"]),
        ("True", [(0, FAILS)], ["False"]),
        ("True", [(0, WORKS), (5, FAILS), (24, FAILS), (25, FAILS)], ["True", "True", "True", "False"]),
        ("False", [(0, FAILS), (5, WORKS), (34, WORKS), (35, WORKS)], ["False", "False", "False", "True"]),
        ("True", [(0, WORKS), (5, FAILS), (20, WORKS), (25, FAILS), (44, FAILS)], ["True"] * 5),
        ("Unknown", [(0, FAILS), (5, FAILS)], ["False", "False"]),
        ("True", [(0, WORKS), (5, WORKS)], ["True", "True"]),
    ],
    ids=[
        "a node without condition gets the first observation",
        "the first observation of a process counts at once",
        "a failure counts after its threshold",
        "success counts after its threshold",
        "an interruption starts the time anew",
        "unknown is as good as false",
        "the same is reported on",
    ],
)
def test_a_condition_changes_after_what_is_observed_has_lasted(
    current: str | None, moments: list[tuple[float, Observation]], statuses: list[str]
) -> None:
    before = {"type": CONDITION, "status": current} if current else None
    assert history(before, *moments) == statuses


def test_the_transition_time_changes_with_the_status_only() -> None:
    first = node_condition(None, WORKS, NOW)
    later = node_condition(first, WORKS, NOW + 5)
    assert later["lastTransitionTime"] == first["lastTransitionTime"]
    assert later["lastHeartbeatTime"] == rfc3339(NOW + 5)
    assert node_condition(later, FAILS, NOW + 9)["lastTransitionTime"] == rfc3339(NOW + 9)


def node(status: str | None, *, ready: str = "True", age: float = 0) -> Obj:
    conditions: list[dict[str, Any]] = [{"type": "Ready", "status": ready}]
    if status is not None:
        conditions.append({"type": CONDITION, "status": status, "lastHeartbeatTime": rfc3339(NOW - age)})
    return {"status": {"conditions": conditions}}


@pytest.mark.parametrize(
    ("nodes", "status"),
    [
        ([], None),
        ([node("False", ready="False")], None),
        ([node("False"), node(None)], None),
        ([node("False"), node("False", age=61)], None),
        ([node("False"), node("False")], "False"),
        ([node("False"), node("True")], "True"),
        ([node("False"), node("True", ready="Unknown")], "False"),
    ],
    ids=["no node", "none ready", "one silent", "one stale", "all fail", "one works", "a lost node does not count"],
)
def test_a_cluster_fails_when_all_its_ready_nodes_do(nodes: list[Obj], status: str | None) -> None:
    found = cluster_condition(nodes, NOW, THRESHOLDS.stale)
    assert (found and found["status"]) == status
