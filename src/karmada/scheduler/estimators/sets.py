"""How many complete sets of components a cluster has room for.

First a bound by what the cluster has left in all; then, if it models its nodes, by placing sets on such nodes. All
amounts are in thousandths, however they are written. (Karmada takes those with a binary suffix in whole units, so that
memory requested in G, or as a plain number, never fits a summary in Gi.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from karmada.estimator.amounts import PODS, quantity
from karmada.estimator.room import Room
from karmada.estimator.simulation import Component, complete_sets, place_one_set
from karmada.estimator.terms import MAX_REPLICAS, Assumption
from karmada.kube.objects.types import Obj
from karmada.scheduler.capacity import grades_of, left_over, summary_of


def sets_in(cluster: Obj, components: Sequence[Obj], assumed: Sequence[Assumption], *, models: bool) -> int:
    summary = summary_of(cluster)
    if summary is None:
        return 0
    allocatable = summary.get("allocatable") or {}
    pods = left_over(summary, PODS).value() if PODS in allocatable else 0
    if pods <= 0:
        return 0
    left = {name: left_over(summary, name).milli() for name in allocatable}
    for assumption in assumed:
        taken_pods, taken = _needs(assumption.components)
        pods -= taken_pods
        for name, need in taken.items():
            left[name] = left.get(name, 0) - need
    most = _bound(pods, left, components)
    grades = grades_of(cluster) if models else None
    if grades is None or most <= 0:
        return most
    room = Room.of_grades(grades)
    for assumption in assumed:
        place_one_set(room, [Component.of(component) for component in assumption.components])
    return complete_sets(room, [Component.of(component) for component in components], most)


def _bound(pods: int, left: dict[str, int], components: Sequence[Obj]) -> int:
    if pods <= 0:
        return 0
    pods_per_set, per_set = _needs(components)
    if pods_per_set <= 0:
        return min(pods, MAX_REPLICAS)
    most = pods // pods_per_set
    for name, need in per_set.items():
        if need > 0:
            most = min(most, max(left.get(name, 0), 0) // need)
    return min(most, MAX_REPLICAS)


def _needs(components: Iterable[Obj]) -> tuple[int, dict[str, int]]:
    """Return pods and resources of one set."""
    pods, total = 0, dict[str, int]()
    for component in components:
        replicas = component.get("replicas") or 0
        if replicas <= 0:
            continue
        pods += replicas
        request = (component.get("replicaRequirements") or {}).get("resourceRequest") or {}
        for name, value in request.items():
            total[name] = total.get(name, 0) + replicas * quantity(value).milli()
    return pods, total
