"""Why a cluster has no room for one more replica, in its own figures: for people, not for scheduling.

The general estimator takes a cluster that models its nodes at its models: each node counts with the minimum of its
grade, which may be far below what it has. Other clusters count as one node with what is left in the summary.
"""

from __future__ import annotations

from karmada.estimator.amounts import PODS, amount, quantity
from karmada.estimator.resources import Demand, demand_of, on_node
from karmada.kube.objects.types import Obj
from karmada.scheduler.capacity import grades_of, left_over, summary_of


def shortage(cluster: Obj, requirements: Obj | None, *, models: bool = True) -> str:
    """Return the cause of no room; "" when the cluster's figures allow a replica."""
    summary = summary_of(cluster)
    if summary is None:
        return "the cluster reports no resourceSummary"
    allocatable = summary.get("allocatable") or {}
    if PODS not in allocatable:
        return "the cluster reports no allocatable pods"
    if left_over(summary, PODS).value() <= 0:
        return f"none of its {allocatable[PODS]} pods is left"
    if requirements is None:
        return ""
    demand = demand_of(requirements)
    request = requirements.get("resourceRequest") or {}
    if models and grades_of(cluster) is not None:
        return _by_models(cluster, summary, demand, request)
    return _by_summary(summary, allocatable, demand, request)


def _by_models(cluster: Obj, summary: Obj, demand: Demand, request: Obj) -> str:
    counts: dict[int, int] = {}
    for modeling in summary["allocatableModelings"]:
        counts[modeling.get("grade") or 0] = modeling.get("count") or 0
    occupied = [model for model in cluster["spec"]["resourceModels"] if counts.get(model.get("grade") or 0)]
    if not occupied:
        return "no node is in any grade of spec.resourceModels"
    model = max(occupied, key=lambda one: one.get("grade") or 0)
    least = {part["name"]: part["min"] for part in model["ranges"]}
    for name, need in on_node(demand).items():
        if amount(name, quantity(least.get(name, 0))) < need:
            grade = model.get("grade") or 0
            minimum = f"{name}: {least[name]}" if name in least else f"no {name}"
            return (
                f"a replica requests {name}: {request[name]}, and the {counts[grade]} node(s) of the highest grade in "
                f"use (grade {grade} of spec.resourceModels) count with that grade's minimum, {minimum}"
            )
    return ""


def _by_summary(summary: Obj, allocatable: Obj, demand: Demand, request: Obj) -> str:
    for name, need in demand.items():
        if name not in allocatable:
            return f"a replica requests {name}: {request[name]}, of which the cluster reports nothing"
        left = left_over(summary, name)
        if amount(name, left) < need:
            return f"a replica requests {name}: {request[name]}, and {left} of {allocatable[name]} is left"
    return ""
