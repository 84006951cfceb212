from __future__ import annotations

from typing import Any

from karmada.kube.objects.types import Obj
from tests.support.cases import cases
from tests.support.objects import kube_object


def policy(**spec: Any) -> Obj:
    return kube_object("policy.karmada.io/v1alpha1", "ReplicaSchedulingPolicy", "r", "default", spec=spec)


def rescheduled(**more: Any) -> Obj:
    return policy(reschedulePolicy=more)


SELECTOR = {"fieldSelector": {"matchExpressions": [{"key": "cloud", "operator": "In"}]}}


@cases(
    (policy(totalReplicas=0), ""),
    (policy(totalReplicas=-1), "spec.totalReplicas: Invalid value: -1: must be greater than or equal to 0"),
    (
        policy(preferences={"staticWeightList": [{"targetCluster": SELECTOR, "weight": 1}]}),
        "spec.preferences.staticWeightList[0].targetCluster.fieldSelector: Invalid value: "
        '{"matchExpressions":[{"key":"cloud","operator":"In"}]}: '
        'unsupported key "cloud", must be provider, region, or zone',
    ),
    (rescheduled(interval="60s", threshold={"cpuUtilization": 100, "memoryUtilization": 1}), ""),
    (
        rescheduled(interval="0s"),
        'spec.reschedulePolicy.interval: Invalid value: "0s": must be greater than 0',
    ),
    (
        rescheduled(threshold={"cpuUtilization": 101, "memoryUtilization": 0}),
        "[spec.reschedulePolicy.threshold.cpuUtilization: Invalid value: 101: "
        "must be between 1 and 100, inclusive, "
        "spec.reschedulePolicy.threshold.memoryUtilization: Invalid value: 0: "
        "must be between 1 and 100, inclusive]",
    ),
    (
        policy(resourceSelectors=[{"apiVersion": "v1", "kind": "Pod", "namespace": "other"}]),
        'spec.resourceSelectors[0].namespace: Invalid value: "other": '
        "namespace of resource selector must be the same as the namespace of the policy",
    ),
)
async def test_a_policy_is_refused_for(obj: Obj, text: str, refused: Any) -> None:
    assert await refused("validate-replicaschedulingpolicy", obj) == text


async def test_an_interval_is_a_duration(refused: Any) -> None:
    text = await refused("validate-replicaschedulingpolicy", rescheduled(interval="soon"))
    assert text.startswith('spec.reschedulePolicy.interval: Invalid value: "soon": ')


async def test_the_kind_without_a_namespace_selects_anywhere(refused: Any) -> None:
    obj = policy(resourceSelectors=[{"apiVersion": "v1", "kind": "Pod", "namespace": "other"}])
    del obj["metadata"]["namespace"]
    assert await refused("validate-clusterreplicaschedulingpolicy", obj) == ""


def test_selectors_get_the_namespace_of_the_request(completed: Any) -> None:
    obj = policy(resourceSelectors=[{"apiVersion": "v1", "kind": "Pod"}])
    made = completed("mutate-replicaschedulingpolicy", obj)
    assert made["spec"]["resourceSelectors"] == [{"apiVersion": "v1", "kind": "Pod", "namespace": "default"}]
