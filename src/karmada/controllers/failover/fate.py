"""What becomes of an eviction task: it waits, ends, is held for the last copy that may serve, or is taken back.

Pure functions. Karmada ends a task when the resource is healthy where it went, or after the grace period whatever
happens then; that can remove the last copy. Here a copy that may serve stays until its replacement is healthy. It does
not serve when its cluster is not ready or the interpreter calls it unhealthy: then the grace period counts. Nothing is
ever removed from a cluster that is only cut off while there is no replacement at all: it may serve on, and takes the
resource back when it returns.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from karmada.controllers.cluster_state import is_ready
from karmada.controllers.execution.status import HEALTHY, UNHEALTHY
from karmada.controllers.failover import tasks
from karmada.kube.objects import meta
from karmada.kube.objects.times import parse_time
from karmada.kube.objects.types import Obj


class Fate(Enum):
    STAMP = "stamp"
    """It is new: its time begins now."""
    WAIT = "wait"
    HOLD = "hold"
    """Its time is over, but the copy may be the last that serves."""
    END = "end"
    RETURN = "return"
    """The cluster is back and nothing took over: it keeps the resource."""


class Rules(NamedTuple):
    timeout: float
    """Seconds of grace, where the task has none of its own."""
    evict_last_copy: bool = False
    """True if the end of the grace period decides alone, as in Karmada."""


class Source(NamedTuple):
    """The state of the cluster that a resource leaves."""

    joined: bool
    ready: bool
    eligible: bool
    """It has no NoExecute taint that evicts."""


def fate_of(task: Obj, binding: Obj, source: Source, rules: Rules, now: float) -> Fate:
    if not task.get("creationTimestamp"):
        return Fate.STAMP
    suppressed = task.get("suppressDeletion")
    if suppressed is not None:
        return Fate.WAIT if suppressed else Fate.END
    if is_replaced(binding, vacuously=rules.evict_last_copy):
        return Fate.END
    if not rules.evict_last_copy and _comes_back(task, binding, source):
        return Fate.RETURN
    if now <= deadline(task, rules):
        return Fate.WAIT
    return Fate.HOLD if not rules.evict_last_copy and _may_be_needed(task, binding, source) else Fate.END


def deadline(task: Obj, rules: Rules) -> float:
    return parse_time(task["creationTimestamp"]) + (task.get("gracePeriodSeconds") or rules.timeout)


def is_replaced(binding: Obj, *, vacuously: bool = False) -> bool:
    """Return whether the scheduler decided without the evicted clusters and the resource is healthy everywhere."""
    targets = _targets(binding)
    if not _is_observed(binding) or not (targets or vacuously):
        return False
    return all(_health(binding, target) == HEALTHY for target in targets)


def _comes_back(task: Obj, binding: Obj, source: Source) -> bool:
    """Return a cluster that recovered, of a binding that found no other place."""
    if task.get("producer") != tasks.TAINT_MANAGER or not source.ready or not source.eligible:
        return False
    return not _targets(binding) or not _is_observed(binding)


def _may_be_needed(task: Obj, binding: Obj, source: Source) -> bool:
    """Return whether the copy may serve: now, or, when nothing else does, once its cluster is back."""
    health = _health(binding, task["fromCluster"])
    if not source.joined or task.get("purgeMode") in tasks.AT_ONCE or health in ("", UNHEALTHY):
        return False
    return source.ready or not _targets(binding)


def _is_observed(binding: Obj) -> bool:
    observed = (binding.get("status") or {}).get("schedulerObservedGeneration")
    return observed == meta.generation(binding)


def _targets(binding: Obj) -> list[str]:
    return [target["name"] for target in binding["spec"].get("clusters") or ()]


def _health(binding: Obj, cluster: str) -> str:
    """Empty where there is no copy."""
    items = (binding.get("status") or {}).get("aggregatedStatus") or ()
    return next((item.get("health") or "" for item in items if item["clusterName"] == cluster), "")


def source_of(cluster: Obj | None, *, eligible: bool) -> Source:
    if cluster is None or meta.is_deleting(cluster):
        return Source(joined=False, ready=False, eligible=False)
    return Source(joined=True, ready=is_ready(cluster), eligible=eligible)
