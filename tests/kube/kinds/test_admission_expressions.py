"""CEL in webhook configurations and policies is compiled when it is written."""

from __future__ import annotations

from typing import Any

from karmada.kube.kinds.admission_expressions import MOST_VARIABLES
from karmada.kube.kinds.admissionregistration import validate_mutating_policy, validate_policy, validate_webhooks
from karmada.kube.objects.types import Obj
from tests.support.cases import cases

RULE: Obj = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}


def policy(**spec: Any) -> Obj:
    base = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [RULE]},
        "validations": [{"expression": "true"}],
    }
    return {"metadata": {"name": "p"}, "spec": base | spec}


def mutating(mutation: Obj, **spec: Any) -> Obj:
    found = policy(mutations=[mutation], reinvocationPolicy="Never", **spec)
    del found["spec"]["validations"]
    return found


def texts(obj: Obj) -> list[str]:
    check = validate_mutating_policy if "mutations" in obj["spec"] else validate_policy
    return [str(error) for error in check(obj)]


@cases(
    "object.spec.replicas < 3",
    "request.userInfo.groups.exists(g, g == 'x') && request.kind.group == ''",
    "authorizer.group('').resource('pods').namespace('x').check('get').allowed()",
    "authorizer.requestResource.check('get').reason() == ''",
    "namespaceObject.metadata.name != 'x' && oldObject == null",
)
def test_expressions_over_the_write_compile(expression: str) -> None:
    assert texts(policy(validations=[{"expression": expression}])) == []


@cases(
    (
        "object.odd +",
        "compilation failed: ERROR: <input>:1:13: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', "
        "'.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n"
        " | object.odd +\n | ............^",
    ),
    ("'x'", "must evaluate to bool but got string"),
    ("object.ready", "must evaluate to bool but got dyn"),
    (
        "request.odd == 1",
        "compilation failed: ERROR: <input>:1:8: undefined field 'odd'\n | request.odd == 1\n | .......^",
    ),
    (
        "params.x == 1",
        "compilation failed: ERROR: <input>:1:1: undeclared reference to 'params' (in container '')\n"
        " | params.x == 1\n | ^",
    ),
    (
        "1 + 'x' == 2",
        "compilation failed: ERROR: <input>:1:3: found no matching overload for '_+_' applied to '(int, string)'\n"
        " | 1 + 'x' == 2\n | ..^",
    ),
    (
        "Object{} == object",
        "compilation failed: ERROR: <input>:1:7: undeclared reference to 'Object' (in container '')\n"
        " | Object{} == object\n | ......^",
    ),
)
def test_an_expression_that_is_wrong_is_an_invalid_value(expression: str, why: str) -> None:
    [text] = texts(policy(validations=[{"expression": expression}]))
    shown = expression.replace('"', '\\"')
    assert text == f'spec.validations[0].expression: Invalid value: "{shown}": {why}'


def test_variables_are_known_to_what_follows_them_with_their_types() -> None:
    variables = [
        {"name": "n", "expression": "size(object.data)"},
        {"name": "twice", "expression": "variables.n * 2"},
        {"name": "4ever", "expression": " "},
    ]
    validations = [
        {"expression": "variables.twice > 1"},
        {"expression": "variables.n"},
        {"expression": "variables.odd"},
    ]
    assert texts(policy(variables=variables, validations=validations)) == [
        'spec.variables[2].name: Invalid value: "4ever": name is not a valid CEL identifier',
        "spec.variables[2].expression: Required value: expression is not specified",
        'spec.validations[1].expression: Invalid value: "variables.n": must evaluate to bool but got int',
        'spec.validations[2].expression: Invalid value: "variables.odd": compilation failed: ERROR: <input>:1:10: '
        "undefined field 'odd'\n | variables.odd\n | .........^",
    ]


