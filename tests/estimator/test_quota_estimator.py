"""How many replicas, or sets of components, the quotas of a namespace allow."""

from __future__ import annotations

from typing import Any

import pytest

from karmada.estimator.quota import ResourceQuotaEstimator, applies, free_of, replicas_by, sets_by
from karmada.estimator.resources import demand_of
from karmada.estimator.results import Code, Result, merged
from karmada.estimator.terms import MAX_REPLICAS, Assumption, EstimateError
from karmada.kube.objects.types import Obj
from tests.support.cases import cases

HIGH: Obj = {"scopeSelector": {"matchExpressions": [
    {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]}}  # fmt: skip


def quota(hard: Obj, used: Obj, **spec: Any) -> Obj:
    return {"metadata": {"name": "q", "namespace": "shop"}, "spec": spec, "status": {"hard": hard, "used": used}}


def needs(namespace: str = "shop", class_name: str = "", **request: str) -> Obj:
    return {"resourceRequest": request, "namespace": namespace, "priorityClassName": class_name}


def component(replicas: int, class_name: str = "", **request: str) -> Obj:
    requirements = {"resourceRequest": request, "priorityClassName": class_name}
    return {"name": "c", "replicas": replicas, "replicaRequirements": requirements}


def _absent(scope: str) -> Obj:
    return {"scopeSelector": {"matchExpressions": [{"scopeName": scope, "operator": "DoesNotExist"}]}}


BASIC = quota({"requests.cpu": "10", "requests.memory": "20Gi"}, {"requests.cpu": "4", "requests.memory": "18Gi"})
MIXED = quota(
    {"cpu": "10", "requests.memory": "20Gi", "limits.cpu": "20", "requests.nvidia.com/gpu": "4"},
    {"cpu": "4", "requests.memory": "8Gi", "limits.cpu": "19", "requests.nvidia.com/gpu": "1"},
)


@cases(
    (BASIC, {"cpu": "500m", "memory": "512Mi"}, "", 4),
    (MIXED, {"cpu": "1", "memory": "2Gi", "nvidia.com/gpu": "1"}, "", 3),
    (BASIC, {"cpu": "500m"}, "", 12),
    (BASIC, {"ephemeral-storage": "1Gi"}, "", MAX_REPLICAS),
    (BASIC, {}, "", MAX_REPLICAS),
    (quota({"pods": "3", "requests.storage": "1Gi", "limits.cpu": "1"}, {"pods": "3", "limits.cpu": "1"}),
     {"cpu": "1"}, "", MAX_REPLICAS),
    (quota({"cpu": "10"}, {}), {"cpu": "1"}, "", MAX_REPLICAS),
    (quota({"cpu": "10"}, {"cpu": "12"}), {"cpu": "1"}, "", 0),
    (quota({"cpu": "1e12"}, {"cpu": "0"}), {"cpu": "1m"}, "", MAX_REPLICAS),
    (quota(BASIC["status"]["hard"], BASIC["status"]["used"], **HIGH), {"cpu": "500m"}, "low", MAX_REPLICAS),
    (quota(BASIC["status"]["hard"], BASIC["status"]["used"], **HIGH), {"cpu": "500m"}, "high", 12),
)  # fmt: skip
def test_replicas_that_a_quota_allows(one: Obj, request_: Obj, class_name: str, expected: int) -> None:
    assert replicas_by(one, demand_of({"resourceRequest": request_}), class_name, ()) == expected


def test_a_key_with_the_prefix_overrides_the_bare_one() -> None:
    both = quota({"requests.cpu": "5", "cpu": "9"}, {"requests.cpu": "1", "cpu": "1"})
    assert free_of(both) == {"cpu": 4000}


@cases(
    ({}, "", True),
    ({"scopes": ["PriorityClass"]}, "", False),
    ({"scopes": ["PriorityClass"]}, "any", True),
    ({"scopes": ["BestEffort"]}, "any", False),
    ({"scopes": ["BestEffort", "PriorityClass"]}, "any", True),
    (HIGH, "high", True),
    (HIGH, "low", False),
    (HIGH, "", False),
    ({"scopeSelector": {"matchExpressions": [
        {"scopeName": "PriorityClass", "operator": "NotIn", "values": ["high"]}]}}, "", True),
    (_absent("PriorityClass"), "", True),
    (_absent("PriorityClass"), "high", False),
    (_absent("Terminating"), "", False),
)  # fmt: skip
def test_which_pods_a_quota_holds_for(spec: Obj, class_name: str, expected: bool) -> None:
    assert applies(quota({}, {}, **spec), class_name) is expected


@cases(
    ([], 12),
    ([component(4, cpu="1")], 4),
    ([component(6, cpu="1")], 0),
    ([component(7, cpu="1")], 0),
    ([component(0, cpu="1")], 12),
    ([component(4, memory="1Gi", cpu="0")], 0),
)
def test_what_is_assumed_is_taken_off(assumed: list[Obj], expected: int) -> None:
    assert replicas_by(BASIC, {"cpu": 500}, "", assumed) == expected


def test_only_assumptions_of_the_namespace_count() -> None:
    plugin = ResourceQuotaEstimator(lambda _: [BASIC])
    assumed = [Assumption("other", [component(5, cpu="1")]), Assumption("shop", [component(2, cpu="1")])]
    assert plugin.replicas(needs(cpu="500m"), assumed) == Result(Code.SUCCESS, 8)


def test_assumptions_that_the_quota_does_not_hold_for_do_not_count() -> None:
    scoped = quota(BASIC["status"]["hard"], BASIC["status"]["used"], **HIGH)
    assert replicas_by(scoped, {"cpu": 500}, "high", [component(4, "low", cpu="1")]) == 12


@cases(
    (BASIC, [component(2, cpu="1"), component(1, cpu="1")], 2),
    (BASIC, [component(2, cpu="1"), component(1, memory="2Gi")], 1),
    (BASIC, [component(7, cpu="1")], 0),
    (BASIC, [{"name": "c", "replicas": 3}], MAX_REPLICAS),
    (quota(BASIC["status"]["hard"], BASIC["status"]["used"], **HIGH),
     [component(2, "low", cpu="9"), component(1, "high", cpu="1")], 6),
    (quota(BASIC["status"]["hard"], BASIC["status"]["used"], **HIGH), [component(2, "low", cpu="9")], MAX_REPLICAS),
)  # fmt: skip
def test_sets_that_a_quota_allows(one: Obj, components: list[Obj], expected: int) -> None:
    assert sets_by(one, components, ()) == expected


NO_CONSTRAINTS = Result(Code.SUCCESS, reason="ResourceQuotaEstimator found no quota constraints")
DISABLED = Result(Code.NO_OPERATION, reason="ResourceQuotaEstimator is disabled")


def test_the_smallest_of_several_quotas_counts() -> None:
    plugin = ResourceQuotaEstimator({"shop": [BASIC, quota({"cpu": "3"}, {"cpu": "1"})], "": []}.__getitem__)
    assert plugin.replicas(needs(cpu="500m"), ()) == Result(Code.SUCCESS, 4)
    assert plugin.replicas(needs("", cpu="500m"), ()) == NO_CONSTRAINTS
    assert plugin.sets([component(1, cpu="1")], "shop", ()) == Result(Code.SUCCESS, 2)


def test_results_of_the_plugin_and_their_reasons() -> None:
    plugin = ResourceQuotaEstimator(lambda _: [BASIC])
    assert ResourceQuotaEstimator(None).replicas(needs(cpu="1"), ()) == DISABLED
    assert ResourceQuotaEstimator(None).sets([component(1, cpu="1")], "shop", ()) == DISABLED
    assert plugin.replicas(None, ()) == NO_CONSTRAINTS
    assert plugin.sets([component(1, cpu="1")], "", ()) == NO_CONSTRAINTS
    assert plugin.sets([], "shop", ()) == NO_CONSTRAINTS
    none = Result(Code.UNSCHEDULABLE, 0, "zero replica is estimated by ResourceQuotaEstimator")
    assert plugin.replicas(needs(cpu="7"), ()) == none
    none = Result(Code.UNSCHEDULABLE, 0, "zero component sets estimated by ResourceQuotaEstimator")
    assert plugin.sets([component(7, cpu="1")], "shop", ()) == none


def test_a_quota_that_cannot_be_read_is_an_error() -> None:
    plugin = ResourceQuotaEstimator(lambda _: [quota({"cpu": "x"}, {"cpu": "1"})])
    assert plugin.replicas(needs(cpu="1"), ()).code is Code.ERROR


@cases(
    ([Result(Code.SUCCESS, 5), Result(Code.NO_OPERATION, 1)], 5),
    ([Result(Code.SUCCESS, 5), Result(Code.SUCCESS, 3)], 3),
    ([Result(Code.SUCCESS, 5), Result(Code.UNSCHEDULABLE, 3)], 0),
    ([Result(Code.NO_OPERATION), Result(Code.NO_OPERATION)], MAX_REPLICAS),
    ([Result(Code.SUCCESS, -4)], 0),
)
def test_results_become_one(results: list[Result], expected: int) -> None:
    assert merged(results, "replica") == expected


@cases("replica", "components")
def test_an_error_is_stronger_than_everything_else(what: str) -> None:
    results = [Result(Code.UNSCHEDULABLE, 0, "full"), Result(Code.ERROR, 0, "broken")]
    with pytest.raises(EstimateError, match=rf"^estimate {what} plugins fails with \[broken\]$"):
        merged(results, what)
