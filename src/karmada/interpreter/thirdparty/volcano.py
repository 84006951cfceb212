"""Volcano (batch.volcano.sh): Jobs of several tasks that are started together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from karmada.interpreter.native.aggregation import reported
from karmada.interpreter.native.fields import entries, section, text
from karmada.interpreter.operations import Report
from karmada.interpreter.thirdparty.aggregating import only_status, sums, values, with_status
from karmada.interpreter.thirdparty.common import fields_of_status
from karmada.interpreter.thirdparty.kind import Kind, Needs
from karmada.interpreter.thirdparty.values import Number, amount, at, count_or, objects_at, significant
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.times import parse_duration
from karmada.kube.objects.types import Obj

_COUNTERS = (
    "minAvailable", "pending", "running", "succeeded", "failed", "terminating", "unknown", "retryCount",
)  # fmt: skip
_HEALTHY = frozenset(
    {
        "Running", "Completed", "Pending", "Aborting", "Aborted", "Restarting", "Completing", "Terminating",
        "Terminated",
    }
)  # fmt: skip
_BROKEN = frozenset({"Failed", "Aborted", "Aborting", "Terminated", "Terminating"})
"""Conditions with one of these statuses are shown as their cluster has them."""


def _components(obj: Obj, needs: Needs) -> list[Obj]:
    return [
        {
            "name": task.get("name") or f"task-{index}",
            "replicas": count_or(1, task.get("minAvailable")),
            "replicaRequirements": needs(task.get("template")),
        }
        for index, task in enumerate(objects_at(obj, "spec", "tasks"))
    ]


def _healthy(obj: Obj) -> bool:
    return at(obj, "status", "state", "phase") in _HEALTHY


def _status(obj: Obj, reports: Sequence[Report], now: str) -> Obj:
    if not reports:
        return obj
    single = only_status(obj, reports)
    if single is not None:
        return single
    versions = [amount(status, "version") for status in reported(reports)]
    status = {
        **section(obj, "status"),
        **sums(reports, _COUNTERS),
        "version": max(versions, default=0),
        "runningDuration": max(values(reports, "runningDuration"), key=parse_duration, default=None),
        "taskStatusCount": _tasks(reports),
        "controlledResources": {
            name: found for resources in values(reports, "controlledResources") for name, found in resources.items()
        },
        "state": _state(obj, reports, now),
        "conditions": _conditions(reports),
    }
    return with_status(obj, significant(status))


def _tasks(reports: Iterable[Report]) -> Obj:
    """Return how many Pods of each task are in each phase."""
    counts: dict[str, dict[str, Number]] = {}
    for tasks in values(reports, "taskStatusCount"):
        for task, found in tasks.items():
            phases = counts.setdefault(task, {})
            for phase in section(found, "phase"):
                phases[phase] = phases.get(phase, 0) + amount(found["phase"], phase)
    return {task: {"phase": phases} for task, phases in counts.items()}


def _state(obj: Obj, reports: Sequence[Report], now: str) -> Obj | None:
    """Failed when it is anywhere, completed when it is everywhere; the time is that of the change."""
    phases = [(report.cluster, at(report.status or {}, "state", "phase")) for report in reports]
    failed = [cluster for cluster, phase in phases if phase in ("Failed", "Aborted")]
    if failed:
        state = _ended("Failed", "VolcanoJobFailed", f"Job failed in clusters: {','.join(failed)}")
    elif all(phase == "Completed" for _, phase in phases):
        state = _ended("Completed", "Completed", "Job completed successfully")
    else:
        return None
    former = section(section(obj, "status"), "state")
    since = former.get("lastTransitionTime") if all(former.get(field) == state[field] for field in state) else None
    return {**state, "lastTransitionTime": since or now}


def _ended(phase: str, reason: str, message: str) -> Obj:
    return {"phase": phase, "reason": reason, "message": message}


def _conditions(reports: Iterable[Report]) -> list[Obj]:
    """Return all of the first cluster where something went wrong, else the latest of each status."""
    found = [entries(status, "conditions") for status in reported(reports)]
    for conditions in found:
        if any(condition.get("status") in _BROKEN for condition in conditions):
            return conditions
    newest: dict[str, Obj] = {}
    for condition in (condition for conditions in found for condition in conditions):
        status = text(condition, "status")
        if status not in newest or _since(condition) > _since(newest[status]):
            newest[status] = condition
    return list(newest.values())


def _since(condition: Obj) -> str:
    return text(condition, "lastTransitionTime")


KINDS = (
    Kind(
        gvk=GVK("batch.volcano.sh", "v1alpha1", "Job"),
        components=_components,
        reflect=fields_of_status(
            *_COUNTERS, "version", "runningDuration", "taskStatusCount", "controlledResources", "state", "conditions"
        ),
        aggregate=_status,
        healthy=_healthy,
    ),
)
