"""Policies of Kyverno, of a namespace and of a cluster."""

from __future__ import annotations

import pytest

from karmada.interpreter.operations import InterpreterError
from tests.interpreter.thirdparty.cases import Case, Maker, check, items, result

BOTH = (Maker("kyverno.io/v1", "ClusterPolicy", namespace=""), Maker("kyverno.io/v1", "Policy"))
READY = "{type: Ready, status: 'True', reason: Succeeded, message: ok}"

CASES: list[Case] = [
    case
    for policy in BOTH
    for case in (
        policy.healthy("is as ready as it says", "{status: {ready: true}}", True),
        policy.healthy("is unready when it says so, whatever its condition",
                       "{status: {ready: false, conditions: [" + READY + "]}}", False),
        policy.healthy("is ready by its condition", "{status: {conditions: [" + READY + "]}}", True),
        policy.healthy("without a status is unready", "{}", False),
        policy.reflected("reports its rules", "{status: {ready: true, rulecount: {mutate: 1}, autogen: {}, more: 1}}",
                         "{ready: true, rulecount: {mutate: 1}}"),
        policy.aggregated("without clusters is unchanged", "{status: {a: 1}}", "{}", "{status: {a: 1}}"),
        policy.aggregated(
            "has a new status with the sums of rules", "{spec: {a: {}}, status: {former: 1}}",
            "{m1: {ready: true, autogen: {rules: [1]}, rulecount: {validate: 1, generate: 0, mutate: 2,"
            " verifyimages: 0},"
            " conditions: [" + READY + "]}, m2: {ready: false, rulecount: {validate: 1, generate: 1, mutate: 0,"
            " verifyimages: 3}, conditions: [" + READY + "]}, m3: null}",
            "{spec: {a: {}}, status: {ready: false, autogen: {rules: [1]}, rulecount: {validate: 2, generate: 1,"
            " mutate: 2, verifyimages: 3}, conditions: [{type: Ready, status: 'True', reason: Succeeded,"
            " message: 'm1=ok, m2=ok'}]}}"),
    )
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_policies_of_kyverno(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("policy", BOTH, ids=lambda maker: str(maker.head["kind"]))
def test_what_a_policy_must_have_is_an_error_when_it_is_missing(policy: Maker) -> None:
    with pytest.raises(InterpreterError, match=r"status\.ready: expected a boolean, got 'yes'"):
        result("interpret_health", policy.make("{status: {ready: 'yes'}}"))
    with pytest.raises(InterpreterError, match=r"rulecount\.generate: expected a number, got None"):
        result("aggregate_status", policy.make(), items("{m1: {rulecount: {validate: 1}}}"))
