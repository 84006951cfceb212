"""HorizontalPodAutoscalers: defaults and rules of v2, and the way to v1 and back."""

from __future__ import annotations

from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.kinds import autoscaling_v1 as v1
from karmada.kube.kinds.autoscaling import HORIZONTAL_POD_AUTOSCALER as V2
from karmada.kube.objects.copying import copy_json
from tests.kube.kinds.texts import texts
from tests.support.cases import cases
from tests.support.objects import kube_object

TARGET = {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"}


def hpa(**spec: Any) -> dict[str, Any]:
    found = kube_object("autoscaling/v2", "HorizontalPodAutoscaler", "h", "ns") | {
        "spec": {"scaleTargetRef": dict(TARGET), "maxReplicas": 5, **spec},
        "status": {"desiredReplicas": 0},
    }
    V2.default(found)
    return found


def utilization(name: str, percent: int) -> dict[str, Any]:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": name, "target": target}}


def test_defaults() -> None:
    spec = hpa()["spec"]
    assert spec["minReplicas"] == 1
    assert spec["metrics"] == [utilization("cpu", 80)]
    assert "behavior" not in spec
    assert V2.validate(hpa()) == []


def test_behavior_is_filled_in_once_it_is_given() -> None:
    behavior = hpa(behavior={"scaleDown": {"stabilizationWindowSeconds": 10}})["spec"]["behavior"]
    percent = {"type": "Percent", "value": 100, "periodSeconds": 15}
    assert behavior == {
        "scaleUp": {
            "stabilizationWindowSeconds": 0,
            "selectPolicy": "Max",
            "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}, percent],
        },
        "scaleDown": {"stabilizationWindowSeconds": 10, "selectPolicy": "Max", "policies": [percent]},
    }


@cases(
    ({"minReplicas": 6}, "spec.maxReplicas: Invalid value: 5: must be greater than or equal to `minReplicas`"),
    ({"minReplicas": 0}, "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1"),
    ({"maxReplicas": 0}, "spec.maxReplicas: Invalid value: 0: must be greater than 0"),
    ({"scaleTargetRef": {"kind": "Deployment"}}, "spec.scaleTargetRef.name: Required value"),
    ({"metrics": [{"type": "Odd"}]}, 'spec.metrics[0].type: Unsupported value: "Odd"'),
    ({"metrics": [{"type": "Pods"}]}, "spec.metrics[0].pods: Required value: must populate information"),
    (
        {"metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}]},
        "must set either a target raw value or a target utilization",
    ),
    (
        {"behavior": {"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 1801}]}}},
        "spec.behavior.scaleUp.policies[0].periodSeconds: Invalid value: 1801: must be less than or equal to 1800",
    ),
    ({"behavior": {"scaleDown": {"stabilizationWindowSeconds": 3601}}}, "must be less than or equal to 3600"),
)
def test_rules(spec: dict[str, Any], wanted: str) -> None:
    found = texts(V2.validate(hpa(**spec)))
    assert any(wanted in text for text in found), found


RICH_METRICS = [
    {"type": "Pods", "pods": {"metric": {"name": "qps"}, "target": {"type": "AverageValue", "averageValue": "10"}}},
    utilization("memory", 70),
    utilization("cpu", 50),
    {
        "type": "Object",
        "object": {
            "describedObject": {"kind": "Service", "name": "s"},
            "metric": {"name": "hits", "selector": {"matchLabels": {"a": "b"}}},
            "target": {"type": "Value", "value": "5"},
        },
    },
    {
        "type": "External",
        "external": {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "3"}},
    },
    {
        "type": "ContainerResource",
        "containerResource": {
            "name": "cpu",
            "container": "c",
            "target": {"type": "Utilization", "averageUtilization": 9},
        },
    },
]


def test_v1_shows_the_cpu_target_and_keeps_the_rest_in_annotations() -> None:
    found = hpa(metrics=copy_json(RICH_METRICS), behavior={})
    found["status"] = {
        "currentReplicas": 2,
        "desiredReplicas": 3,
        "currentMetrics": [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "current": {"averageUtilization": 40, "averageValue": "1"}},
            }
        ],
        "conditions": [{"type": "AbleToScale", "status": "True"}],
    }
    before = copy_json(found)
    shown = v1.from_v2(found)
    assert found == before
    assert shown["apiVersion"] == "autoscaling/v1"
    assert shown["spec"]["targetCPUUtilizationPercentage"] == 50
    assert "metrics" not in shown["spec"]
    assert "behavior" not in shown["spec"]
    assert shown["status"]["currentCPUUtilizationPercentage"] == 40
    annotations = shown["metadata"]["annotations"]
    kept = orjson.loads(annotations[v1.METRICS])
    assert kept[0] == {"type": "Pods", "pods": {"metricName": "qps", "targetAverageValue": "10"}}
    assert kept[1] == {"type": "Resource", "resource": {"name": "memory", "targetAverageUtilization": 70}}
    assert kept[2] == {
        "type": "Object",
        "object": {
            "target": {"kind": "Service", "name": "s"},
            "metricName": "hits",
            "selector": {"matchLabels": {"a": "b"}},
            "targetValue": "5",
        },
    }
    assert orjson.loads(annotations[v1.CONDITIONS]) == found["status"]["conditions"]
    assert orjson.loads(annotations[v1.BEHAVIOR])["ScaleUp"]["SelectPolicy"] == "Max"


metrics = st.lists(st.sampled_from([m for m in RICH_METRICS if m != utilization("cpu", 50)]), unique_by=str, max_size=5)


@given(metrics, st.integers(1, 100), st.booleans())
def test_a_round_trip_through_v1_loses_nothing(others: list[dict[str, Any]], percent: int, behaves: bool) -> None:
    found = hpa(metrics=[utilization("cpu", percent), *copy_json(others)], **({"behavior": {}} if behaves else {}))
    found["metadata"]["annotations"] = {"own": "x"}
    found["status"] = {
        "currentReplicas": 2,
        "desiredReplicas": 3,
        "conditions": [{"type": "AbleToScale", "status": "True"}],
    }
    assert v1.to_v2(v1.from_v2(found)) == found


def test_a_v1_object_without_a_target_gets_the_default_of_v2() -> None:
    found = kube_object(
        "autoscaling/v1", "HorizontalPodAutoscaler", "h", spec={"scaleTargetRef": dict(TARGET), "maxReplicas": 3}
    )
    v1.HORIZONTAL_POD_AUTOSCALER_V1.default(found)
    stored = v1.to_v2(found)
    assert stored["spec"]["metrics"] == [utilization("cpu", 80)]
    assert v1.from_v2(stored)["spec"]["targetCPUUtilizationPercentage"] == 80


def test_annotations_that_are_no_json_say_nothing() -> None:
    found = v1.from_v2(hpa())
    found["metadata"]["annotations"] = {v1.METRICS: "{", "own": "x"}
    stored = v1.to_v2(found)
    assert stored["spec"]["metrics"] == [utilization("cpu", 80)]
    assert stored["metadata"]["annotations"] == {"own": "x"}


def test_v1_is_judged_by_the_rules_of_v2() -> None:
    found = v1.from_v2(hpa(minReplicas=9))
    assert "must be greater than or equal to `minReplicas`" in texts(v1.HORIZONTAL_POD_AUTOSCALER_V1.validate(found))[0]
