"""What clusters report of native kinds."""

from __future__ import annotations

from typing import Any

import pytest

from karmada.interpreter.operations import InterpreterError
from karmada.kube.objects.types import Obj

GENERATION = "resourcetemplate.karmada.io/generation"
BIG = {"collisionCount": 1, "conditions": [{"type": "Available"}], "currentRevision": "x"}
"""Fields that nobody reports."""


def obj(api_version: str, kind: str, status: Any = None, template: str | None = "1", **fields: Any) -> Obj:
    annotations = {} if template is None else {GENERATION: template}
    made: Obj = {"apiVersion": api_version, "kind": kind, "metadata": {"generation": 2, "annotations": annotations}}
    return {**made, **fields} if status is None else {**made, **fields, "status": status}


CASES: list[tuple[Obj, Obj | None]] = [
    (obj("apps/v1", "Deployment", {}), {"generation": 2, "resourceTemplateGeneration": 1}),
    (
        obj("apps/v1", "Deployment", {**BIG, "observedGeneration": 2, "replicas": 6, "updatedReplicas": 5,
            "readyReplicas": 4, "availableReplicas": 3, "unavailableReplicas": 2}),
        {"generation": 2, "resourceTemplateGeneration": 1, "observedGeneration": 2, "replicas": 6, "updatedReplicas": 5,
         "readyReplicas": 4, "availableReplicas": 3, "unavailableReplicas": 2},
    ),
    (
        obj("apps/v1", "Deployment", {"replicas": 0, "observedGeneration": 0}, template="+7"),
        {"generation": 2, "resourceTemplateGeneration": 7},
    ),
    (obj("apps/v1", "ReplicaSet", {}), {"generation": 2, "resourceTemplateGeneration": 1, "replicas": 0}),
    (
        obj("apps/v1", "ReplicaSet", {**BIG, "observedGeneration": 2, "replicas": 3, "readyReplicas": 2,
            "availableReplicas": 1, "fullyLabeledReplicas": 3}),
        {"generation": 2, "resourceTemplateGeneration": 1, "observedGeneration": 2, "replicas": 3, "readyReplicas": 2,
         "availableReplicas": 1},
    ),
    (
        obj("apps/v1", "StatefulSet", {}),
        {"generation": 2, "resourceTemplateGeneration": 1, "replicas": 0, "availableReplicas": 0},
    ),
    (
        obj("apps/v1", "StatefulSet", {**BIG, "observedGeneration": 2, "replicas": 3, "readyReplicas": 2,
            "availableReplicas": 1, "currentReplicas": 4, "updatedReplicas": 5}),
        {"generation": 2, "resourceTemplateGeneration": 1, "observedGeneration": 2, "replicas": 3, "readyReplicas": 2,
         "availableReplicas": 1, "currentReplicas": 4, "updatedReplicas": 5},
    ),
    (
        obj("apps/v1", "DaemonSet", {}),
        {"generation": 2, "resourceTemplateGeneration": 1, "currentNumberScheduled": 0, "numberMisscheduled": 0,
         "desiredNumberScheduled": 0, "numberReady": 0},
    ),
    (
        obj("apps/v1", "DaemonSet", {**BIG, "observedGeneration": 2, "currentNumberScheduled": 1,
            "numberMisscheduled": 2, "desiredNumberScheduled": 3, "numberReady": 4, "updatedNumberScheduled": 5,
            "numberAvailable": 6, "numberUnavailable": 7}),
        {"generation": 2, "resourceTemplateGeneration": 1, "observedGeneration": 2, "currentNumberScheduled": 1,
         "numberMisscheduled": 2, "desiredNumberScheduled": 3, "numberReady": 4, "updatedNumberScheduled": 5,
         "numberAvailable": 6, "numberUnavailable": 7},
    ),
    (
        obj("batch/v1", "Job", {"active": 1, "succeeded": 0, "failed": 2, "ready": 1,
            "conditions": [{"type": "Failed"}], "startTime": "2024-01-01T00:00:00Z",
            "uncountedTerminatedPods": {}}, template=None),
        {"active": 1, "failed": 2, "conditions": [{"type": "Failed"}], "startTime": "2024-01-01T00:00:00Z"},
    ),
    (
        obj("batch/v1", "Job", {"completionTime": "2024-01-01T00:00:00Z", "succeeded": 1}),
        {"completionTime": "2024-01-01T00:00:00Z", "succeeded": 1},
    ),
    (obj("v1", "Service", {"loadBalancer": {"ingress": [{"ip": "1.1.1.1"}]}}), None),
    (obj("v1", "Service", {"loadBalancer": {}}, spec={"type": "NodePort"}), None),
    (
        obj("v1", "Service", {"loadBalancer": {"ingress": [{"ip": "1.1.1.1"}]}, "conditions": [{"type": "a"}]},
            spec={"type": "LoadBalancer"}),
        {"loadBalancer": {"ingress": [{"ip": "1.1.1.1"}]}},
    ),
    (obj("v1", "Service", {}, spec={"type": "LoadBalancer"}), {"loadBalancer": {}}),
    (
        obj("policy/v1", "PodDisruptionBudget", {"conditions": [], "observedGeneration": 3}),
        {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0},
    ),
    (
        obj("policy/v1", "PodDisruptionBudget", {"disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 3,
            "expectedPods": 4, "disruptedPods": {"p": "2024-01-01T00:00:00Z"}}),
        {"disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 3, "expectedPods": 4,
         "disruptedPods": {"p": "2024-01-01T00:00:00Z"}},
    ),
    (
        obj("autoscaling/v2", "HorizontalPodAutoscaler", {"currentMetrics": [{}], "conditions": [{}]}),
        {"desiredReplicas": 0, "currentMetrics": None},
    ),
    (
        obj("autoscaling/v2", "HorizontalPodAutoscaler", {"currentReplicas": 2, "desiredReplicas": 3}),
        {"currentReplicas": 2, "desiredReplicas": 3, "currentMetrics": None},
    ),
]  # fmt: skip
WHOLE = [
    ("batch/v1", "CronJob"), ("v1", "Pod"), ("networking.k8s.io/v1", "Ingress"), ("v1", "PersistentVolumeClaim"),
    ("v1", "PersistentVolume"), ("v1", "ServiceAccount"), ("v1", "Secret"),
    ("autoscaling/v1", "HorizontalPodAutoscaler"),
    ("multicluster.x-k8s.io/v1alpha1", "ServiceImport"), ("example.io/v1", "Deployment"), ("v1", "Namespace"),
]  # fmt: skip
WORKLOADS = ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"]


