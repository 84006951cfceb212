from __future__ import annotations

from typing import Any

import pytest

from karmada.kube.objects.types import Obj
from tests.support.cases import cases
from tests.support.objects import kube_object

NGINX = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "nginx", "namespace": "default"}
AT = "spec.overrideRules[0].overriders"


def policy(**spec: Any) -> Obj:
    return kube_object(
        "policy.karmada.io/v1alpha1", "OverridePolicy", "o", "default", spec={"resourceSelectors": [NGINX], **spec}
    )


def with_rule(overriders: Obj, **more: Any) -> Obj:
    return policy(overrideRules=[{"overriders": overriders, **more}])


def field(**more: Any) -> Obj:
    return with_rule({"fieldOverrider": [{"fieldPath": "/data/a", **more}]})


KEY = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
SELECTOR = {"fieldSelector": {"matchExpressions": [{"key": "cloud", "operator": "In"}]}}
UNSUPPORTED = (
    'Invalid value: {"matchExpressions":[{"key":"cloud","operator":"In"}]}: '
    'unsupported key "cloud", must be provider, region, or zone'
)
POINTER = 'JSON pointer must be empty or start with a "/"'
ADD = {"subPath": "/a", "operator": "add", "value": 1}
RULES: list[tuple[str, Obj, str]] = [
    ("nothing", policy(), ""),
    ("the older form alone", policy(targetCluster={}, overriders={"plaintext": [{"path": "no"}]}), ""),
    ("target cluster", policy(targetCluster=SELECTOR), f"spec.targetCluster.fieldSelector: {UNSUPPORTED}"),
    (
        "both forms of clusters",
        policy(targetCluster={"clusterNames": ["m1"]}, overrideRules=[]),
        'spec.targetCluster: Invalid value: {"clusterNames":["m1"]}: overrideRules and targetCluster can\'t co-exist',
    ),
    (
        "both forms of overriders",
        policy(overriders={"argsOverrider": [{}]}, overrideRules=[]),
        'spec.overriders: Invalid value: {"argsOverrider":[{}]}: overrideRules and overriders can\'t co-exist',
    ),
    ("a field overrider does not count", policy(overriders={"fieldOverrider": [{}]}, overrideRules=[]), ""),
    (
        "annotation key",
        with_rule({"annotationsOverrider": [{"operator": "add", "value": {"a~b": "c"}}]}),
        f'{AT}.annotationsOverrider[0].value: Invalid value: "a~b": {KEY}',
    ),
    (
        "annotations too large",
        with_rule({"annotationsOverrider": [{"operator": "add", "value": {"a": "x" * 262144}}]}),
        f"{AT}.annotationsOverrider[0].value: Too long: may not be more than 262144 bytes",
    ),
    (
        "label key",
        with_rule({"labelsOverrider": [{"operator": "add", "value": {"a~b": "c"}}]}),
        f'{AT}.labelsOverrider[0].value: Invalid value: "a~b": {KEY}',
    ),
    (
        "image path",
        with_rule({"imageOverrider": [{"predicate": {"path": "spec"}, "component": "Tag", "operator": "remove"}]}),
        f'{AT}.imageOverrider[0].predicate.path: Invalid value: "spec": {POINTER}',
    ),
    (
        "two sorts of documents",
        field(json=[ADD], yaml=[ADD]),
        f'{AT}.fieldOverrider[0]: Invalid value: {{"fieldPath":"/data/a","json":[{{"subPath":"/a","operator":"add",'
        '"value":1}],"yaml":[{"subPath":"/a","operator":"add","value":1}]}: '
        "FieldOverrider has both YAML and JSON set. Only one is allowed",
    ),
    (
        "no document",
        field(),
        f"{AT}.fieldOverrider[0]: Required value: FieldOverrider must have either JSON or YAML set",
    ),
    (
        "field path",
        field(fieldPath="data", json=[ADD]),
        f'{AT}.fieldOverrider[0].fieldPath: Invalid value: "data": {POINTER}',
    ),
    (
        "sub path",
        field(yaml=[{**ADD, "subPath": "a"}]),
        f'{AT}.fieldOverrider[0].yaml[0].subPath: Invalid value: "a": {POINTER}',
    ),
    (
        "nothing to add",
        field(json=[{"subPath": "/a", "operator": "replace", "value": None}]),
        f"{AT}.fieldOverrider[0].json[0].value: Invalid value: null: value is required for add or replace operation",
    ),
    (
        "something to remove",
        field(json=[{**ADD, "operator": "remove"}]),
        f"{AT}.fieldOverrider[0].json[0].value: Invalid value: 1: value is not allowed for remove operation",
    ),
    ("false is a value", field(json=[{**ADD, "value": False}]), ""),
    (
        "replicas",
        with_rule({"replicasOverrider": [{"value": -1}]}),
        f"{AT}.replicasOverrider[0].value: Invalid value: -1: must be greater than or equal to 0",
    ),
    (
        "resources",
        with_rule({"resourcesOverrider": [{"containerName": "", "value": {"limits": {"cpu": "-1"}}}]}),
        f"[{AT}.resourcesOverrider[0].containerName: Required value, "
        f'{AT}.resourcesOverrider[0].value.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0]',
    ),
    (
        "target cluster of a rule",
        with_rule({}, targetCluster=SELECTOR),
        f"spec.overrideRules[0].targetCluster.fieldSelector: {UNSUPPORTED}",
    ),
    (
        "another namespace",
        policy(resourceSelectors=[{**NGINX, "namespace": "other"}]),
        'spec.resourceSelectors[0].namespace: Invalid value: "other": '
        "namespace of resource selector must be the same as the namespace of the policy",
    ),
]


