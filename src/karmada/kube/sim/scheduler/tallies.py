"""How many pods that match a selector are on each node, kept up to date as pods come and go.

Pod affinity and topology spread need this for every pod they place. A `Tally` is counted once, by looking at all pods,
and from then on follows every assignment; those not used for a while are dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from karmada.kube.objects.memo import Memo
from karmada.kube.objects.selectors import Labels, LabelSelector
from karmada.kube.sim.scheduler.pods import PodInfo

_KEPT = 256

NamespaceLabels = Callable[[str], Labels]
"""The labels of a namespace."""


class PodSelection(NamedTuple):
    """Pods by their labels, in the named namespaces or in those whose labels match."""

    labels: LabelSelector
    namespaces: frozenset[str]
    by_labels: LabelSelector | None = None

    def matches(self, info: PodInfo, namespace_labels: NamespaceLabels) -> bool:
        namespace = info.key.namespace
        if namespace not in self.namespaces and (
            self.by_labels is None or not self.by_labels.matches(namespace_labels(namespace))
        ):
            return False
        return self.labels.matches(info.labels)


class TallyKey(NamedTuple):
    """Pods that match all of `selections`; `living`: without those that are being deleted."""

    selections: tuple[PodSelection, ...]
    living: bool = False


class Tally:
    __slots__ = ("key", "nodes", "total")

    def __init__(self, key: TallyKey) -> None:
        self.key = key
        self.nodes: dict[str, int] = {}
        """Nodes with at least one."""
        self.total = 0

    def add(self, node: str, change: int) -> None:
        count = self.nodes.get(node, 0) + change
        if count:
            self.nodes[node] = count
        else:
            self.nodes.pop(node, None)
        self.total += change


class Tallies:
    def __init__(self, pods: Callable[[], Iterable[PodInfo]], namespace_labels: NamespaceLabels) -> None:
        """`pods` gives all that are on nodes."""
        self._pods = pods
        self._namespace_labels = namespace_labels
        self._tallies: Memo[TallyKey, Tally] = Memo(_KEPT)

    def of(self, key: TallyKey) -> Tally:
        tally = self._tallies.get(key)
        if tally is not None:
            return tally
        tally = Tally(key)
        for info in self._pods():
            if self._counts(tally, info):
                tally.add(info.node, 1)
        return self._tallies.put(key, tally)

    def _counts(self, tally: Tally, info: PodInfo) -> bool:
        selections, living = tally.key
        if living and info.deleting:
            return False
        return all(selection.matches(info, self._namespace_labels) for selection in selections)

    def changed(self, info: PodInfo, change: int) -> None:
        """Count a pod that came to its node (1) or left it (-1)."""
        for tally in self._tallies.values():
            if self._counts(tally, info):
                tally.add(info.node, change)

    def clear(self) -> None:
        """Something that was counted on, such as a namespace's labels, is no longer so."""
        self._tallies.clear()
