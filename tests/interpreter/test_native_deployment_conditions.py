"""Conditions of a Deployment, proved by the counters of its clusters."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from karmada.interpreter.native.deployment_conditions import with_conditions
from karmada.interpreter.operations import Report
from karmada.kube.objects.types import Obj
from tests.support.cases import cases

NOW, LATER = 1_700_000_000.0, 1_700_000_100.0


def deployment(replicas: int = 10, **rollout: Any) -> Obj:
    strategy = {"type": "RollingUpdate", "rollingUpdate": rollout} if rollout else {}
    return {"kind": "Deployment", "spec": {"replicas": replicas, "strategy": strategy}}


def counters(desired: int, available: int, *, updated: int | None = None, existing: int | None = None) -> Obj:
    """What a cluster reports of so many desired replicas."""
    total = desired if existing is None else existing
    return {
        "generation": 1,
        "observedGeneration": 1,
        "replicas": total,
        "updatedReplicas": desired if updated is None else updated,
        "availableReplicas": available,
        "unavailableReplicas": total - available,
    }


def conditions(template: Obj, *reports: Obj | None, old: Obj | None = None, now: float = NOW) -> dict[str, Obj]:
    found = [Report(f"m{index}", report) for index, report in enumerate(reports)]
    status = with_conditions(template, old or {}, found, now)
    return {condition["type"]: condition for condition in status.get("conditions", ())}


def status_of(found: dict[str, Obj], kind: str) -> str:
    return str(found.get(kind, {}).get("status", ""))


@cases(
    ([counters(4, 4), counters(6, 6)], "True", "True"),
    ([counters(4, 3), counters(6, 5)], "True", ""),  # a quarter may be missing
    ([counters(4, 0), counters(6, 1)], "False", ""),
    ([counters(4, 4), counters(6, 1)], "", ""),  # they do not agree
    ([counters(4, 4), None], "", ""),  # one has not reported
    ([counters(0, 0)], "", ""),  # nothing was made yet
    ([], "", ""),
    ([counters(4, 3, updated=2, existing=5)], "", ""),  # 4 desired and one of surge, or 5 desired
)
def test_a_condition_says_what_all_clusters_agree_on(
    reports: list[Obj | None], available: str, progressing: str
) -> None:
    found = conditions(deployment(), *reports)
    assert (status_of(found, "Available"), status_of(found, "Progressing")) == (available, progressing)


def test_a_deployment_of_no_replicas_is_available() -> None:
    assert status_of(conditions(deployment(0), counters(0, 0)), "Available") == "True"


def test_nothing_may_be_missing_where_the_strategy_says_so() -> None:
    strict = deployment(4, maxUnavailable=0, maxSurge=1)
    assert status_of(conditions(strict, counters(4, 2)), "Available") == "False"
    assert status_of(conditions(deployment(4, maxUnavailable=2), counters(4, 2)), "Available") == "True"


def test_times_move_with_the_status_only() -> None:
    template = deployment(4)
    first = with_conditions(template, {}, [Report("m1", counters(4, 4))], NOW)
    assert with_conditions(template, first, [Report("m1", counters(4, 4))], LATER) == first
    lost = conditions(template, counters(4, 0), old=first, now=LATER)["Available"]
    assert (lost["status"], lost["lastTransitionTime"]) == ("False", "2023-11-14T22:15:00Z")


def test_conditions_of_others_stay_and_those_in_doubt_go() -> None:
    template = deployment(4)
    old = with_conditions(template, {"conditions": [{"type": "Mine"}]}, [Report("m1", counters(4, 4))], NOW)
    assert set(conditions(template, None, old=old)) == {"Mine"}


@given(
    desired=st.integers(1, 50),
    surge=st.integers(0, 50),
    missing=st.integers(0, 100),
    percent=st.booleans(),
    data=st.data(),
)
def test_no_verdict_contradicts_the_controller_of_the_cluster(
    desired: int, surge: int, missing: int, percent: bool, data: st.DataObject
) -> None:
    """Whatever a rollout has made so far, a verdict is what the member's Deployment controller would say."""
    rollout: dict[str, Any] = {"maxSurge": surge, "maxUnavailable": missing}
    if percent:
        rollout = {field: f"{value}%" for field, value in rollout.items()}
    template = deployment(desired, **rollout)
    most = -(-desired * surge // 100) if percent else surge
    allowed = min(desired, desired * missing // 100 if percent else missing) or (0 if most else 1)
    existing = desired + data.draw(st.integers(0, most))
    available = data.draw(st.integers(0, existing))
    verdict = status_of(conditions(template, counters(desired, available, existing=existing)), "Available")
    assert verdict in ("", str(available >= desired - allowed))