def test_a_policy_has_only_so_many_variables() -> None:
    variables = [{"name": f"v{number}", "expression": "1"} for number in range(MOST_VARIABLES + 1)]
    validations = [{"expression": "true"}]
    assert texts(policy(variables=variables[:-1], validations=validations)) == []
    assert texts(policy(variables=variables, validations=validations)) == [
        "spec.variables: Too many: 501: must have at most 500 items"
    ]


def test_messages_and_audit_annotations_are_checked_too() -> None:
    validation = {"expression": "true", "messageExpression": "1", "message": " ", "reason": "Odd"}
    annotations = [{"key": "a", "valueExpression": "'x'"}, {"key": "a", "valueExpression": "1"}]
    assert texts(policy(validations=[validation], auditAnnotations=annotations)) == [
        'spec.validations[0].messageExpression: Invalid value: "1": must evaluate to string but got int',
        'spec.validations[0].message: Invalid value: " ": message must be non-empty if specified',
        'spec.validations[0].reason: Unsupported value: "Odd": supported values: "Forbidden", "Invalid", '
        '"RequestEntityTooLarge", "Unauthorized"',
        'spec.auditAnnotations[1].valueExpression: Invalid value: "1": must evaluate to one of [string null]',
        'spec.auditAnnotations[1].key: Duplicate value: "a"',
    ]


def test_match_conditions_of_webhooks_are_compiled() -> None:
    conditions = [{"name": "a", "expression": "object.x == "}, {"name": "a", "expression": "variables.x"}]
    hook = {
        "name": "a.b.example", "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Fail",
        "matchPolicy": "Exact", "rules": [RULE], "clientConfig": {"url": "https://x.example"},
        "matchConditions": conditions,
    }  # fmt: skip
    first, second, third = map(str, validate_webhooks({"webhooks": [hook]}))
    assert first.startswith(
        'webhooks[0].matchConditions[0].expression: Invalid value: "object.x ==": compilation failed'
    )
    assert "undeclared reference to 'variables'" in second
    assert third == 'webhooks[0].matchConditions[1].name: Duplicate value: "a"'


@cases(
    ({}, ["spec.mutations[0].patchType: Required value"]),
    (
        {"patchType": "Odd"},
        ['spec.mutations[0].patchType: Unsupported value: "Odd": supported values: "ApplyConfiguration", "JSONPatch"'],
    ),
    (
        {"patchType": "JSONPatch", "applyConfiguration": {"expression": "Object{}"}},
        [
            "spec.mutations[0].jsonPatch: Required value: must be specified when patchType is JSONPatch",
            'spec.mutations[0].applyConfiguration: Invalid value: "{applyConfiguration}": must not be specified '
            "when patchType is JSONPatch",
        ],
    ),
    (
        {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object.spec{}"}},
        [
            'spec.mutations[0].applyConfiguration.expression: Invalid value: "Object.spec{}": must evaluate to '
            "Object but got Object.spec"
        ],
    ),
    (
        {"patchType": "JSONPatch", "jsonPatch": {"expression": "[1]"}},
        [
            'spec.mutations[0].jsonPatch.expression: Invalid value: "[1]": must evaluate to list(JSONPatch) '
            "but got list(int)"
        ],
    ),
    ({"patchType": "JSONPatch", "jsonPatch": {"expression": "[]"}}, []),
    ({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{any: Object.any{}}"}}, []),
)
def test_a_mutation_has_the_patch_that_its_type_names(mutation: Obj, expected: list[str]) -> None:
    assert texts(mutating(mutation)) == expected


def test_wildcards_do_not_stand_beside_what_they_include() -> None:
    rule = {**RULE, "resources": ["pods/*", "pods/status", "*", "nodes"]}
    assert texts(policy(matchConstraints={"resourceRules": [rule]})) == [
        "spec.matchConstraints.resourceRules[0].resources[1]: Invalid value: \"pods/status\": if 'pods/*' is present, "
        "must not specify pods/status",
        'spec.matchConstraints.resourceRules[0].resources: Invalid value: ["pods/*","pods/status","*","nodes"]: '
        "if '*' is present, must not specify other resources without subresources",
    ]
