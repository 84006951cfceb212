"""ReplicaSchedulingPolicies: what they change in bindings, and which bindings."""

from __future__ import annotations

from typing import Any

import pytest

from karmada.controllers.detector.replica_policies import KINDS, best, divided
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from tests.support.cases import cases
from tests.support.propagation import (
    BINDINGS,
    Propagation,
    config_map,
    deployment,
    placed,
    policy,
    selecting,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")
NAMESPACED, CLUSTER_WIDE = KINDS
WEIGHTS = {"staticWeightList": [{"targetCluster": {"clusterNames": ["m1"]}, "weight": 2}]}
DIVIDED = {
    "replicaSchedulingType": "Divided",
    "replicaDivisionPreference": "Weighted",
    "weightPreference": WEIGHTS,
}


def rules(name: str, *selectors: Obj, namespace: str = "default", **spec: Any) -> Obj:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    kind = NAMESPACED if namespace else CLUSTER_WIDE
    listed = {"resourceSelectors": list(selectors)} if selectors else {}
    return {
        "apiVersion": f"{kind.group}/{kind.version}",
        "kind": "ReplicaSchedulingPolicy",
        "metadata": metadata,
        "spec": {**listed, **spec},
    }


def kind_of(obj: Obj) -> GVR:
    return NAMESPACED if "namespace" in obj["metadata"] else CLUSTER_WIDE


async def create(plane: Propagation, *objects: Obj) -> None:
    for obj in objects:
        await plane.client.create(kind_of(obj), obj)
    await plane.rest()


async def replicas(plane: Propagation, name: str = "nginx-deployment") -> tuple[int, Obj | None]:
    found = await plane.binding(name)
    assert found is not None
    return found["spec"].get("replicas", 0), found["spec"]["placement"].get("replicaScheduling")


@cases("default", "")
async def test_replicas_and_weights_of_the_policy_count(namespace: str, plane: Propagation) -> None:
    await create(plane, rules("nine", selecting(), namespace=namespace, totalReplicas=9, preferences=WEIGHTS))
    await plane.apply(policy(placement=placed("m1", "m2")), deployment(replicas=2))
    assert await replicas(plane) == (9, DIVIDED)
    assert await plane.clusters("nginx-deployment") == ["m1", "m2"], "the rest of the placement stays"


async def test_weights_alone_divide_the_replicas_of_the_template(plane: Propagation) -> None:
    await create(plane, rules("weights", selecting(name="nginx"), preferences=WEIGHTS))
    await plane.apply(policy(), deployment(replicas=4))
    assert await replicas(plane) == (4, DIVIDED)


async def test_what_has_no_replicas_is_left_alone(plane: Propagation) -> None:
    await create(plane, rules("all", totalReplicas=9, preferences=WEIGHTS))
    await plane.apply(policy("maps", selecting("ConfigMap")), config_map())
    assert await replicas(plane, "settings-configmap") == (0, None)


async def test_a_change_rewrites_exactly_the_bindings_of_selected_templates(plane: Propagation) -> None:
    await plane.apply(policy(), deployment("a"), deployment("b"), deployment("unclaimed", namespace="default"))
    plane.writes.clear()
    await create(plane, rules("three", selecting(name="a"), totalReplicas=3))
    assert plane.writes == ["PUT resourcebindings a-deployment"]
    plane.writes.clear()
    other = {"spec": {"resourceSelectors": [selecting(name="b")]}}
    await plane.change(NAMESPACED, "three", other)
    assert sorted(plane.writes) == ["PUT resourcebindings a-deployment", "PUT resourcebindings b-deployment"]
    assert [await replicas(plane, f"{name}-deployment") for name in "ab"] == [(2, None), (3, None)]


async def test_without_the_policy_template_and_propagation_policy_decide_again(plane: Propagation) -> None:
    await create(plane, rules("nine", selecting(), totalReplicas=9, preferences=WEIGHTS))
    await plane.apply(policy(), deployment(replicas=2))
    assert await replicas(plane) == (9, DIVIDED)
    await plane.delete(NAMESPACED, "nine")
    assert await replicas(plane) == (2, None)


async def test_a_template_of_no_policy_gets_no_binding_by_it(plane: Propagation) -> None:
    await create(plane, rules("nine", selecting(), totalReplicas=9))
    await plane.apply(deployment())
    assert await plane.find(BINDINGS, "nginx-deployment") is None


@cases(
    ([], None),
    ([rules("a", selecting(name="other"), totalReplicas=1)], None),
    ([rules("a", totalReplicas=1), rules("b", selecting(), totalReplicas=1)], "a"),
    ([rules("a", selecting(), totalReplicas=1), rules("b", selecting(name="nginx"), totalReplicas=1)], "b"),
    ([rules("b", selecting(), totalReplicas=1), rules("a", selecting(), totalReplicas=1)], "a"),
    ([rules("a", selecting(name="nginx"), reschedulePolicy={}), rules("b", preferences=WEIGHTS)], "b"),
    ([rules("a", selecting(), namespace="elsewhere", totalReplicas=1)], None),
)
async def test_the_most_precise_one_that_says_something_applies(candidates: list[Obj], chosen: str | None) -> None:
    found = best(candidates, deployment())
    assert (None if found is None else found["metadata"]["name"]) == chosen


async def test_one_of_the_namespace_goes_before_a_cluster_wide_one(plane: Propagation) -> None:
    wide = rules("wide", selecting(name="nginx"), namespace="", totalReplicas=5)
    await create(plane, wide, rules("own", selecting(), totalReplicas=7))
    await plane.apply(policy(), deployment())
    assert await replicas(plane) == (7, None)


async def test_none_of_it_changes_other_fields() -> None:
    spec = {"replicas": 2, "placement": placed("m1"), "failover": {"cluster": {}}}
    assert divided(spec, rules("a")) == spec
    assert divided(spec, rules("a", totalReplicas=0)) == {**spec, "replicas": 0}
