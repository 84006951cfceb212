"""The status of a CronFederatedHPA after its runs."""

from __future__ import annotations

from typing import Any

from karmada.controllers.cron_federated_hpa.history import Run, status_after
from karmada.kube.objects.types import Obj

START = 1_704_067_200.0  # 2024-01-01T00:00:00Z
DAY = 86_400.0


def rule(name: str = "a", **fields: Any) -> Obj:
    return {"name": name, "schedule": "0 0 * * *", "targetReplicas": 5, **fields}


def run(day: int, failure: str = "", **fields: Any) -> Run:
    return Run(rule(**fields), START + day * DAY, START + day * DAY + 1, failure)


def times(entry: Obj, field: str) -> list[str]:
    return [execution["scheduleTime"][:10] for execution in entry.get(field) or ()]


def test_a_success_is_recorded_with_what_was_applied() -> None:
    (entry,) = status_after({}, {"a": START + DAY}, [run(0)])["executionHistories"]
    assert entry == {
        "ruleName": "a",
        "nextExecutionTime": "2024-01-02T00:00:00Z",
        "successfulExecutions": [
            {"scheduleTime": "2024-01-01T00:00:00Z", "executionTime": "2024-01-01T00:00:01Z", "appliedReplicas": 5}
        ],
    }


def test_bounds_are_recorded_as_the_rule_has_them() -> None:
    bounds = run(0, targetReplicas=None, targetMinReplicas=2, targetMaxReplicas=9)
    (entry,) = status_after({}, {"a": None}, [bounds])["executionHistories"]
    (execution,) = entry["successfulExecutions"]
    assert (execution["appliedMinReplicas"], execution["appliedMaxReplicas"]) == (2, 9)
    assert "appliedReplicas" not in execution


def test_the_newest_executions_stay_up_to_the_limits() -> None:
    runs = [run(day) for day in range(4)] + [run(day, "no", failedHistoryLimit=1) for day in range(2)]
    (entry,) = status_after({}, {"a": None}, runs)["executionHistories"]
    assert times(entry, "successfulExecutions") == ["2024-01-04", "2024-01-03", "2024-01-02"]
    assert times(entry, "failedExecutions") == ["2024-01-02"]


def test_a_limit_of_zero_keeps_none() -> None:
    (entry,) = status_after({}, {"a": None}, [run(0, "no", failedHistoryLimit=0)])["executionHistories"]
    assert entry == {"ruleName": "a"}


def test_suspension_ends_the_next_time_and_keeps_the_histories() -> None:
    before = status_after({}, {"a": START + DAY}, [run(0)])
    (entry,) = status_after(before, {"a": None}, [])["executionHistories"]
    assert "nextExecutionTime" not in entry
    assert times(entry, "successfulExecutions") == ["2024-01-01"]


def test_histories_of_other_names_go_and_the_others_keep_their_order() -> None:
    before = status_after({}, {"a": None, "b": None, "c": None}, [])
    after = status_after(before, {"c": None, "d": None, "a": None}, [run(0, name="b")])
    assert [entry["ruleName"] for entry in after["executionHistories"]] == ["a", "c", "d"]
    assert status_after(after, {}, []) == {}
