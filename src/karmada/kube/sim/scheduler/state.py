"""The state that decisions use, changed only through here: nodes, the pods on them, and counts of these.

A pod is put on its node the moment that is decided, long before the API server and the informer say so, and taken away
again if the binding fails. Preemption tries things out by really taking pods away and putting them back, within one
step of the program, so there is no second model of the cluster that could differ from the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key
from karmada.kube.sim.scheduler.affinity import AffinityTerm, anti_affinity_of
from karmada.kube.sim.scheduler.nodes import Node, NodeTable
from karmada.kube.sim.scheduler.pods import PodInfo
from karmada.kube.sim.scheduler.tallies import NamespaceLabels, Tallies

K = TypeVar("K")
_NOWHERE: dict[str, int] = {}


def _count(counts: dict[K, int], key: K, change: int) -> None:
    value = counts.get(key, 0) + change
    if value:
        counts[key] = value
    else:
        counts.pop(key, None)


def _count_in(counts: dict[K, dict[str, int]], key: K, node: str, change: int) -> None:
    by_node = counts.setdefault(key, {})
    _count(by_node, node, change)
    if not by_node:
        del counts[key]


class ClusterState:
    def __init__(self, namespace_labels: NamespaceLabels) -> None:
        self.nodes = NodeTable()
        self.namespace_labels = namespace_labels
        self.tallies = Tallies(self.pods, namespace_labels)
        self.keeping_away: dict[AffinityTerm, dict[str, int]] = {}
        """Anti-affinity of pods that are there already: how many pods with this term are on which node."""
        self.claim_users: dict[Key, int] = {}
        """How many pods on nodes use a claim."""
        self.priorities: dict[int, int] = {}
        """How many pods on nodes have a priority."""
        self._owned: dict[str, dict[str, int]] = {}
        self.improvements = 0
        """Counts what may let a pod in that was refused before; as long as it stands, so do refusals."""

    def pods(self) -> Iterator[PodInfo]:
        for node in self.nodes.all():
            yield from node.pods.values()

    def siblings(self, owner: str) -> dict[str, int]:
        """Return how many pods of a controller are on which node."""
        return self._owned.get(owner, _NOWHERE)

    def set_node(self, obj: Obj) -> Node:
        self.improvements += 1
        return self.nodes.set(obj)

    def remove_node(self, name: str) -> None:
        self.improvements += 1
        self.nodes.remove(name)

    def assign(self, info: PodInfo) -> Node:
        """Put a pod on the node it names."""
        node = self.nodes.assign(info)
        self._counted(info, 1)
        return node

    def unassign(self, info: PodInfo) -> Node:
        node = self.nodes.unassign(info)
        self._counted(info, -1)
        self.improvements += 1
        return node

    def nominate(self, info: PodInfo, node: str) -> None:
        """Keep room for a pod on a node until it comes or `release` is called."""
        self.nodes.nominate(info, node)

    def release(self, info: PodInfo) -> None:
        if info.nominated:
            self.nodes.release(info)
            self.improvements += 1
            info.nominated = ""

    def namespaces_changed(self) -> None:
        self.tallies.clear()
        self.improvements += 1

    def _counted(self, info: PodInfo, change: int) -> None:
        needs = info.needs
        self.tallies.changed(info, change)
        _count(self.priorities, needs.priority, change)
        if info.owner:
            _count_in(self._owned, info.owner, info.node, change)
        for term in anti_affinity_of(info) if needs.anti_affinity else ():
            _count_in(self.keeping_away, term, info.node, change)
        for claim in info.claims:
            _count(self.claim_users, Key(info.key.namespace, claim.name), change)

    def has_lower_priority(self, priority: int) -> bool:
        return any(other < priority for other in self.priorities)
