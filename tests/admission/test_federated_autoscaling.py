from __future__ import annotations

from typing import Any

import pytest

from karmada.kube.objects.types import Obj
from tests.support.cases import cases
from tests.support.objects import kube_object

VALIDATE, MUTATE = "validate-federatedhpa", "mutate-federatedhpa"
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}
SUPPORTED = 'supported values: "ContainerResource", "Object", "Pods", "Resource"'
RATE = {"name": "rate"}


def autoscaler(name: str = "web", **spec: Any) -> Obj:
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return kube_object("autoscaling.karmada.io/v1alpha1", "FederatedHPA", name, "default") | {
        "spec": {"scaleTargetRef": reference, "minReplicas": 1, "maxReplicas": 3, "metrics": [CPU], **spec}
    }


def measured(kind: str, **sources: Any) -> Obj:
    return autoscaler(metrics=[{"type": kind, **sources}])


def by_cpu(**target: Any) -> Obj:
    return measured("Resource", resource={"name": "cpu", "target": target})


def behaving(**rules: Any) -> Obj:
    policy = {"type": "Pods", "value": 1, "periodSeconds": 15}
    return autoscaler(behavior={"scaleUp": {"selectPolicy": "Max", "policies": [policy], **rules}})


AT = "spec.metrics[0]"
UP = "spec.behavior.scaleUp"
RULES: list[tuple[str, Obj, str]] = [
    ("nothing", autoscaler(), ""),
    (
        "no replicas",
        autoscaler(minReplicas=0),
        "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1",
    ),
    (
        "no most",
        autoscaler(maxReplicas=0),
        "[spec.maxReplicas: Invalid value: 0: must be greater than 0, "
        "spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`]",
    ),
    (
        "reference",
        autoscaler(scaleTargetRef={"kind": "", "name": "a/b"}),
        "[spec.scaleTargetRef.kind: Required value, "
        "spec.scaleTargetRef.name: Invalid value: \"a/b\": may not contain '/']",
    ),
    (
        "no type",
        measured(""),
        f"[{AT}.type: Required value: must specify a metric source type, "
        f'{AT}.type: Unsupported value: "": {SUPPORTED}]',
    ),
    ("external", measured("External", external={}), f'{AT}.type: Unsupported value: "External": {SUPPORTED}'),
    (
        "no source",
        measured("Pods"),
        f"{AT}.pods: Required value: must populate information for the given metric source",
    ),
    (
        "another source",
        measured("Pods", pods={"metric": RATE, "target": {"type": "AverageValue", "averageValue": "1"}}, resource={}),
        f"{AT}.resource: Forbidden: must populate the given metric source only",
    ),
    (
        "object",
        measured("Object", object={"describedObject": {"kind": "Ingress"}, "metric": {}, "target": {"type": "Value"}}),
        f"[{AT}.object.describedObject.name: Required value, "
        f"{AT}.object.metric.name: Required value: must specify a metric name, "
        f"{AT}.object.target.averageValue: Required value: must set either a target value or averageValue]",
    ),
    (
        "pods",
        measured("Pods", pods={"metric": RATE, "target": {"type": "Value", "value": "1"}}),
        f"{AT}.pods.target.averageValue: Required value: must specify a positive target averageValue",
    ),
    (
        "resource",
        measured("Resource", resource={"name": "", "target": {"type": "Utilization"}}),
        f"[{AT}.resource.name: Required value: must specify a resource name, {AT}.resource.target.averageUtilization: "
        "Required value: must set either a target raw value or a target utilization]",
    ),
    (
        "two targets",
        by_cpu(type="Utilization", averageUtilization=1, averageValue="1"),
        f"{AT}.resource.target.averageValue: Forbidden: may not set both a target raw value and a target utilization",
    ),
    (
        "container resource",
        measured(
            "ContainerResource",
            containerResource={"name": "apples", "container": "A_b", "target": {"type": "Value", "averageValue": "1"}},
        ),
        f'[{AT}.containerResource.name: Invalid value: "apples": must be a standard resource type or fully qualified, '
        f'{AT}.containerResource.name: Invalid value: "apples": must be a standard resource for containers, '
        f'{AT}.containerResource.container: Invalid value: "A_b": a lowercase RFC 1123 label must consist of lower '
        "case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  "
        "or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')]",
    ),
    (
        "no container",
        measured(
            "ContainerResource",
            containerResource={"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 5}},
        ),
        f"{AT}.containerResource.container: Required value: must specify a container",
    ),
    (
        "no target type",
        by_cpu(averageUtilization=1),
        f"[{AT}.resource.target.type: Required value: must specify a metric target type, "
        f'{AT}.resource.target.type: Invalid value: "": must be either Utilization, Value, or AverageValue]',
    ),
    (
        "target amounts",
        by_cpu(type="Value", value="0", averageUtilization=0),
        f'[{AT}.resource.target.value: Invalid value: "0": must be positive, '
        f"{AT}.resource.target.averageUtilization: Invalid value: 0: must be greater than 0]",
    ),
    (
        "window",
        behaving(stabilizationWindowSeconds=3601),
        f"{UP}.stabilizationWindowSeconds: Invalid value: 3601: must be less than or equal to 3600",
    ),
    (
        "select policy",
        behaving(selectPolicy="Some"),
        f'{UP}.selectPolicy: Unsupported value: "Some": supported values: "Disabled", "Max", "Min"',
    ),
    ("no policies", behaving(policies=[]), f"{UP}.policies: Required value: must specify at least one Policy"),
    (
        "policy",
        behaving(policies=[{"type": "Some", "value": 0, "periodSeconds": 1801}]),
        f'[{UP}.policies[0].type: Unsupported value: "Some": supported values: "Pods", "Percent", '
        f"{UP}.policies[0].value: Invalid value: 0: must be greater than zero, "
        f"{UP}.policies[0].periodSeconds: Invalid value: 1801: must be less than or equal to 1800]",
    ),
    (
        "status",
        {**autoscaler(), "status": {"currentReplicas": -1, "desiredReplicas": -2}},
        "[status.currentReplicas: Invalid value: -1: must be greater than or equal to 0, "
        "status.desiredReplicas: Invalid value: -2: must be greater than or equal to 0]",
    ),
]


@pytest.mark.parametrize(("obj", "text"), [rule[1:] for rule in RULES], ids=[rule[0] for rule in RULES])
async def test_an_autoscaler_is_refused_for(obj: Obj, text: str, refused: Any) -> None:
    assert await refused(VALIDATE, obj) == text


async def test_its_name_is_a_domain(refused: Any) -> None:
    assert (await refused(VALIDATE, autoscaler("A"))).startswith('metadata.name: Invalid value: "A": a lowercase RFC')


def test_an_autoscaler_is_filled_in(completed: Any) -> None:
    obj = autoscaler()
    del obj["spec"]["minReplicas"], obj["spec"]["metrics"]
    assert completed(MUTATE, obj)["spec"] == autoscaler()["spec"]


PODS, PERCENT = ({"type": kind, "value": n, "periodSeconds": 15} for kind, n in (("Pods", 4), ("Percent", 100)))
UP_DEFAULT = {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [PODS, PERCENT]}
DOWN_DEFAULT = {"selectPolicy": "Max", "policies": [PERCENT]}


@cases(
    ({}, {"scaleUp": UP_DEFAULT, "scaleDown": DOWN_DEFAULT}),
    (
        {"scaleUp": {"selectPolicy": "Min", "tolerance": "0.1"}, "scaleDown": {"stabilizationWindowSeconds": 9}},
        {"scaleUp": {**UP_DEFAULT, "selectPolicy": "Min"},
         "scaleDown": {**DOWN_DEFAULT, "stabilizationWindowSeconds": 9}},
    ),
    ({"scaleUp": {"policies": []}}, {"scaleUp": {**UP_DEFAULT, "policies": []}, "scaleDown": DOWN_DEFAULT}),
)  # fmt: skip
def test_a_behaviour_is_written_out_in_both_directions(given: Obj, stored: Obj, completed: Any) -> None:
    made = completed(MUTATE, autoscaler(behavior=given))
    assert made["spec"]["behavior"] == stored
    assert completed(MUTATE, made) == made


def test_no_behaviour_stays_none(completed: Any) -> None:
    assert "behavior" not in completed(MUTATE, autoscaler())["spec"]
