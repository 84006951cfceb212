"""What multiplies is limited, and what is over a limit from before may be changed but not made worse."""

from __future__ import annotations

import re
from typing import Any

import pytest

from karmada.admission.limits import LIMITS, excess, limit_errors, set_limits, size_errors
from karmada.kube.objects.types import Obj
from tests.support.cases import cases
from tests.support.counting import counted_calls

PROPAGATION, OVERRIDE, AUTOSCALER = "validate-propagationpolicy", "validate-overridepolicy", "validate-federatedhpa"
LABEL = "propagationpolicy.karmada.io/permanent-id"
EXPRESSION = {"key": "a", "operator": "Exists"}
WEB = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default"}


def policy(**spec: Any) -> Obj:
    meta = {"name": "web", "namespace": "default", "labels": {LABEL: "id-0"}}
    return {"metadata": meta, "spec": {"resourceSelectors": [WEB], "placement": {}, **spec}}


def selecting(expressions: int, selectors: int = 1) -> Obj:
    selector = {**WEB, "labelSelector": {"matchExpressions": [EXPRESSION] * expressions}}
    return policy(resourceSelectors=[selector] * selectors)


def terms(number: int) -> Obj:
    return policy(placement={"clusterAffinities": [{"affinityName": f"a{n}"} for n in range(number)]})


def named(field: str, number: int) -> Obj:
    return policy(placement={"clusterAffinity": {field: [f"m{n}" for n in range(number)]}})


def overriding(rules: int, overriders: int) -> Obj:
    plaintext = [{"path": "/data/a", "operator": "remove"}] * overriders
    return policy(overrideRules=[{"overriders": {"plaintext": plaintext}}] * rules)


def patching(patches: int) -> Obj:
    patch = {"subPath": "/a", "operator": "remove"}
    return policy(
        overrideRules=[{"overriders": {"fieldOverrider": [{"fieldPath": "/data/a", "json": [patch] * patches}]}}]
    )


def measured(number: int) -> Obj:
    metric = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}
    return {"metadata": {"name": "web", "namespace": "default"}, "spec": {"metrics": [metric] * number}}


LABELS, AFFINITY = "spec.resourceSelectors[0].labelSelector", "spec.placement.clusterAffinity"
CASES = [
    (PROPAGATION, policy(resourceSelectors=[WEB] * 1001), "spec.resourceSelectors: Too many: 1001: ", 1000),
    (PROPAGATION, selecting(65), f"{LABELS}.matchExpressions: Too many: 65: ", 64),
    (PROPAGATION, selecting(50, 101), "spec (matchExpressions in all): Too many: 5050: ", 5000),
    (PROPAGATION, terms(101), "spec.placement.clusterAffinities: Too many: 101: ", 100),
    (PROPAGATION, named("clusterNames", 10_001), f"{AFFINITY}.clusterNames: Too many: 10001: ", 10_000),
    (PROPAGATION, named("exclude", 10_001), f"{AFFINITY}.exclude: Too many: 10001: ", 10_000),
    (OVERRIDE, overriding(1001, 0), "spec.overrideRules: Too many: 1001: ", 1000),
    (OVERRIDE, overriding(101, 10), "spec (overriders in all): Too many: 1010: ", 1000),
    (OVERRIDE, patching(1000), "spec (overriders in all): Too many: 1001: ", 1000),
    (AUTOSCALER, measured(65), "spec.metrics: Too many: 65: ", 64),
]


@pytest.mark.parametrize(("path", "obj", "text", "limit"), CASES, ids=[text for _, _, text, _ in CASES])
async def test_too_much_is_refused_with_the_field_and_the_limit(
    path: str, obj: Obj, text: str, limit: int, refused: Any
) -> None:
    assert await refused(path, obj) == f"{text}must have at most {limit} items"
    assert "Too many" not in await refused(path, obj, obj)


@cases((selecting(64), PROPAGATION), (terms(100), PROPAGATION))
async def test_what_is_just_within_a_limit_is_accepted(obj: Obj, path: str, refused: Any) -> None:
    assert await refused(path, obj) == ""


async def test_what_is_over_a_limit_may_shrink_but_not_grow(refused: Any) -> None:
    assert await refused(PROPAGATION, terms(150), terms(200)) == ""
    assert "Too many: 201" in await refused(PROPAGATION, terms(201), terms(200))
    assert "Too many: 101" in await refused(PROPAGATION, terms(101), policy())


async def test_a_refusal_costs_no_more_than_a_walk_of_the_object(refused: Any) -> None:
    async def calls_for(number: int) -> int:
        obj = terms(number)
        with counted_calls() as calls:
            assert "Too many" in await refused(PROPAGATION, obj)
        return calls.count

    assert await calls_for(4000) < 2.1 * await calls_for(2000)


def test_what_makes_a_stored_policy_slow_is_told() -> None:
    assert excess(policy()) == []
    assert [str(wrong) for wrong in excess(terms(101))] == [
        "spec.placement.clusterAffinities: Too many: 101: must have at most 100 items"
    ]
    assert [wrong.field for wrong in excess(policy(resourceSelectors=[WEB] * 1001))] == ["spec.resourceSelectors"]


def test_limits_are_set_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LIMITS, "clusterAffinities", 100)
    assert limit_errors(terms(101), None)
    set_limits(["clusterAffinities=200"])
    assert not limit_errors(terms(101), None)
    assert limit_errors(terms(201), None)


@cases(
    ("clusters=1", "unknown limit 'clusters': expected one of resourceSelectors, "),
    ("metrics=0", "limit metrics: expected a number above 0, not '0'"),
    ("metrics", "limit metrics: expected a number above 0, not ''"),
)
def test_a_limit_that_cannot_be_set_is_named(given: str, why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        set_limits([given])


def test_overriders_fit_into_the_annotation_that_records_them() -> None:
    def of_bytes(number: int) -> Obj:
        plaintext = [{"path": "/data/a", "operator": "add", "value": "x" * number}]
        return policy(overrideRules=[{"overriders": {"plaintext": plaintext}}])

    [error] = size_errors(of_bytes(262_144), None)
    assert str(error) == "spec.overrideRules: Too long: may not be more than 262144 bytes"
    assert not size_errors(of_bytes(262_000), None)
    assert not size_errors(of_bytes(262_144), of_bytes(262_145))
    assert size_errors(of_bytes(262_145), of_bytes(262_144))
