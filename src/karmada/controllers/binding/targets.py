"""The clusters a binding's template goes to, and those that may keep it for now: pure functions of its spec."""

from __future__ import annotations

from typing import Any

from karmada.controllers.failover.tasks import AT_ONCE, tasks_of
from karmada.kube.objects.types import Obj


def targets(spec: Obj) -> dict[str, int]:
    """Replicas by cluster, in order: those the scheduler chose, then those of the bindings that need this one."""
    found = {target["name"]: target.get("replicas") or 0 for target in spec.get("clusters") or ()}
    for snapshot in spec.get("requiredBy") or ():
        for target in snapshot.get("clusters") or ():
            found.setdefault(target["name"], target.get("replicas") or 0)
    return found


def allowed(spec: Obj) -> set[str]:
    """Clusters whose Works stay: the targets, and those that are being evicted gracefully."""
    leaving = {task["fromCluster"] for task in tasks_of(spec) if task.get("purgeMode") not in AT_ONCE}
    return leaving | targets(spec).keys()


def purged(spec: Obj) -> set[str]:
    """Clusters whose Works must be gone before any other Work is written."""
    return {task["fromCluster"] for task in tasks_of(spec) if task.get("purgeMode") in AT_ONCE}


def is_workload(spec: Obj) -> bool:
    """Return whether the template has replicas, even if zero at the moment."""
    return bool(
        (spec.get("replicas") or 0) > 0 or spec.get("replicaRequirements") is not None or spec.get("components")
    )


def is_divided(spec: Obj) -> bool:
    scheduling: Obj | None = (spec.get("placement") or {}).get("replicaScheduling")
    return scheduling is not None and (scheduling.get("replicaSchedulingType") or "Divided") == "Divided"


def is_suspended(spec: Obj, cluster: str) -> bool:
    """Return whether nothing is sent to a cluster for now."""
    suspension: Obj = spec.get("suspension") or {}
    if suspension.get("dispatching"):
        return True
    names: Any = (suspension.get("dispatchingOnClusters") or {}).get("clusterNames") or ()
    return cluster in names


def preserved_labels(spec: Obj) -> dict[str, str]:
    """Labels that carry the state of a workload from the cluster that failed to the one that takes over."""
    tasks, goals = tasks_of(spec), targets(spec)
    if not tasks or len(goals) != 1:
        return {}
    last = tasks[-1]
    if last.get("purgeMode") not in AT_ONCE or goals.keys() & set(last.get("clustersBeforeFailover") or ()):
        return {}
    return last.get("preservedLabelState") or {}
