"""The Flink operator (flink.apache.org): a cluster of job managers and task managers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from karmada.interpreter.native.aggregation import reported
from karmada.interpreter.native.fields import section, text
from karmada.interpreter.operations import Replicas, Report
from karmada.interpreter.thirdparty.aggregating import updated
from karmada.interpreter.thirdparty.common import fields_of_status
from karmada.interpreter.thirdparty.kind import Kind, Needs
from karmada.interpreter.thirdparty.values import at, count_or, numeric, quantity
from karmada.kube.objects import meta
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.quantity import Quantity
from karmada.kube.objects.types import Obj

_FIELDS = (
    "clusterInfo", "error", "jobManagerDeploymentStatus", "jobStatus", "observedGeneration", "lifecycleState",
    "reconciliationStatus", "taskManager",
)  # fmt: skip
_NOTHING: Obj = {"error": "", "jobManagerDeploymentStatus": "", "lifecycleState": "", "observedGeneration": 0}
"""The fields, when no cluster has a status; those that hold objects are left out."""
_STARTED = frozenset(
    {"RUNNING", "FINISHED", "FAILED", "CANCELED", "SUSPENDED", "CANCELLING", "FAILING", "RESTARTING"}
)  # fmt: skip
_STARTING = ("CREATED", "INITIALIZING", "RECONCILING")
_STUCK = ("ErrImagePull", "ImagePullBackOff", "CrashLoopBackOff")
_SLOTS = "taskmanager.numberOfTaskSlots"


def _healthy(obj: Obj) -> bool:
    """Return the health; a job that cannot start is healthy once it is known why: waiting would not change it."""
    status = section(obj, "status")
    state = at(status, "jobStatus", "state")
    if state is None:
        return status.get("jobManagerDeploymentStatus") == "READY" and status.get("lifecycleState") == "STABLE"
    if state in _STARTING:
        return any(reason in text(status, "error") for reason in _STUCK)
    return state in _STARTED


def _job_managers(obj: Obj) -> int:
    return count_or(1, at(obj, "spec", "jobManager", "replicas"))


def _task_managers(obj: Obj) -> int:
    """As many as it says, or as many as it takes to have a slot for every subtask."""
    count = numeric(at(obj, "spec", "taskManager", "replicas"))
    if count is not None:
        return int(count)
    parallelism = numeric(at(obj, "spec", "job", "parallelism"))
    slots = numeric(at(obj, "spec", "flinkConfiguration", _SLOTS))
    return math.ceil(parallelism / slots) if parallelism is not None and slots else 1


def _components(obj: Obj, _: Needs) -> list[Obj]:
    return [
        {"name": "jobmanager", "replicas": _job_managers(obj), "replicaRequirements": _component(obj, "jobManager")},
        {"name": "taskmanager", "replicas": _task_managers(obj), "replicaRequirements": _component(obj, "taskManager")},
    ]


def _component(obj: Obj, field: str) -> Obj:
    resource = section(section(section(obj, "spec"), field), "resource")
    cpu = resource.get("cpu")
    memory = quantity(resource.get("memory"), f"spec.{field}.resource.memory")
    request = {"cpu": None if cpu is None else _text(cpu, field), "memory": str(Quantity(memory.nano))}
    return {"resourceRequest": request, **_of_pods(obj)}


def _replicas(obj: Obj, _: Needs) -> Replicas:
    """Both kinds of Pods together, each as large as the larger one."""
    spec = section(obj, "spec")
    managers = [section(section(spec, field), "resource") for field in ("jobManager", "taskManager")]
    request = {}
    for name in ("cpu", "memory"):
        wanted = [manager[name] for manager in managers if manager.get(name) is not None]
        if wanted:
            request[name] = _text(max(wanted, key=lambda value: quantity(value, name)), name)
    needs: Obj = {"resourceRequest": request} if request else {}
    needs |= _of_pods(obj)
    if meta.namespace(obj):
        needs["namespace"] = meta.namespace(obj)
    return Replicas(_job_managers(obj) + _task_managers(obj), needs)


def _of_pods(obj: Obj) -> Obj:
    """Return what the common template of all Pods demands besides resources."""
    pod = section(section(section(obj, "spec"), "podTemplate"), "spec")
    claim = {field: pod[field] for field in ("nodeSelector", "tolerations") if pod.get(field)}
    needs: Obj = {"nodeClaim": claim} if claim else {}
    if pod.get("priorityClassName"):
        needs["priorityClassName"] = pod["priorityClassName"]
    return needs


def _text(value: Any, name: str) -> str:
    return str(quantity(value, name))


def _status(obj: Obj, reports: Sequence[Report], _: str) -> Obj:
    """As the last cluster has it."""
    if not reports:
        return obj
    statuses = reported(reports)
    found = statuses[-1] if statuses else _NOTHING
    return updated(obj, **{field: found.get(field) for field in _FIELDS})


KINDS = (
    Kind(
        gvk=GVK("flink.apache.org", "v1beta1", "FlinkDeployment"),
        replicas=_replicas,
        components=_components,
        reflect=fields_of_status(*_FIELDS),
        aggregate=_status,
        healthy=_healthy,
    ),
)
