"""Eviction tasks: a cluster leaves spec.clusters of a binding and gets a task, which its end removes again.

Pure functions of a binding's spec. While a task exists the scheduler does not choose its cluster, and the purge mode
says whether the Work there stays.
"""

from __future__ import annotations

from typing import Final

from karmada.kube.objects.types import Obj
from karmada.kube.runtime.cache import ignores_status

TAINT_UNTOLERATED: Final = "TaintUntolerated"
APPLICATION_FAILURE: Final = "ApplicationFailure"
TAINT_MANAGER: Final = "TaintManager"
DIRECTLY, GRACEFULLY, NEVER = "Directly", "Gracefully", "Never"
AT_ONCE: Final = frozenset({DIRECTLY, "Immediately"})
"""Purge modes in which the Work of an evicted cluster must be gone before any other is written."""
IN_GRACE: Final = frozenset({GRACEFULLY, "Graciously"})
SUCCEEDED: Final = "EvictWorkloadFromClusterSucceed"
FAILED: Final = "EvictWorkloadFromClusterFailed"


def tasks_of(spec: Obj) -> list[Obj]:
    return spec.get("gracefulEvictionTasks") or []


def evict(spec: Obj, cluster: str, task: Obj) -> Obj:
    """Return the spec without a target, and with a task for it; `task` lacks cluster and replicas."""
    targets: list[Obj] = spec.get("clusters") or []
    leaving = next((target for target in targets if target["name"] == cluster), None)
    if leaving is None:
        return spec
    spec = {**spec, "clusters": [target for target in targets if target is not leaving]}
    tasks = tasks_of(spec)
    if any(found["fromCluster"] == cluster for found in tasks):
        return spec
    replicas = {"replicas": leaving["replicas"]} if leaving.get("replicas") else {}
    return {**spec, "gracefulEvictionTasks": [*tasks, {"fromCluster": cluster, **replicas, **task}]}


def restore(spec: Obj, task: Obj) -> Obj:
    """Return the spec with the cluster of a task as a target again, as it was before."""
    replicas = {"replicas": task["replicas"]} if task.get("replicas") else {}
    return {**spec, "clusters": [*(spec.get("clusters") or ()), {"name": task["fromCluster"], **replicas}]}


@ignores_status
def from_clusters(binding: Obj) -> list[str]:
    """Return an index: bindings by the clusters that they are leaving."""
    return [task["fromCluster"] for task in tasks_of(binding.get("spec") or {})]