@pytest.mark.parametrize(("obj", "text"), [rule[1:] for rule in RULES], ids=[rule[0] for rule in RULES])
async def test_a_policy_is_refused_for(obj: Obj, text: str, refused: Any) -> None:
    assert await refused("validate-overridepolicy", obj) == text


@pytest.mark.parametrize(("obj", "text"), [rule[1:] for rule in RULES[:-1]], ids=[rule[0] for rule in RULES[:-1]])
async def test_a_cluster_wide_policy_is_refused_for_the_same(obj: Obj, text: str, refused: Any) -> None:
    assert await refused("validate-clusteroverridepolicy", obj) == text


async def test_a_cluster_wide_policy_selects_in_any_namespace(refused: Any) -> None:
    obj = policy(resourceSelectors=[{**NGINX, "namespace": "other"}])
    assert await refused("validate-clusteroverridepolicy", obj) == ""


async def test_an_empty_list_of_rules_counts_only_where_nobody_tidies_up(completed: Any, refused: Any) -> None:
    obj = policy(targetCluster={}, overrideRules=[])
    assert await refused("validate-clusteroverridepolicy", obj) != ""
    assert await refused("validate-overridepolicy", completed("mutate-overridepolicy", obj)) == ""


def test_a_policy_is_filled_in(completed: Any) -> None:
    obj = policy(resourceSelectors=[{"apiVersion": "v1", "kind": "ConfigMap"}])
    assert completed("mutate-overridepolicy", obj)["spec"] == {
        "resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default"}],
        "overriders": {},
    }


def test_values_are_left_alone(completed: Any) -> None:
    value = {"clusterNames": [], "name": "", "json": [], "plaintext": []}
    overriders = {"plaintext": [{"path": "/spec", "operator": "add", "value": value}], "argsOverrider": []}
    rule = completed("mutate-overridepolicy", with_rule(overriders))["spec"]["overrideRules"][0]
    assert rule == {"overriders": {"plaintext": overriders["plaintext"]}}


def plaintext(path: str) -> Obj:
    return {"plaintext": [{"path": path, "operator": "replace", "value": "x"}]}


@pytest.mark.parametrize(
    ("overriders", "place", "field"),
    [
        (plaintext("/metadata/namespace"), "plaintext[0].path", "/metadata/namespace"),
        (plaintext("/metadata/name"), "plaintext[0].path", "/metadata/name"),
        (plaintext("/metadata"), "plaintext[0].path", "/metadata/name"),
        (plaintext("/kind"), "plaintext[0].path", "/kind"),
        (plaintext("/apiVersion"), "plaintext[0].path", "/apiVersion"),
        (plaintext(""), "plaintext[0].path", "/apiVersion"),
        (
            {"fieldOverrider": [{"fieldPath": "/metadata/name", "yaml": [{**ADD, "subPath": ""}]}]},
            "fieldOverrider[0].fieldPath",
            "/metadata/name",
        ),
        (
            {
                "imageOverrider": [
                    {"predicate": {"path": "/metadata/namespace"}, "component": "Tag", "operator": "remove"}
                ]
            },
            "imageOverrider[0].predicate.path",
            "/metadata/namespace",
        ),
    ],
)
@pytest.mark.parametrize("hook", ["validate-overridepolicy", "validate-clusteroverridepolicy"])
async def test_no_policy_changes_the_identity_of_an_object(
    refused: Any, hook: str, overriders: Obj, place: str, field: str
) -> None:
    said = await refused(hook, with_rule(overriders))
    assert said.startswith(f"{AT}.{place}: Invalid value: ")
    assert said.endswith(f": an override policy must not change {field}")
    assert "must not change" in await refused(hook, policy(overriders=overriders))


@cases("/roleRef", "/roleRef/name")
async def test_only_a_cluster_wide_policy_changes_whose_role_is_granted(path: str, refused: Any) -> None:
    said = await refused("validate-overridepolicy", with_rule(plaintext(path)))
    assert said.endswith("an override policy must not change /roleRef")
    assert await refused("validate-clusteroverridepolicy", with_rule(plaintext(path))) == ""


@cases(
    ("rbac.authorization.k8s.io/v1 Role", "/rules", "/rules"),
    ("rbac.authorization.k8s.io/v1beta1 RoleBinding", "/subjects/-", "/subjects"),
    ("v1 Secret", "/type", "/type"),
    ("v1 Service", "/spec/externalIPs/0", "/spec/externalIPs"),
    ("v1 ResourceQuota", "/spec/hard/pods", "/spec"),
)
async def test_only_a_cluster_wide_policy_that_names_a_kind_changes_what_gives_rights(
    kind: str, path: str, field: str, refused: Any
) -> None:
    api_version, name = kind.split()
    wanted = with_rule(plaintext(path))
    assert await refused("validate-overridepolicy", wanted) == "", "a Deployment has no such field"
    wanted["spec"]["resourceSelectors"] = [{"apiVersion": api_version, "kind": name, "namespace": "default"}]
    said = await refused("validate-overridepolicy", wanted)
    assert said.endswith(f"an override policy must not change {field}")
    assert await refused("validate-clusteroverridepolicy", wanted) == ""


@cases("/metadata/labels/name", "/metadata/annotations", "/spec/name", "/metadata~1name")
async def test_other_fields_may_be_changed(path: str, refused: Any) -> None:
    assert await refused("validate-overridepolicy", with_rule(plaintext(path))) == ""
