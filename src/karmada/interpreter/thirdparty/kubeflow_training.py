"""Training jobs of Kubeflow (kubeflow.org): PyTorchJob and TFJob, whose Pods have different roles.

Both are made of replica specs by role, and report times, Pods by role, and how they ended as conditions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from karmada.interpreter.native.aggregation import reported
from karmada.interpreter.native.fields import entries, section
from karmada.interpreter.operations import Report
from karmada.interpreter.thirdparty.aggregating import (
    all_conditions,
    earliest,
    latest,
    updated,
    with_former_times,
    with_status,
)
from karmada.interpreter.thirdparty.common import has_condition, template_dependencies
from karmada.interpreter.thirdparty.kind import Components, Find, Kind, Needs
from karmada.interpreter.thirdparty.values import amount, at, count_or, significant
from karmada.kube.objects import meta
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj

_PYTORCH_ROLES = ("Master", "Worker")
_TENSORFLOW_ROLES = ("PS", "Worker", "Chief", "Master", "Evaluator")
_COUNTERS = ("active", "failed", "succeeded")
_NOW = ("lastProbeTime", "lastTransitionTime")


def _components(specs: str, roles: Sequence[str]) -> Components:
    """Return one for each role that there is."""

    def components(obj: Obj, needs: Needs) -> list[Obj]:
        found = section(section(obj, "spec"), specs)
        return [
            {
                "name": role.lower(),
                "replicas": count_or(1, found[role].get("replicas")),
                "replicaRequirements": needs(found[role].get("template")),
            }
            for role in roles
            if found.get(role) is not None
        ]

    return components


def _dependencies(specs: str, roles: Sequence[str]) -> Find:
    def find(obj: Obj) -> list[Obj]:
        templates = [at(obj, "spec", specs, role, "template") for role in roles]
        return [found for template in templates for found in template_dependencies(template, meta.namespace(obj))]

    return find


def _healthy(obj: Obj) -> bool:
    return at(obj, "status", "conditions") is not None and not has_condition(obj, "Failed")


def _reset(obj: Obj) -> Obj:
    """Return the status for a resource that no cluster runs."""
    return updated(obj, startTime=None, completionTime=None, replicaStatuses=None, conditions=None)


def _counted(reports: Sequence[Report], roles: Sequence[str]) -> Obj:
    """Return what both kinds aggregate in the same way."""
    statuses = [section(status, "replicaStatuses") for status in reported(reports)]
    return {
        "startTime": earliest(reports, "startTime"),
        "lastReconcileTime": latest(reports, "lastReconcileTime"),
        "replicaStatuses": {
            role: {field: sum([amount(section(found, role), field) for found in statuses]) for field in _COUNTERS}
            for role in roles
        },
    }


def _true(conditions: Iterable[Obj], *kinds: str) -> list[str]:
    """Return which of these conditions are true, in their order."""
    return [found["type"] for found in conditions if found.get("status") == "True" and found.get("type") in kinds]


# PyTorchJob


def _pytorch_status(obj: Obj, reports: Sequence[Report], _: str) -> Obj:
    if not reports:
        return _reset(obj)
    ended = [(cluster, _pytorch_end(entries(status or {}, "conditions"))) for cluster, status in reports]
    failed = [cluster for cluster, end in ended if end == "Failed"]
    is_done = all(end == "Succeeded" for _, end in ended)
    status = {
        **section(obj, "status"),
        **_counted(reports, _PYTORCH_ROLES),
        "conditions": _pytorch_conditions(reports, failed, is_done=is_done),
    }
    if is_done:
        status["completionTime"] = latest(reports, "completionTime")
    return with_status(obj, significant(status))


def _pytorch_end(conditions: Iterable[Obj]) -> str:
    """Return how it ended in a cluster, "" when it did not; a failure outweighs a success."""
    return min(_true(conditions, "Failed", "Succeeded"), default="")


def _pytorch_conditions(reports: Sequence[Report], failed: Sequence[str], *, is_done: bool) -> list[Obj]:
    known = all_conditions(reports)
    started, completed = earliest(reports, "startTime"), latest(reports, "completionTime")
    conditions = []
    if _true(known, "Created"):
        conditions.append(_pytorch_condition("Created", "True", "PyTorchJob is created.", started, started))
    running = [condition for condition in known if condition.get("type") == "Running"]
    if running:
        times = (running[-1].get("lastUpdateTime"), running[-1].get("lastTransitionTime"))
        now = "False" if failed or is_done else "True"
        conditions.append(_pytorch_condition("Running", now, "PyTorchJob is running.", *times))
    if failed:
        message = f"PyTorchJob executed failed in member clusters: {', '.join(failed)}"
        conditions.append(_pytorch_condition("Failed", "True", message, completed, completed))
    elif is_done:
        message = "PyTorchJob is successfully completed."
        conditions.append(_pytorch_condition("Succeeded", "True", message, completed, completed))
    return conditions


def _pytorch_condition(kind: str, status: str, message: str, update: str | None, transition: str | None) -> Obj:
    return {
        "type": kind,
        "status": status,
        "lastUpdateTime": update,
        "lastTransitionTime": transition,
        "reason": f"PyTorchJob{kind}",
        "message": message,
    }


# TFJob


def _tensorflow_status(obj: Obj, reports: Sequence[Report], now: str) -> Obj:
    if not reports:
        return _reset(obj)
    ended = [(cluster, _tensorflow_end(entries(status or {}, "conditions"))) for cluster, status in reports]
    failed = [cluster for cluster, end in ended if end == "Failed"]
    is_done = all(end == "Succeeded" for _, end in ended)
    conditions = []
    if failed:
        message = f"TFJob executed failed in member clusters: {', '.join(failed)}"
        conditions.append(_tensorflow_condition("Failed", "TFJobFailed", message, now))
    elif is_done:
        conditions.append(_tensorflow_condition("Succeeded", "Completed", "TFJob completed successfully", now))
    status = {
        **section(obj, "status"),
        **_counted(reports, _TENSORFLOW_ROLES),
        "conditions": with_former_times(obj, conditions, _NOW),
    }
    if is_done:
        status["completionTime"] = latest(reports, "completionTime")
    return with_status(obj, significant(status))


def _tensorflow_end(conditions: Iterable[Obj]) -> str:
    """Return how it ended in a cluster, "" when it did not; the last such condition counts."""
    return next(reversed(_true(conditions, "Failed", "Succeeded")), "")


def _tensorflow_condition(kind: str, reason: str, message: str, now: str) -> Obj:
    return {"type": kind, "status": "True", **dict.fromkeys(_NOW, now), "reason": reason, "message": message}


KINDS = (
    Kind(
        gvk=GVK("kubeflow.org", "v1", "PyTorchJob"),
        components=_components("pytorchReplicaSpecs", _PYTORCH_ROLES),
        aggregate=_pytorch_status,
        healthy=_healthy,
        dependencies=_dependencies("pytorchReplicaSpecs", _PYTORCH_ROLES),
    ),
    Kind(
        gvk=GVK("kubeflow.org", "v1", "TFJob"),
        components=_components("tfReplicaSpecs", _TENSORFLOW_ROLES),
        aggregate=_tensorflow_status,
        healthy=_healthy,
        dependencies=_dependencies("tfReplicaSpecs", _TENSORFLOW_ROLES),
    ),
)
