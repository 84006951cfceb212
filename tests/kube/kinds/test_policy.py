"""Disruption budgets and eviction."""

from __future__ import annotations

from typing import Any

import pytest

from karmada.kube.kinds.policy import POD_DISRUPTION_BUDGET, evict
from karmada.kube.objects.errors import ApiError, TooManyRequests
from tests.support.cases import cases

NOW = 1_700_000_000.0
READY = [{"type": "Ready", "status": "True"}]


def pod(phase: str = "Running", ready: bool = True, **meta: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "p", "labels": {"app": "web"}, **meta},
        "status": {"phase": phase, "conditions": READY if ready else []},
    }


def budget(allowed: int = 1, **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "b", "generation": 1},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": 2},
        "status": {
            "observedGeneration": 1, "disruptionsAllowed": allowed, "currentHealthy": 2, "desiredHealthy": 2, **status,
        },
    }  # fmt: skip


def test_without_a_budget_a_pod_may_go() -> None:
    other = budget()
    other["spec"]["selector"] = {"matchLabels": {"app": "other"}}
    assert evict(pod(), [], NOW) is None
    assert evict(pod(), [other], NOW) is None


def test_an_eviction_spends_a_disruption() -> None:
    before = budget(allowed=2)
    taken = evict(pod(), [before], NOW)
    assert taken is not None
    assert taken["status"]["disruptionsAllowed"] == 1
    assert taken["status"]["disruptedPods"] == {"p": "2023-11-14T22:13:20Z"}
    assert before["status"]["disruptionsAllowed"] == 2


def test_the_last_disruption_shows_in_the_condition() -> None:
    taken = evict(pod(), [budget()], NOW)
    assert taken is not None
    [condition] = taken["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "DisruptionAllowed",
        "False",
        "InsufficientPods",
    )


@cases(
    (budget(allowed=0), "The disruption budget b needs 2 healthy pods and has 2 currently"),
    (budget(observedGeneration=0), "The disruption budget b is still being processed by the server."),
    (
        budget(allowed=0, conditions=[{"type": "DisruptionAllowed", "reason": "SyncFailed", "message": "oops"}]),
        "The disruption budget b does not allow evicting pods currently because it failed sync: oops",
    ),
)
def test_a_spent_budget_says_try_again(found: dict[str, Any], why: str) -> None:
    with pytest.raises(TooManyRequests) as caught:
        evict(pod(), [found], NOW)
    status = caught.value.status()
    assert (status["code"], status["reason"]) == (429, "TooManyRequests")
    assert status["message"] == "Cannot evict pod as it would violate the pod's disruption budget."
    assert status["details"]["causes"] == [{"reason": "DisruptionBudget", "message": why}]
    assert status["details"].get("retryAfterSeconds") == (10 if "processed" in why else None)


def test_two_budgets_are_one_too_many() -> None:
    with pytest.raises(ApiError) as caught:
        evict(pod(), [budget(), budget()], NOW)
    status = caught.value.status()
    assert (status["code"], status.get("reason")) == (500, None)
    assert status["message"] == (
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
    )


@cases(pod("Pending"), pod("Succeeded"), pod("Failed"), pod(deletionTimestamp="t"))
def test_pods_that_serve_nobody_need_no_budget(found: dict[str, Any]) -> None:
    assert evict(found, [budget(allowed=0)], NOW) is None


def test_unready_pods_may_go_while_the_others_suffice() -> None:
    assert evict(pod(ready=False), [budget(allowed=0)], NOW) is None
    with pytest.raises(TooManyRequests):
        evict(pod(ready=False), [budget(allowed=0, currentHealthy=1)], NOW)
    lax = budget(allowed=0, currentHealthy=1)
    lax["spec"]["unhealthyPodEvictionPolicy"] = "AlwaysAllow"
    assert evict(pod(ready=False), [lax], NOW) is None


@cases(
    ({"minAvailable": 1, "maxUnavailable": 1}, "minAvailable and maxUnavailable cannot be both set"),
    ({"minAvailable": "120%"}, "must not be greater than 100%"),
    ({"maxUnavailable": -1}, "spec.maxUnavailable: Invalid value: -1: must be greater than or equal to 0"),
    (
        {"unhealthyPodEvictionPolicy": "x"},
        'Unsupported value: "x": supported values: "AlwaysAllow", "IfHealthyBudget"',
    ),
)
def test_budget_rules(spec: dict[str, Any], wanted: str) -> None:
    assert any(wanted in str(error) for error in POD_DISRUPTION_BUDGET.validate({"metadata": {}, "spec": spec}))
