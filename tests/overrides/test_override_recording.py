"""What a Work notes of the policies that were applied."""

from __future__ import annotations

import json

from karmada.overrides.hook import work_annotations
from karmada.overrides.recording import html_safe, record
from tests.support.overriding import applied, config_map, cop, deployment, op, rule

CLUSTER_WIDE = "policy.karmada.io/applied-cluster-overrides"
NAMESPACED = "policy.karmada.io/applied-overrides"
TAG = {"component": "Tag", "operator": "replace", "value": "1.20"}


def test_nothing_is_noted_when_nothing_was_applied() -> None:
    assert work_annotations(applied(deployment())) == {}


def test_a_rule_is_noted_with_its_policy() -> None:
    noted = work_annotations(applied(deployment(), op("nginx-op", rule(imageOverrider=[TAG]))))
    expected = (
        '[{"policyName":"nginx-op","overriders":'
        '{"imageOverrider":[{"component":"Tag","operator":"replace","value":"1.20"}]}}]'
    )
    assert noted == {NAMESPACED: expected}


def test_both_kinds_are_noted_apart_and_by_name() -> None:
    selector = [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}]
    policies = [
        op("b", rule(), rule(replicasOverrider=[{"value": 0}])),
        op("a", rule(labelsOverrider=[{"operator": "add", "value": {"x": "y"}}]), selectors=selector),
        cop("c", rule()),
    ]
    noted = work_annotations(applied(deployment(), *policies))
    assert noted[CLUSTER_WIDE] == '[{"policyName":"c","overriders":{}}]'
    assert json.loads(noted[NAMESPACED]) == [
        {"policyName": "a", "overriders": {"labelsOverrider": [{"operator": "add", "value": {"x": "y"}}]}},
        {"policyName": "b", "overriders": {}},
        {"policyName": "b", "overriders": {"replicasOverrider": [{"value": 0}]}},
    ]


def test_fields_have_an_order_and_values_are_noted_even_when_there_is_none() -> None:
    overriders = {
        "fieldOverrider": [
            {"yaml": [], "json": [{"value": None, "operator": "remove", "subPath": "/a"}], "fieldPath": "/data/x"}
        ],
        "annotationsOverrider": [{"value": {"b": "1", "a": "2"}, "operator": "add"}],
        "labelsOverrider": [{"value": {}, "operator": "remove"}],
        "argsOverrider": [{"value": ["x"], "operator": "add", "containerName": "c"}],
        "commandOverrider": [{"operator": "remove", "containerName": "c"}],
        "imageOverrider": [{"value": "", "operator": "remove", "component": "Tag", "predicate": {"path": "/a"}}],
        "plaintext": [
            {"operator": "remove", "path": "/a"},
            {"value": {"z": 1, "a": False}, "path": "", "operator": "add"},
        ],
    }
    assert record("p", overriders) == (
        '{"policyName":"p","overriders":{'
        '"plaintext":[{"path":"/a","operator":"remove","value":null},'
        '{"path":"","operator":"add","value":{"a":false,"z":1}}],'
        '"imageOverrider":[{"predicate":{"path":"/a"},"component":"Tag","operator":"remove"}],'
        '"commandOverrider":[{"containerName":"c","operator":"remove"}],'
        '"argsOverrider":[{"containerName":"c","operator":"add","value":["x"]}],'
        '"labelsOverrider":[{"operator":"remove"}],'
        '"annotationsOverrider":[{"operator":"add","value":{"a":"2","b":"1"}}],'
        '"fieldOverrider":[{"fieldPath":"/data/x","json":[{"subPath":"/a","operator":"remove","value":null}]}]'
        "}}"
    )


def test_the_text_is_safe_in_a_page() -> None:
    assert html_safe('"<a & b>\u2028\u2029ü"') == '"\\u003ca \\u0026 b\\u003e\\u2028\\u2029ü"'


def test_the_same_policies_give_the_same_text() -> None:
    first = op("p", rule(plaintext=[{"path": "/data/x", "operator": "add", "value": {"b": 1, "a": 2}}]))
    second = op("p", rule(plaintext=[{"value": {"a": 2, "b": 1}, "operator": "add", "path": "/data/x"}]))
    one, other = (work_annotations(applied(config_map(), policy)) for policy in (first, second))
    assert one == other
