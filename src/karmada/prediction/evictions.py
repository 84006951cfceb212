"""Eviction tasks of a binding in words: why a resource leaves a cluster, and what its copy there waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karmada.kube.objects.types import Obj

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from karmada.controllers.context import Settings

_REASONS = {
    "TaintUntolerated": "it has a NoExecute taint that the placement does not tolerate",
    "ApplicationFailure": "the resource was unhealthy there",
}


def in_words(binding: Obj, clusters: Mapping[str, Obj], settings: Settings, now: float) -> list[str]:
    """Return one sentence for every eviction task of a binding."""
    return [_sentence(task, binding, clusters, settings, now) for task in _tasks(binding)]


def _tasks(binding: Obj) -> Sequence[Obj]:
    return binding["spec"].get("gracefulEvictionTasks") or ()


def _sentence(task: Obj, binding: Obj, clusters: Mapping[str, Obj], settings: Settings, now: float) -> str:
    name = task["fromCluster"]
    because = _REASONS.get(task["reason"], f"{task['producer']} says {task['reason']}")
    since = f", since {task['creationTimestamp']}" if task.get("creationTimestamp") else ""
    return f"left {name} because {because}{since}; {_outlook(task, binding, clusters.get(name), settings, now)}"


def _outlook(task: Obj, binding: Obj, cluster: Obj | None, settings: Settings, now: float) -> str:
    from karmada.api.taints import FOREVER
    from karmada.controllers.failover import fate, tasks
    from karmada.controllers.failover.applied import evicted_at
    from karmada.kube.objects.times import rfc3339

    rules = fate.Rules(settings.graceful_eviction_timeout, settings.evict_last_copy)
    source = fate.source_of(cluster, eligible=evicted_at(binding, cluster) == FOREVER)
    found = fate.fate_of(task, binding, source, rules, now)
    if task.get("suppressDeletion"):
        return "its copy there stays until suppressDeletion of the task is false"
    if task.get("purgeMode") in tasks.AT_ONCE:
        return "its copy there is deleted before the next one is made"
    if found is fate.Fate.END:
        return "its copy there is about to be deleted"
    if found is fate.Fate.RETURN:
        return "the cluster is back and keeps it"
    until = "" if found is not fate.Fate.WAIT else f", until {rfc3339(fate.deadline(task, rules))} at most"
    held = " (past its grace period: it may be the last that serves)" if found is fate.Fate.HOLD else ""
    return f"its copy there waits for {_awaited(binding)}{until}{held}"


def _awaited(binding: Obj) -> str:
    targets = [target["name"] for target in binding["spec"].get("clusters") or ()]
    if not targets:
        return "another cluster that fits"
    return f"the resource to be healthy in {', '.join(targets)}"
