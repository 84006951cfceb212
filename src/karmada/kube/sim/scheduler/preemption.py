"""Preemption: which pods of lower priority would have to go so that a pod fits, and on which node that hurts least.

A node is tried out by taking all its lesser pods away. If the pod then fits, they are put back one by one, the most
important first and before them those whose disruption budget is used up; those that do not fit any more are victims.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from karmada.kube.objects.selectors import LabelSelector, labels_from
from karmada.kube.objects.times import parse_time
from karmada.kube.objects.types import Obj
from karmada.kube.sim.scheduler.messages import NO_VICTIMS, NOT_HELPFUL, Refusal, unavailable
from karmada.kube.sim.scheduler.nodes import Node
from karmada.kube.sim.scheduler.pods import PodInfo
from karmada.kube.sim.scheduler.state import ClusterState

_MOST_CANDIDATES = 100
_NOT_HELPFUL = Refusal((NOT_HELPFUL,), "", True)

Refuses = Callable[[PodInfo, Node], Refusal | None]


class Budget(NamedTuple):
    """A PodDisruptionBudget: how many more of the pods it selects may be disrupted."""

    namespace: str
    selector: LabelSelector
    allowed: int
    disrupted: frozenset[str]
    """Pods that were counted already."""


def budgets_from(objects: Sequence[Obj]) -> list[Budget]:
    found = []
    for obj in objects:
        status = obj.get("status") or {}
        try:
            selector = labels_from((obj.get("spec") or {}).get("selector"))
        except ValueError:
            continue
        allowed, disrupted = status.get("disruptionsAllowed") or 0, frozenset(status.get("disruptedPods") or ())
        found.append(Budget(obj["metadata"]["namespace"], selector, allowed, disrupted))
    return found


class Victims(NamedTuple):
    node: Node
    pods: list[PodInfo]
    """The most important first."""
    violations: int
    """How many of them leave although their budget does not allow it."""


def importance(info: PodInfo) -> tuple[int, str, int]:
    """Sorts the most important first: by priority, then who has been there longest."""
    return -info.needs.priority, info.created, info.order


def protected(pods: Sequence[PodInfo], budgets: Sequence[Budget]) -> tuple[list[PodInfo], list[PodInfo]]:
    """Return the pods whose removal, one after the other in this order, breaks a budget, and the rest."""
    left = [budget.allowed for budget in budgets]
    breaking: list[PodInfo] = []
    others: list[PodInfo] = []
    for info in pods:
        breaks = False
        for index, budget in enumerate(budgets):
            if budget.namespace != info.key.namespace or info.key.name in budget.disrupted:
                continue
            if info.labels and budget.selector.matches(info.labels):
                left[index] -= 1
                breaks = breaks or left[index] < 0
        (breaking if breaks else others).append(info)
    return breaking, others


def find_victims(
    state: ClusterState, refuses: Refuses, info: PodInfo, node: Node, budgets: Sequence[Budget]
) -> Victims | Refusal:
    """Who has to leave a node for a pod; leaves the state as it was."""
    lesser = sorted((p for p in node.pods.values() if p.needs.priority < info.needs.priority), key=importance)
    if not lesser:
        return NO_VICTIMS
    for pod in lesser:
        state.unassign(pod)
    away = {pod.key for pod in lesser}
    try:
        refusal = refuses(info, node)
        if refusal is not None:
            return refusal
        breaking, others = protected(lesser, budgets)
        victims: list[PodInfo] = []
        violations = 0
        for pod in (*breaking, *others):
            state.assign(pod)
            away.discard(pod.key)
            if refuses(info, node) is not None:
                state.unassign(pod)
                away.add(pod.key)
                victims.append(pod)
                violations += pod in breaking
        return Victims(node, sorted(victims, key=importance), violations) if victims else NO_VICTIMS
    finally:
        for pod in lesser:
            if pod.key in away:
                state.assign(pod)


def harm(victims: Victims) -> tuple[int, int, int, int, float]:
    """Sorts the least harmful first."""
    priorities = [pod.needs.priority for pod in victims.pods]
    highest = max(priorities)
    started = min(
        (parse_time(pod.created) for pod in victims.pods if pod.needs.priority == highest and pod.created), default=0.0
    )
    return victims.violations, highest, sum(p + 2**31 for p in priorities), len(priorities), -started


def best(
    state: ClusterState, refuses: Refuses, info: PodInfo, hopeful: Sequence[Node], budgets: Sequence[Budget]
) -> tuple[Victims | None, str]:
    """Whom to preempt, or else why that does not help."""
    candidates: list[Victims] = []
    refused: dict[Refusal, int] = {}
    for node in hopeful:
        outcome = find_victims(state, refuses, info, node, budgets)
        if isinstance(outcome, Victims):
            candidates.append(outcome)
            if len(candidates) >= _MOST_CANDIDATES:
                break
        else:
            refused[outcome] = refused.get(outcome, 0) + 1
    if candidates:
        return min(candidates, key=harm), ""
    return None, without_victims(state.nodes.count, refused)


def without_victims(total: int, refused: dict[Refusal, int]) -> str:
    """Return the text for nodes that were not worth a try."""
    rest = total - sum(refused.values())
    return unavailable(total, {**refused, _NOT_HELPFUL: rest} if rest else refused)
