"""When native kinds are healthy."""

from __future__ import annotations

from typing import Any

import pytest

from karmada.interpreter.operations import InterpreterError
from karmada.kube.objects.types import Obj
from tests.support.cases import cases

API = {"PodDisruptionBudget": "policy/v1", "Ingress": "networking.k8s.io/v1"}
API |= dict.fromkeys(("Deployment", "StatefulSet", "ReplicaSet", "DaemonSet"), "apps/v1")


def obj(kind: str, status: Obj | None, spec: Obj | None = None, generation: int = 2) -> Obj:
    made = {"apiVersion": API.get(kind, "v1"), "kind": kind, "metadata": {"generation": generation}, "spec": spec or {}}
    return made if status is None else {**made, "status": status}


def rollout(observed: int = 2, updated: int = 3, available: int = 3) -> Obj:
    return {"observedGeneration": observed, "updatedReplicas": updated, "availableReplicas": available}


def daemons(observed: int = 2, desired: int = 3, updated: int = 3, available: int = 3) -> Obj:
    return {
        "observedGeneration": observed, "desiredNumberScheduled": desired, "updatedNumberScheduled": updated,
        "numberAvailable": available,
    }  # fmt: skip


def ready(status: str) -> Obj:
    return {"conditions": [{"type": "Initialized", "status": "True"}, {"type": "Ready", "status": status}]}


THREE, BALANCED = {"replicas": 3}, {"type": "LoadBalancer"}
CASES = [
    *(
        case
        for kind in ("Deployment", "StatefulSet")
        for case in (
            (obj(kind, rollout(), THREE), True),
            (obj(kind, rollout(updated=4, available=4), THREE), True),
            (obj(kind, rollout(observed=1), THREE), False),
            (obj(kind, rollout(observed=3), THREE), False),
            (obj(kind, rollout(updated=2), THREE), False),
            (obj(kind, rollout(available=2), THREE), False),
            (obj(kind, rollout(updated=0, available=0)), True),
            (obj(kind, None, THREE), False),
            (obj(kind, None, generation=0), True),
        )
    ),
    (obj("ReplicaSet", rollout(updated=0), THREE), True),
    (obj("ReplicaSet", rollout(available=2), THREE), False),
    (obj("ReplicaSet", rollout(available=2)), True),
    (obj("ReplicaSet", rollout(observed=1), THREE), False),
    (obj("DaemonSet", daemons()), True),
    (obj("DaemonSet", daemons(observed=1)), False),
    (obj("DaemonSet", daemons(updated=2, available=2)), False),
    (obj("DaemonSet", daemons(available=2)), False),
    (obj("DaemonSet", daemons(desired=0, updated=0, available=0)), True),
    (obj("Service", None), True),
    (obj("Service", {"loadBalancer": {}}, {"type": "ClusterIP"}), True),
    (obj("Service", {"loadBalancer": {}}, BALANCED), False),
    (obj("Service", None, BALANCED), False),
    (obj("Service", {"loadBalancer": {"ingress": [{}, {"ip": "1.1.1.1"}]}}, BALANCED), True),
    (obj("Service", {"loadBalancer": {"ingress": [{"hostname": "a"}]}}, BALANCED), True),
    (obj("Service", {"loadBalancer": {"ingress": [{"hostname": "", "ip": ""}]}}, BALANCED), False),
    (obj("Ingress", {"loadBalancer": {"ingress": [{"ip": "1.1.1.1"}]}}), True),
    (obj("Ingress", {"loadBalancer": {"ingress": [{"hostname": "a"}]}}), True),
    (obj("Ingress", {"loadBalancer": {"ingress": []}}), False),
    (obj("Ingress", None), False),
    (obj("PersistentVolumeClaim", {"phase": "Bound"}), True),
    (obj("PersistentVolumeClaim", {"phase": "Pending"}), False),
    (obj("PersistentVolumeClaim", None), False),
    (obj("Pod", {"phase": "Succeeded"}), True),
    (obj("Pod", {"phase": "Running", **ready("True")}), True),
    (obj("Pod", {"phase": "Running", **ready("False")}), False),
    (obj("Pod", {"phase": "Running"}), False),
    (obj("Pod", {"phase": "Pending", **ready("True")}), False),
    (obj("Pod", {"phase": "Failed"}), False),
    (obj("PodDisruptionBudget", {"currentHealthy": 2, "desiredHealthy": 2}), True),
    (obj("PodDisruptionBudget", {"currentHealthy": 1, "desiredHealthy": 2}), False),
    (obj("PodDisruptionBudget", None), True),
]


@pytest.mark.parametrize(("observed", "healthy"), CASES)
def test_health_is_reported_from_status(native: Any, observed: Obj, healthy: bool) -> None:
    assert native.interpret_health(observed) is healthy


@cases(
    obj("Deployment", {"updatedReplicas": "3"}, generation=0),
    obj("Ingress", {"loadBalancer": {"ingress": ["1.1.1.1"]}}),
    {**obj("Pod", None), "status": "Running"},
)
def test_a_status_that_cannot_be_read_is_an_error(observed: Obj, native: Any) -> None:
    with pytest.raises(InterpreterError, match="expected"):
        native.interpret_health(observed)
