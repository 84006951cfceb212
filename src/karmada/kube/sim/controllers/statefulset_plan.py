"""What a StatefulSet does next, decided from its pods and nothing else.

With OrderedReady, one step is taken at a time and only when all lower pods are available: the lowest missing pod is
created, then surplus pods are deleted from the highest down, then old pods are replaced from the highest down to the
partition. With Parallel pods do not wait for each other, except in an update.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from karmada.kube.objects.meta import is_deleting
from karmada.kube.objects.podstate import is_available, is_terminal, phase
from karmada.kube.objects.types import Obj
from karmada.kube.sim.controllers.amounts import amount
from karmada.kube.sim.controllers.revisions import revision_of
from karmada.kube.sim.controllers.statefulset_identity import first_ordinal, ordinal_of, replicas_of


@dataclass(frozen=True, slots=True)
class Layout:
    """`replicas[i]` is the pod with the i-th wanted ordinal, if there is one; `surplus` the rest, highest first."""

    start: int
    replicas: list[Obj | None]
    surplus: list[Obj]

    @property
    def pods(self) -> list[Obj]:
        return [pod for pod in self.replicas if pod is not None] + self.surplus


@dataclass(slots=True)
class Plan:
    replace: list[Obj] = field(default_factory=list)
    """Finished pods: they are deleted, and made again once they are gone."""
    create: list[int] = field(default_factory=list)
    remove: list[Obj] = field(default_factory=list)
    update: list[Obj] = field(default_factory=list)
    """Pods of an old revision whose turn it is."""


def layout(workload: Obj, pods: Iterable[Obj]) -> Layout:
    start, count = first_ordinal(workload), replicas_of(workload)
    replicas: list[Obj | None] = [None] * count
    surplus: list[tuple[int, Obj]] = []
    for pod in pods:
        ordinal = ordinal_of(workload, pod["metadata"]["name"])
        if ordinal is None:
            continue
        if start <= ordinal < start + count:
            replicas[ordinal - start] = pod
        else:
            surplus.append((ordinal, pod))
    surplus.sort(key=lambda entry: -entry[0])
    return Layout(start, replicas, [pod for _, pod in surplus])


def is_old(pod: Obj | None, newest: str) -> bool:
    """Return whether a pod is of another revision and not being deleted."""
    return pod is not None and revision_of(pod) != newest and not is_deleting(pod)


def partition_of(workload: Obj) -> int:
    return int(_rolling(workload).get("partition") or 0)


def takes_newest(workload: Obj, ordinal: int) -> bool:
    """Return whether a new pod is made from the newest template, or from the one that is in use below the partition."""
    strategy = workload["spec"].get("updateStrategy") or {}
    return strategy.get("type") == "OnDelete" or ordinal >= first_ordinal(workload) + partition_of(workload)


def _rolling(workload: Obj) -> Obj:
    return (workload["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}


def _is_healthy(pod: Obj | None, min_ready: int, now: float) -> bool:
    """Available, and not being deleted."""
    return pod is not None and not is_deleting(pod) and phase(pod) == "Running" and is_available(pod, min_ready, now)


def plan(workload: Obj, view: Layout, newest: str, now: float) -> Plan:
    """`newest` is the name of the revision that pods should have."""
    spec = workload["spec"]
    in_order = spec.get("podManagementPolicy") != "Parallel"
    min_ready = spec.get("minReadySeconds") or 0
    todo = Plan()
    settled = _fill(todo, view, in_order, min_ready, now)
    if settled or not in_order:
        settled = _shrink(todo, view, in_order, min_ready, now)
    if (settled or not in_order) and (spec.get("updateStrategy") or {}).get("type") != "OnDelete":
        todo.update = rollout(workload, view.replicas, newest, now)
    return todo


def _fill(todo: Plan, view: Layout, in_order: bool, min_ready: int, now: float) -> bool:
    """Missing and finished pods; True when all wanted pods exist and are healthy."""
    settled = True
    for slot, pod in enumerate(view.replicas):
        if _is_healthy(pod, min_ready, now):
            continue
        settled = False
        if pod is None:
            todo.create.append(view.start + slot)
        elif is_terminal(pod) and not is_deleting(pod):
            todo.replace.append(pod)
        if in_order:
            break
    return settled


def _shrink(todo: Plan, view: Layout, in_order: bool, min_ready: int, now: float) -> bool:
    """Surplus pods; True when there are none.

    In order, an unhealthy pod that may recover is deleted only when all surplus pods below it are healthy.
    """
    if not in_order:
        todo.remove = [pod for pod in view.surplus if not is_deleting(pod)]
    elif view.surplus and not is_deleting(view.surplus[0]):
        highest, *below = view.surplus
        steady = _is_healthy(highest, min_ready, now) or is_terminal(highest)
        if steady or all(_is_healthy(pod, min_ready, now) for pod in below):
            todo.remove = [highest]
    return not view.surplus


def rollout(workload: Obj, replicas: list[Obj | None], newest: str, now: float) -> list[Obj]:
    """Return the old pods that may be deleted now, so that they are made anew."""
    min_ready = workload["spec"].get("minReadySeconds") or 0
    affected = replicas[partition_of(workload) :][::-1]
    limit = _rolling(workload).get("maxUnavailable")
    if limit is None:
        return _next_old(affected, newest, min_ready, now)
    missing = sum(not _is_healthy(pod, min_ready, now) for pod in replicas)
    room = max(1, amount(limit, replicas_of(workload), up=True)) - missing
    old = [pod for pod in affected if pod is not None and is_old(pod, newest)]
    return old[: max(0, room)]


def _next_old(affected: list[Obj | None], newest: str, min_ready: int, now: float) -> list[Obj]:
    """Return the first old pod, if all before it are new and healthy."""
    for pod in affected:
        if pod is not None and is_old(pod, newest):
            return [pod]
        if not _is_healthy(pod, min_ready, now):
            return []
    return []