@pytest.mark.parametrize(("observed", "reported"), CASES)
def test_what_is_of_interest_is_reported(native: Any, observed: Obj, reported: Obj | None) -> None:
    assert native.reflect_status(observed) == reported


@pytest.mark.parametrize(("api_version", "kind"), WHOLE)
def test_other_kinds_report_all_there_is(native: Any, api_version: str, kind: str) -> None:
    status = {"a": {"b": [1, None]}}
    assert native.reflect_status(obj(api_version, kind, status)) == status


@pytest.mark.parametrize(
    ("api_version", "kind"), [*WHOLE, *(("apps/v1", kind) for kind in WORKLOADS), ("batch/v1", "Job")]
)
def test_nothing_is_reported_without_a_status_and_no_status_is_no_object(
    native: Any, api_version: str, kind: str
) -> None:
    assert native.reflect_status(obj(api_version, kind, template=None)) is None
    with pytest.raises(InterpreterError, match="status: expected an object"):
        native.reflect_status(obj(api_version, kind, "fine"))


@pytest.mark.parametrize("kind", WORKLOADS)
@pytest.mark.parametrize("template", [None, "", "abc", "1.0", " 1", "0x1", "١", str(2**63)])
def test_workloads_must_name_the_template_they_follow(native: Any, kind: str, template: str | None) -> None:
    with pytest.raises(InterpreterError, match=r"strconv\.ParseInt"):
        native.reflect_status(obj("apps/v1", kind, {}, template=template))


def test_a_deployment_without_a_status_reports_nothing(native: Any) -> None:
    observed = obj("apps/v1", "Deployment", {}, template="0")
    del observed["metadata"]["generation"]
    assert native.reflect_status(observed) is None


@pytest.mark.parametrize("status", [{"replicas": "3"}, {"replicas": 1.5}, {"observedGeneration": True}])
def test_counters_that_are_no_numbers_are_an_error(native: Any, status: Obj) -> None:
    with pytest.raises(InterpreterError, match="expected a whole number"):
        native.reflect_status(obj("apps/v1", "Deployment", status))
