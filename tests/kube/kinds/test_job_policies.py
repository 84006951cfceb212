"""What a Job does about pods that fail or succeed."""

from __future__ import annotations

from typing import Any

import pytest

from karmada.kube.kinds.job_policies import count_indexes, job_policies
from karmada.kube.objects.errors import FieldError
from tests.support.cases import cases

_CODES = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1, 2]}}
_R = "spec.podFailurePolicy.rules[0]"
_S = "spec.successPolicy.rules"


def errors_of(**spec: Any) -> list[str]:
    errors: list[FieldError] = []
    template = {"spec": {"containers": [{"name": "main"}]}}
    job_policies(errors, "spec", {"template": template, **spec})
    return [str(error) for error in errors]


def codes(**rule: Any) -> dict[str, Any]:
    return {**_CODES, "onExitCodes": {**_CODES["onExitCodes"], **rule}}  # type: ignore[dict-item]


@cases(
    (_CODES, []),
    ({"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}, []),
    ({"action": "Odd"}, [
        f'{_R}.action: Unsupported value: "Odd": supported values: "Count", "FailIndex", "FailJob", "Ignore"',
        f"{_R}: Invalid value: specifying one of OnExitCodes and OnPodConditions is required"]),
    ({**_CODES, "onPodConditions": [{"type": "a", "status": ""}]}, [
        f'{_R}.onPodConditions[0].status: Required value: valid values: ["False" "True" "Unknown"]',
        f"{_R}: Invalid value: specifying both OnExitCodes and OnPodConditions is not supported"]),
    ({**_CODES, "action": "FailIndex"}, [
        f'{_R}.action: Invalid value: "FailIndex": requires the backoffLimitPerIndex to be set']),
    (codes(values=[0, 2, 2, 1], containerName="other"), [
        f'{_R}.onExitCodes.containerName: Invalid value: "other": must be one of the container or initContainer '
        "names in the pod template",
        f"{_R}.onExitCodes.values[0]: Invalid value: 0: must not be 0 for the In operator",
        f"{_R}.onExitCodes.values[2]: Duplicate value: 2",
        f"{_R}.onExitCodes.values: Invalid value: [0,2,2,1]: must be ordered"]),
    (codes(values=[]), [f"{_R}.onExitCodes.values: Invalid value: []: at least one value is required"]),
)  # fmt: skip
def test_failure_policies(rule: dict[str, Any], wanted: list[str]) -> None:
    assert errors_of(podFailurePolicy={"rules": [rule]}) == wanted


@cases(
    ([{"succeededIndexes": "0,2-3", "succeededCount": 2}], []),
    ([], [f"{_S}: Required value: at least one rules must be specified when the successPolicy is specified"]),
    ([{}], [f"{_S}[0]: Required value: at least one of succeededCount or succeededIndexes must be specified"]),
    ([{"succeededCount": 6}], [
        f"{_S}[0].succeededCount: Invalid value: 6: must be less than or equal to 5 (the number of specified "
        "completions)"]),
    ([{"succeededIndexes": "1,3", "succeededCount": 3}], [
        f"{_S}[0].succeededCount: Invalid value: 3: must be less than or equal to 2 (the number of indexes in the "
        "specified succeededIndexes field)"]),
    ([{"succeededIndexes": "9"}], [
        f'{_S}[0].succeededIndexes: Invalid value: "9": error parsing succeededIndexes: too large index: "9"']),
)  # fmt: skip
def test_success_policies(rules: list[dict[str, Any]], wanted: list[str]) -> None:
    assert errors_of(successPolicy={"rules": rules}, completionMode="Indexed", completions=5) == wanted


def test_a_success_policy_needs_indexes() -> None:
    [error] = errors_of(successPolicy={"rules": []}, completionMode="NonIndexed")
    assert error.endswith("requires indexed completion mode")


def test_pods_that_failed_by_a_policy_are_replaced_when_they_have_failed() -> None:
    wanted = 'spec.podReplacementPolicy: Unsupported value: "TerminatingOrFailed": supported values: "Failed"'
    assert errors_of(podFailurePolicy={"rules": []}, podReplacementPolicy="TerminatingOrFailed") == [wanted]
    assert errors_of(podReplacementPolicy="TerminatingOrFailed") == []


@cases(("", 0), ("3", 1), ("0-4", 5), ("0,2-3,5", 4))
def test_indexes_are_counted(text: str, count: int) -> None:
    assert count_indexes(text, 6) == count


@cases("a", "1,", "1-2-3", "2,1", "3-3", "6", "0-6", "-1")
def test_what_names_no_indexes_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"index|order|fragment"):
        count_indexes(text, 6)
