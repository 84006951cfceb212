"""Scores of the feasible nodes: free and balanced resources, spreading, preferred affinity, tolerated taints.

Every score is brought to 0..100 and weighted as kube-scheduler does by default: taints count three times, affinities
and spreading twice, resources once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from karmada.kube.objects.node_selection import HOSTNAME
from karmada.kube.sim.controllers.nodefit import tolerates
from karmada.kube.sim.scheduler.affinity import company
from karmada.kube.sim.scheduler.nodes import Group, Node
from karmada.kube.sim.scheduler.pods import PodInfo
from karmada.kube.sim.scheduler.resources import Request
from karmada.kube.sim.scheduler.spread import wishes

if TYPE_CHECKING:
    from karmada.kube.sim.scheduler.state import ClusterState

BEST = 100.0
TAINT_WEIGHT, AFFINITY_WEIGHT, SPREAD_WEIGHT = 3.0, 2.0, 2.0

Scorer = Callable[[Node], float]


def room(request: Request, group: Group) -> float:
    """Return how empty, and how evenly used, the group's nodes would be with the pod (0..200)."""
    _, cpu, memory, _, _ = group.kind.allocatable
    usage = group.usage
    if not cpu or not memory:
        return 0.0
    by_cpu = (usage[4] + request[3]) / cpu
    by_memory = (usage[5] + request[4]) / memory
    free = max(0.0, 1.0 - by_cpu) + max(0.0, 1.0 - by_memory)
    skew = min(1.0, (usage[1] + request[0]) / cpu) - min(1.0, (usage[2] + request[1]) / memory)
    return 50.0 * free + BEST - 50.0 * abs(skew)


def normalised(raw: Sequence[float], *, fewer_is_better: bool) -> list[float]:
    """From 0 for the worst to 100 for the best; all 100 where they do not differ."""
    low, high = min(raw), max(raw)
    if low == high:
        return [BEST] * len(raw)
    span = high - low
    if fewer_is_better:
        return [BEST * (high - value) / span for value in raw]
    return [BEST * (value - low) / span for value in raw]


class Scorers:
    """The scores that matter for one pod, beyond resources. Most pods have none but the spreading of siblings."""

    def __init__(self, state: ClusterState, info: PodInfo, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._more: list[tuple[float, bool, Scorer]] = []
        needs = info.needs
        if any(node.kind is not None and node.kind.soft_taints for node in nodes):
            self._add(TAINT_WEIGHT, lambda node: _disliked(info, node), fewer=True)
        if needs.preferred_nodes:
            self._add(AFFINITY_WEIGHT, lambda node: _liked(info, node), fewer=False)
        if needs.preferred_pods:
            near = company(state, info)
            if near:
                self._add(AFFINITY_WEIGHT, lambda node: _near(near, node), fewer=False)
        rules = wishes(state, info) if needs.spread else []
        if rules:
            self._add(SPREAD_WEIGHT, lambda node: _crowd([(r.topology_key, r.counts) for r in rules], node), fewer=True)
        elif info.owner and not needs.spread:
            siblings = state.siblings(info.owner)
            if siblings:
                self._add(SPREAD_WEIGHT, lambda node: siblings.get(node.name, 0), fewer=True)

    def _add(self, weight: float, scorer: Scorer, *, fewer: bool) -> None:
        self._more.append((weight, fewer, scorer))

    def total(self, base: Sequence[float]) -> list[float]:
        total = list(base)
        for weight, fewer, scorer in self._more:
            scores = normalised([scorer(node) for node in self._nodes], fewer_is_better=fewer)
            total = [one + weight * more for one, more in zip(total, scores, strict=True)]
        return total


def _disliked(info: PodInfo, node: Node) -> float:
    taints = node.kind.soft_taints if node.kind is not None else ()
    return sum(1.0 for taint in taints if not any(tolerates(t, taint) for t in info.needs.tolerations))


def _liked(info: PodInfo, node: Node) -> float:
    labels = node.labels()
    return float(sum(weight for weight, term in info.needs.preferred_nodes if term.matches(labels, node.name)))


def _near(near: list[tuple[str, dict[str, int]]], node: Node) -> float:
    return float(sum(weights.get(node.label(key) or "", 0) for key, weights in near))


def _crowd(rules: list[tuple[str, dict[str, int]]], node: Node) -> float:
    """Return matching pods in the node's domains; hosts weigh less than zones, of which there are fewer."""
    return sum(
        counts.get(node.label(key) or "", 0) / (1.0 if key == HOSTNAME else max(1, len(counts)))
        for key, counts in rules
    )
