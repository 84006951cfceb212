"""Kubeflow (kubeflow.org): Notebooks, and MPIJobs of the MPI operator. Training jobs are in a module of their own."""

from __future__ import annotations

from collections.abc import Sequence

from karmada.interpreter.native.fields import section, text
from karmada.interpreter.operations import Replicas, Report
from karmada.interpreter.thirdparty import kubeflow_training
from karmada.interpreter.thirdparty.aggregating import (
    all_conditions,
    earliest,
    latest,
    only_status,
    sums,
    updated,
    values,
    with_former_times,
)
from karmada.interpreter.thirdparty.common import has_condition
from karmada.interpreter.thirdparty.kind import Kind, Needs
from karmada.interpreter.thirdparty.values import Number, amount, at, count_or, objects_at
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj

_ENDED_BADLY = ("Error", "OOMKilled", "ContainerCannotRun")
_MPI_COUNTERS = ("active", "succeeded", "failed")
_TIMES = ("lastProbeTime", "lastTransitionTime")


# Notebook


def _notebook_replicas(obj: Obj, needs: Needs) -> Replicas:
    return Replicas(1, needs(at(obj, "spec", "template")))


def _notebook_healthy(obj: Obj) -> bool:
    state = section(section(obj, "status"), "containerState")
    if state.get("running") is not None:
        return True
    if state.get("waiting") is not None:
        return section(state, "waiting").get("reason") == "ContainerCreating"
    ended = state.get("terminated")
    return ended is not None and ended.get("reason") not in _ENDED_BADLY and ended.get("exitCode") == 0


def _notebook_reflected(_: Obj, status: Obj) -> Obj:
    return {
        "readyReplicas": amount(status, "readyReplicas"),
        "containerState": status.get("containerState"),
        "conditions": status.get("conditions"),
    }


def _notebook_status(obj: Obj, reports: Sequence[Report], now: str) -> Obj:
    if not reports:
        return obj
    single = only_status(obj, reports)
    if single is not None:
        return single
    states = [(cluster, section(status, "containerState")) for cluster, status in reports if status is not None]
    failed = [(cluster, state) for cluster, state in states if _has_failed(state)]
    running = [section(state, "running") for _, state in states if state.get("running") is not None]
    if failed:
        state: Obj = failed[-1][1] or {"waiting": {"reason": "Unschedulable"}}
        clusters = ", ".join(cluster for cluster, _ in failed)
        message = f"Notebook executed failed in member clusters: {clusters}"
        conditions = [_notebook_condition("Failed", "NotebookFailed", message, now)]
    else:
        started = max([text(found, "startedAt") for found in running], default="")
        state = {"running": {"startedAt": started}} if started else {}
        conditions = [_notebook_condition("Ready", "Ready", "All notebooks are ready", now)]
        if len(running) != len(reports):
            conditions = []
    return updated(
        obj,
        **sums(reports, ("readyReplicas",)),
        containerState=state,
        conditions=with_former_times(obj, conditions, _TIMES),
    )


def _has_failed(state: Obj) -> bool:
    return not state or state.get("terminated") is not None or state.get("waiting") is not None


def _notebook_condition(kind: str, reason: str, message: str, now: str) -> Obj:
    times = dict.fromkeys(_TIMES, now)
    return {"type": kind, "status": "True", **times, "reason": reason, "message": message}


# MPIJob


def _mpi_components(obj: Obj, needs: Needs) -> list[Obj]:
    """Return one for each role that has Pods; workers are optional."""
    roles = section(section(obj, "spec"), "mpiReplicaSpecs")
    return [
        {
            "name": role,
            "replicas": count_or(0 if role.lower() == "worker" else 1, spec.get("replicas")),
            "replicaRequirements": needs(spec["template"]),
        }
        for role, spec in roles.items()
        if spec.get("template") is not None
    ]


def _mpi_healthy(obj: Obj) -> bool:
    return bool(objects_at(obj, "status", "conditions")) and not has_condition(obj, "Failed")


def _mpi_reflected(_: Obj, status: Obj) -> Obj:
    fields = (*_MPI_COUNTERS, "selector")
    roles = {
        role: {field: found.get(field) for field in fields}
        for role, found in section(status, "replicaStatuses").items()
    }
    rest = ("conditions", "startTime", "completionTime", "lastReconcileTime")
    return {"replicaStatuses": roles, **{field: status.get(field) for field in rest}}


def _mpi_status(obj: Obj, reports: Sequence[Report], _: str) -> Obj:
    if not reports:
        return obj
    single = only_status(obj, reports)
    if single is not None:
        return single
    return updated(
        obj,
        replicaStatuses=_mpi_replicas(reports),
        startTime=earliest(reports, "startTime"),
        completionTime=latest(reports, "completionTime"),
        lastReconcileTime=latest(reports, "lastReconcileTime"),
        conditions=_newest(all_conditions(reports)),
    )


def _mpi_replicas(reports: Sequence[Report]) -> dict[str, dict[str, Number]]:
    totals: dict[str, dict[str, Number]] = {}
    for roles in values(reports, "replicaStatuses"):
        for role, found in roles.items():
            total = totals.setdefault(role, dict.fromkeys(_MPI_COUNTERS, 0))
            for field in _MPI_COUNTERS:
                total[field] += amount(found, field)
    return totals


def _newest(conditions: Sequence[Obj]) -> list[Obj]:
    """Return the latest condition of each type; those without a time cannot be compared."""
    newest: dict[str, Obj] = {}
    for condition in conditions:
        kind = text(condition, "type")
        if _since(condition) and (kind not in newest or _since(condition) > _since(newest[kind])):
            newest[kind] = condition
    return list(newest.values())


def _since(condition: Obj) -> str:
    return text(condition, "lastUpdateTime") or text(condition, "lastTransitionTime")


KINDS = (
    Kind(
        gvk=GVK("kubeflow.org", "v1", "Notebook"),
        replicas=_notebook_replicas,
        reflect=_notebook_reflected,
        aggregate=_notebook_status,
        healthy=_notebook_healthy,
    ),
    Kind(
        gvk=GVK("kubeflow.org", "v2beta1", "MPIJob"),
        components=_mpi_components,
        reflect=_mpi_reflected,
        aggregate=_mpi_status,
        healthy=_mpi_healthy,
    ),
    *kubeflow_training.KINDS,
)
