"""MutatingAdmissionPolicies: what they make of the object of a write, and what becomes of those that cannot."""

from __future__ import annotations

from typing import Any

import pytest

from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.types import Obj
from karmada.kube.server.admission.chain import Chain
from karmada.kube.server.admission.interface import CREATE, UPDATE, Attributes
from karmada.kube.server.admission.mutating_policies import MutatingPolicies
from karmada.kube.server.auth.user import User
from tests.support.cases import cases
from tests.support.tls_backend import State, builtin_registry, resource_of

GROUP = "admissionregistration.k8s.io/v1"
ANYTHING: Obj = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}


@pytest.fixture
def state() -> State:
    state = State()
    state.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {"env": "prod"}}})
    return state


@pytest.fixture
def policies(state: State) -> MutatingPolicies:
    return MutatingPolicies(state, builtin_registry())


def apply_configuration(expression: str) -> Obj:
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def json_patch(expression: str) -> Obj:
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def put(state: State, *mutations: Obj, name: str = "p", binding: Obj | None = None, **spec: Any) -> None:
    whole = {"matchConstraints": {"resourceRules": [ANYTHING]}, "mutations": list(mutations)} | spec
    state.put({"apiVersion": GROUP, "kind": "MutatingAdmissionPolicy", "metadata": {"name": name}, "spec": whole})
    bound = {"policyName": name} | (binding or {})
    kind = "MutatingAdmissionPolicyBinding"
    state.put({"apiVersion": GROUP, "kind": kind, "metadata": {"name": f"{name}-b"}, "spec": bound})


def config_map(**data: str) -> Obj:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "shop"}, "data": data}


def deployment() -> Obj:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "shop"}, "spec": spec}


def write(obj: Obj, operation: str = CREATE, old: Obj | None = None) -> Attributes:
    meta = obj["metadata"]
    return Attributes(operation, resource_of(obj), "", meta["namespace"], meta["name"], obj, old, User("ann"))


async def mutated(policies: MutatingPolicies, obj: Obj) -> Obj:
    attributes = write(obj)
    await Chain([policies]).admit(attributes)
    assert attributes.obj is not None
    return attributes.obj


async def refused(policies: MutatingPolicies, obj: Obj) -> ApiError:
    with pytest.raises(ApiError) as caught:
        await mutated(policies, obj)
    return caught.value


async def test_an_apply_configuration_is_merged_into_the_object(state: State, policies: MutatingPolicies) -> None:
    container = "Object.spec.template.spec.containers{name: 's', image: 'side:1'}"
    spec = (
        f"Object.spec{{template: Object.spec.template{{spec: Object.spec.template.spec{{containers: [{container}]}}}}}}"
    )
    put(state, apply_configuration(f"Object{{metadata: Object.metadata{{labels: {{'x': 'y'}}}}, spec: {spec}}}"))
    found = await mutated(policies, deployment())
    assert found["metadata"]["labels"] == {"x": "y"}
    containers = found["spec"]["template"]["spec"]["containers"]
    assert [(c["name"], c["image"]) for c in containers] == [("c", "i"), ("s", "side:1")]
    assert containers[1]["imagePullPolicy"] == "IfNotPresent"  # the result gets its defaults


async def test_json_patch_operations_are_applied_in_their_order(state: State, policies: MutatingPolicies) -> None:
    put(
        state,
        json_patch(
            "[JSONPatch{op: 'test', path: '/data/a', value: '1'},"
            " JSONPatch{op: 'add', path: '/data/' + jsonpatch.escapeKey('b.c'), value: 'made'}] +"
            " (has(object.data.drop) ? [JSONPatch{op: 'remove', path: '/data/drop'}] : [])"
        ),
    )
    found = await mutated(policies, config_map(a="1", drop="x"))
    assert found["data"] == {"a": "1", "b.c": "made"}


async def test_mutations_see_what_those_before_them_left(state: State, policies: MutatingPolicies) -> None:
    first = json_patch("[JSONPatch{op: 'add', path: '/data/n', value: string(variables.n)}]")
    put(state, first, first, variables=[{"name": "n", "expression": "size(object.data)"}])
    assert (await mutated(policies, config_map(a="1")))["data"] == {"a": "1", "n": "2"}


