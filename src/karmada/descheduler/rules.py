"""What the descheduler does to a binding: pure functions of the binding and of what estimators report.

A cluster is short when fewer replicas are ready there than it was given. Of those that are short it loses the replicas
that could not be scheduled for too long, but never one that may be ready.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import orjson

from karmada.api import well_known
from karmada.kube.objects import meta
from karmada.kube.objects.types import Obj
from karmada.scheduler.placement import BY_AGGREGATION, BY_DYNAMIC_WEIGHT, plan_of

NOT_REPORTED: Final = -1
_BY_ROOM: Final = frozenset({BY_AGGREGATION, BY_DYNAMIC_WEIGHT})


class Target(NamedTuple):
    cluster: str
    replicas: int
    ready: int
    """NOT_REPORTED when the cluster's status has no such number, as while none is ready."""

    @property
    def is_short(self) -> bool:
        return self.ready < self.replicas and self.replicas > 0


class Descheduled(NamedTuple):
    binding: Obj
    """With fewer replicas in some clusters, and otherwise as it was."""
    freed: Sequence[tuple[str, int]]
    """How many replicas each of these clusters lost, in the order of the targets."""

    @property
    def message(self) -> str:
        parts = [f"{count} replica(s) in cluster({name})" for name, count in self.freed]
        total = sum(count for _, count in self.freed)
        return ", ".join(["Binding has been descheduled", *parts, f"{total} total descheduled replica(s)"])


def concerns(binding: Obj) -> bool:
    """Return whether the descheduler handles it: a Deployment divided by what is free, of which a cluster is short."""
    resource = (binding.get("spec") or {}).get("resource") or {}
    if (resource.get("apiVersion"), resource.get("kind")) != ("apps/v1", "Deployment"):
        return False
    applied = meta.annotations(binding).get(well_known.APPLIED_PLACEMENT) or ""
    return divides_by_room(applied) and any(target.is_short for target in targets_of(binding))


@lru_cache(maxsize=4096)
def divides_by_room(applied: str) -> bool:
    """Return whether the placement that was applied last divides replicas by what is free in clusters."""
    try:
        placement = orjson.loads(applied) if applied else None
    except orjson.JSONDecodeError:
        return False
    return isinstance(placement, dict) and plan_of(placement).strategy in _BY_ROOM


def targets_of(binding: Obj) -> list[Target]:
    reports = {
        item["clusterName"]: item.get("status") for item in (binding.get("status") or {}).get("aggregatedStatus") or ()
    }
    return [
        Target(target["name"], target.get("replicas") or 0, _ready(reports.get(target["name"])))
        for target in (binding.get("spec") or {}).get("clusters") or ()
    ]


def _ready(status: object) -> int:
    ready = status.get("readyReplicas") if isinstance(status, dict) else None
    return ready if isinstance(ready, int) else NOT_REPORTED


def kept(replicas: int, ready: int, unschedulable: int) -> int:
    """Return how many of its replicas a cluster keeps."""
    if not 0 < unschedulable <= replicas:
        return replicas
    left = replicas - unschedulable
    return ready if left < ready <= replicas else left


def descheduled(binding: Obj, unschedulable: Mapping[str, int]) -> Descheduled | None:
    """Return the binding without the replicas that cannot be scheduled in clusters that are short; None to leave it."""
    counts = {
        target.cluster: kept(target.replicas, target.ready, unschedulable.get(target.cluster, 0))
        for target in targets_of(binding)
        if target.is_short
    }
    targets: list[Obj] = binding["spec"].get("clusters") or []
    freed = [
        (target["name"], target["replicas"] - counts[target["name"]])
        for target in targets
        if target["name"] in counts and counts[target["name"]] != target["replicas"]
    ]
    if not freed:
        return None
    clusters = [_with_replicas(target, counts.get(target["name"])) for target in targets]
    return Descheduled({**binding, "spec": {**binding["spec"], "clusters": clusters}}, freed)


def _with_replicas(target: Obj, replicas: int | None) -> Obj:
    """Return the target with these replicas; zero is written as none, as the scheduler writes it."""
    if replicas is None:
        return target
    rest = {field: value for field, value in target.items() if field != "replicas"}
    return {**rest, "replicas": replicas} if replicas else rest
