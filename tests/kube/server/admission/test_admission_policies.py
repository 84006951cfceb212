from __future__ import annotations

from typing import Any

import pytest

from karmada.kube.objects.errors import ApiError, Forbidden
from karmada.kube.objects.types import Obj
from karmada.kube.server.admission.interface import CREATE, UPDATE, Attributes
from karmada.kube.server.admission.policies import ValidatingPolicies
from karmada.kube.server.auth.user import User
from tests.support.cases import cases
from tests.support.tls_backend import State, builtin_registry, resource_of

CONFIG_MAPS: Obj = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
GROUP = "admissionregistration.k8s.io/v1"


@pytest.fixture
def state() -> State:
    state = State()
    state.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {"env": "prod"}}})
    return state


@pytest.fixture
def policies(state: State) -> ValidatingPolicies:
    return ValidatingPolicies(state, builtin_registry())


def put_policy(state: State, *validations: Obj, name: str = "p", **spec: Any) -> None:
    whole = {"matchConstraints": {"resourceRules": [CONFIG_MAPS]}, "validations": list(validations)} | spec
    state.put({"apiVersion": GROUP, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": whole})


def put_binding(state: State, *actions: str, name: str = "b", policy: str = "p", **spec: Any) -> None:
    whole = {"policyName": policy, "validationActions": list(actions or ("Deny",))} | spec
    kind = "ValidatingAdmissionPolicyBinding"
    state.put({"apiVersion": GROUP, "kind": kind, "metadata": {"name": name}, "spec": whole})


def config_map(name: str = "settings", namespace: str = "shop", **data: str) -> Obj:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data}


def write(obj: Obj, operation: str = CREATE, old: Obj | None = None) -> Attributes:
    meta = obj["metadata"]
    return Attributes(
        operation, resource_of(obj), "", meta.get("namespace", ""), meta["name"], obj, old, User("ann")
    )  # fmt: skip


async def judge(policies: ValidatingPolicies, attributes: Attributes) -> ApiError | None:
    if not policies.handles(attributes):
        return None
    try:
        await policies.validate(attributes)
    except ApiError as error:
        return error
    return None


SMALL: Obj = {"expression": "size(object.data) < 2"}
DENIED = "configmaps \"settings\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: "


async def test_a_violation_refuses_the_write(state: State, policies: ValidatingPolicies) -> None:
    put_policy(state, {**SMALL, "message": "too much data"})
    put_binding(state)
    assert await judge(policies, write(config_map(a="1"))) is None
    error = await judge(policies, write(config_map(a="1", b="2")))
    assert error is not None
    refusal = error.status()
    assert (refusal["message"], refusal["code"], refusal["reason"]) == (DENIED + "too much data", 422, "Invalid")
    assert refusal["details"]["causes"][0]["message"].endswith("too much data")


@cases(
    ({}, "failed expression: size(object.data) < 2"),
    ({"message": " big "}, "big"),
    ({"messageExpression": "'has ' + string(size(object.data))", "message": "big"}, "has 2"),
    ({"messageExpression": "object.nothing.here", "message": "big"}, "big"),
    ({"messageExpression": "'a\\nb'"}, "failed expression: size(object.data) < 2"),
)
async def test_the_message_is_computed_or_fixed_or_the_expression(
    more: Obj, message: str, state: State, policies: ValidatingPolicies
) -> None:
    put_policy(state, SMALL | more)
    put_binding(state)
    error = await judge(policies, write(config_map(a="1", b="2")))
    assert error is not None
    assert error.message == DENIED + message


@cases(("Forbidden", 403), ("Unauthorized", 401), ("Invalid", 422))
async def test_the_reason_sets_the_code(reason: str, code: int, state: State, policies: ValidatingPolicies) -> None:
    put_policy(state, {"expression": "false", "reason": reason})
    put_binding(state)
    error = await judge(policies, write(config_map()))
    assert error is not None
    assert (error.http_code, error.status()["reason"]) == (code, reason)


async def test_a_policy_without_a_binding_is_not_in_force(state: State, policies: ValidatingPolicies) -> None:
    put_policy(state, {"expression": "false"})
    assert not policies.handles(write(config_map()))
    put_binding(state, policy="another")
    assert not policies.handles(write(config_map()))


async def test_a_binding_may_warn_instead(state: State, policies: ValidatingPolicies) -> None:
    put_policy(state, {"expression": "false", "message": "hm"})
    put_binding(state, "Warn", "Audit")
    attributes = write(config_map())
    assert await judge(policies, attributes) is None
    assert attributes.warnings == ["Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': hm"]


async def test_a_binding_narrows_where_its_policy_applies(state: State, policies: ValidatingPolicies) -> None:
    put_policy(state, {"expression": "false"})
    put_binding(state, matchResources={"namespaceSelector": {"matchLabels": {"env": "test"}}})
    assert await judge(policies, write(config_map())) is None
    put_binding(state, matchResources={"resourceRules": [{**CONFIG_MAPS, "resourceNames": ["other"]}]})
    assert await judge(policies, write(config_map())) is None
    assert await judge(policies, write(config_map("other"))) is not None
    put_binding(state, matchResources={"excludeResourceRules": [CONFIG_MAPS]})
    assert not policies.handles(write(config_map()))


@cases(
    ("oldObject == null || object.data == oldObject.data", False),
    ("request.operation == 'UPDATE' && request.userInfo.username == 'ann'", True),
    ("namespaceObject.metadata.labels.env == 'prod'", True),
    ("params == null", False),  # there is no paramKind
    ("variables.keys.all(k, k.startsWith('b'))", True),
    ("variables.count == 1", True),
)
async def test_expressions_see_the_write_and_the_variables(
    expression: str, allowed: bool, state: State, policies: ValidatingPolicies
) -> None:
    variables = [
        {"name": "keys", "expression": "object.data.map(k, k)"},
        {"name": "count", "expression": "size(variables.keys)"},
        {"name": "unused", "expression": "object.no.such.thing"},
    ]
    put_policy(state, {"expression": expression}, variables=variables)
    put_binding(state)
    error = await judge(policies, write(config_map(b="2"), UPDATE, config_map(a="1")))
    assert (error is None) is allowed


async def test_an_expression_that_fails_is_what_the_failure_policy_says(
    state: State, policies: ValidatingPolicies
) -> None:
    put_policy(state, {"expression": "object.spec.x == 1"}, failurePolicy="Ignore")
    put_binding(state)
    assert await judge(policies, write(config_map())) is None
    put_policy(state, {"expression": "object.spec.x == 1"}, failurePolicy="Fail")
    error = await judge(policies, write(config_map()))
    assert isinstance(error, Forbidden)
    assert error.message.startswith(DENIED + "expression 'object.spec.x == 1' resulted in error: ")


async def test_match_conditions_pass_a_write_over(state: State, policies: ValidatingPolicies) -> None:
    put_policy(state, {"expression": "false"}, matchConditions=[{"name": "c", "expression": "'x' in object.data"}])
    put_binding(state)
    assert await judge(policies, write(config_map(a="1"))) is None
    assert await judge(policies, write(config_map(x="1"))) is not None


PARAMETERS: Obj = {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}
LIMIT: Obj = {"expression": "size(object.data) <= int(params.data.limit)"}


async def test_a_policy_takes_its_parameters_from_an_object(state: State, policies: ValidatingPolicies) -> None:
    state.put(config_map("limits", "rules", limit="1"))
    put_policy(state, LIMIT, **PARAMETERS)
    put_binding(state, paramRef={"name": "limits", "namespace": "rules", "parameterNotFoundAction": "Deny"})
    assert await judge(policies, write(config_map(a="1"))) is None
    assert await judge(policies, write(config_map(a="1", b="2"))) is not None


async def test_every_selected_parameter_is_judged_by(state: State, policies: ValidatingPolicies) -> None:
    for name, limit in (("loose", "5"), ("tight", "1")):
        parameter = config_map(name, limit=limit)
        parameter["metadata"]["labels"] = {"limit": "yes"}
        state.put(parameter)
    put_policy(state, LIMIT, **PARAMETERS)
    selector = {"matchLabels": {"limit": "yes"}}
    put_binding(state, paramRef={"selector": selector, "parameterNotFoundAction": "Allow"})
    assert await judge(policies, write(config_map(a="1", b="2"))) is not None
    state.remove(resource_of(config_map()).storage_resource, "shop", "tight")
    assert await judge(policies, write(config_map(a="1", b="2"))) is None


@cases(("Allow", False), ("Deny", True))
async def test_missing_parameters_refuse_or_let_pass(
    action: str, refused: bool, state: State, policies: ValidatingPolicies
) -> None:
    put_policy(state, {"expression": "false"}, **PARAMETERS)
    put_binding(state, paramRef={"name": "limits", "parameterNotFoundAction": action})
    error = await judge(policies, write(config_map()))
    assert (error is not None) is refused
    if error is not None:
        why = "no params found for policy binding with `Deny` parameterNotFoundAction"
        assert error.message == f"{DENIED}failed to configure binding: {why}"