async def test_conditions_parameters_and_selectors_decide_and_feed_a_policy(
    state: State, policies: MutatingPolicies
) -> None:
    params = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "p", "namespace": "shop"}}
    state.put({**params, "data": {"team": "blue"}})
    put(
        state,
        apply_configuration("Object{metadata: Object.metadata{labels: {'team': params.data.team}}}"),
        binding={"paramRef": {"name": "p", "parameterNotFoundAction": "Deny"}},
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
        matchConditions=[{"name": "named", "expression": "request.name == 'c' && 'skip' in object.data == false"}],
    )
    assert (await mutated(policies, config_map()))["metadata"]["labels"] == {"team": "blue"}
    assert "labels" not in (await mutated(policies, config_map(skip="")))["metadata"]


@cases(
    (
        apply_configuration("Object{spec: Object.specx{replicas: 3}}"),
        'type mismatch: unexpected type name "Object.specx", expected "Object.spec", which matches field name path '
        "from root Object type",
    ),
    (
        apply_configuration("Object{spec: Object.spec{replicasx: 1}}"),
        "error applying patch: failed to convert patch object to typed object: .spec.replicasx: field not declared "
        "in schema",
    ),
    (
        apply_configuration("Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: {'a': 'b'}}}}"),
        "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: "
        ".spec.selector",
    ),
    (
        json_patch("[JSONPatch{op: 'add', path: '/spec/odd', value: 1}]"),
        'strict decoding error: unknown field "spec.odd"',
    ),
    (
        apply_configuration("Object{spec: Object.spec{replicas: object.spec.none}}"),
        "expression 'Object{spec: Object.spec{replicas: object.spec.none}}' resulted in error: no such key: none",
    ),
)
async def test_a_mutation_that_cannot_be_made_refuses_the_write(
    mutation: Obj, why: str, state: State, policies: MutatingPolicies
) -> None:
    put(state, mutation)
    error = await refused(policies, deployment())
    text = f"policy 'p' with binding 'p-b' denied request: {why}"
    assert (error.http_code, error.status()["reason"]) == (422, "Invalid")
    assert error.message == f'deployments.apps "d" is forbidden: {text}'
    assert error.details["causes"] == [{"message": text}]


async def test_a_policy_that_may_fail_is_passed_over(state: State, policies: MutatingPolicies) -> None:
    label = "Object{metadata: Object.metadata{labels: {'a': object.data.none}}}"
    put(state, apply_configuration(label), failurePolicy="Ignore")
    assert "labels" not in (await mutated(policies, config_map()))["metadata"]


async def test_a_policy_sees_the_changes_of_later_ones_if_it_wants(state: State, policies: MutatingPolicies) -> None:
    count = json_patch("[JSONPatch{op: 'add', path: '/data/seen', value: string(size(object.data))}]")
    put(state, count, name="a", reinvocationPolicy="IfNeeded")
    put(
        state, json_patch("[JSONPatch{op: 'add', path: '/data/late', value: ''}]"), name="b", reinvocationPolicy="Never"
    )
    assert (await mutated(policies, config_map()))["data"] == {"seen": "2", "late": ""}


async def test_identity_and_status_stay_as_they_are(state: State, policies: MutatingPolicies) -> None:
    put(
        state,
        apply_configuration("Object{metadata: Object.metadata{name: 'other'}, status: Object.status{replicas: 9}}"),
    )
    old, new = deployment(), deployment()
    attributes = write(new, UPDATE, old)
    await Chain([policies]).admit(attributes)
    assert attributes.obj is not None
    assert attributes.obj["metadata"]["name"] == "d"
    assert "replicas" not in (attributes.obj.get("status") or {})


async def test_policies_and_reviews_themselves_are_never_mutated(state: State, policies: MutatingPolicies) -> None:
    put(state, apply_configuration("Object{}"))
    kind = {"apiVersion": GROUP, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "x", "namespace": ""}}
    assert not policies.handles(write(kind))
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
    assert not policies.handles(write({**review, "metadata": {"name": "", "namespace": ""}}))
