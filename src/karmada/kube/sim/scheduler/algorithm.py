"""Choosing a node: filter, score, pick; or a diagnosis of why there is none.

Groups of equal nodes are filtered as a whole. Single nodes are checked only for pods with host ports, pod (anti-)
affinity, spread constraints, volumes or a named node. As in kube-scheduler a search ends when enough nodes have been
found, and the next starts where it ended, so that a large cluster costs no more than a medium one.

A pod for which no node was found leaves a Diagnosis. It is valid for all pods of the same needs and labels until
something in the cluster improves, so a thousand pods that cannot be scheduled cost one search.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from random import Random
from typing import NamedTuple

from karmada.kube.objects.memo import Memo
from karmada.kube.sim.scheduler.affinity import PodAffinityCheck
from karmada.kube.sim.scheduler.filters import depends_on_node, group_lacks, kind_refuses, node_refuses
from karmada.kube.sim.scheduler.messages import (
    NO_NODES,
    NO_NODES_MESSAGE,
    NOT_SELECTED,
    VOLUMES,
    Refusal,
    Texts,
    unavailable,
    unavailable_at_all,
)
from karmada.kube.sim.scheduler.nodes import Group, Node
from karmada.kube.sim.scheduler.pods import PodInfo
from karmada.kube.sim.scheduler.scores import Scorers, room
from karmada.kube.sim.scheduler.spread import SpreadCheck
from karmada.kube.sim.scheduler.state import ClusterState
from karmada.kube.sim.scheduler.volumes import NO_VOLUMES, VolumeCheck, VolumeChoice, Volumes

_ENOUGH = 100
_REMEMBERED = 256


class Choice(NamedTuple):
    node: Node
    volumes: VolumeChoice


class Diagnosis(NamedTuple):
    """`refused` counts the nodes by reason; `at_all` is the reason where no node was tried."""

    total: int
    refused: dict[Refusal, int]
    at_all: str = ""

    @property
    def message(self) -> str:
        if not self.total:
            return NO_NODES_MESSAGE
        if self.at_all:
            return unavailable_at_all(self.total, self.at_all)
        return unavailable(self.total, self.refused)

    @property
    def plugins(self) -> frozenset[str]:
        if not self.total:
            return frozenset((NO_NODES,))
        if self.at_all:
            return frozenset((VOLUMES,))
        return frozenset(refusal.plugin for refusal in self.refused)

    @property
    def hopeful(self) -> bool:
        """Return whether preemption may help: some node refuses only because of the pods that run there."""
        return any(not refusal.final for refusal in self.refused)


class _Search:
    """The search for one pod: the filters it needs, and what they found."""

    def __init__(
        self, state: ClusterState, info: PodInfo, texts: Texts, volumes: VolumeCheck | None, random: Random
    ) -> None:
        self._info = info
        self._texts = texts
        self._random = random
        needs = info.needs
        self._early = depends_on_node(needs)
        self._late: list[Callable[[Node], Refusal | None]] = []
        if volumes is not None:
            self._late.append(volumes.refuses)
        if needs.spread:
            spread = SpreadCheck(state, info)
            if spread:
                self._late.append(spread.refuses)
        if needs.affinity or needs.anti_affinity or state.keeping_away:
            others = PodAffinityCheck(state, info)
            if others:
                self._late.append(others.refuses)
        self.refused: dict[Refusal, int] = {}
        self.found: list[Node] = []
        self.rooms: list[float] = []

    @property
    def by_node(self) -> bool:
        return self._early or bool(self._late)

    def refuse(self, refusal: Refusal, nodes: int) -> None:
        self.refused[refusal] = self.refused.get(refusal, 0) + nodes

    def refuses(self, node: Node, group: Group) -> Refusal | None:
        """Return why a single node refuses the pod, with the filters in kube-scheduler's order."""
        needs = self._info.needs
        refusal = kind_refuses(needs, group.kind, self._texts)
        if refusal is None and self._early:
            refusal = node_refuses(needs, node)
        if refusal is None:
            refusal = group_lacks(self._info, group, self._texts)
        return refusal if refusal is not None else self._late_refusal(node)

    def _late_refusal(self, node: Node) -> Refusal | None:
        for refuses in self._late:
            refusal = refuses(node)
            if refusal is not None:
                return refusal
        return None

    def check_group(self, group: Group, most: int) -> None:
        """Take those of a group that will do; of nodes that are equal for all filters no more than `most`."""
        refusal = kind_refuses(self._info.needs, group.kind, self._texts)
        if refusal is not None:
            self.refuse(refusal, len(group.nodes))
            return
        lacks = group_lacks(self._info, group, self._texts)
        if self.by_node:
            self._check_each(group, lacks)
        elif lacks is not None:
            self.refuse(lacks, len(group.nodes))
        else:
            self._take(self._some(group.nodes, most), group)

    def _check_each(self, group: Group, lacks: Refusal | None) -> None:
        if lacks is not None and not self._early:
            self.refuse(lacks, len(group.nodes))
            return
        good: list[Node] = []
        wanted = _ENOUGH - len(self.found)
        for node in self._from_anywhere(group.nodes):
            refusal = node_refuses(self._info.needs, node) if self._early else None
            refusal = refusal or lacks or self._late_refusal(node)
            if refusal is not None:
                self.refuse(refusal, 1)
                continue
            good.append(node)
            if len(good) >= wanted:
                break
        self._take(good, group)

    def _some(self, nodes: list[Node], most: int) -> Sequence[Node]:
        if len(nodes) <= most:
            return nodes
        start = self._random.randrange(len(nodes))
        taken = nodes[start : start + most]
        return taken if len(taken) == most else taken + nodes[: most - len(taken)]

    def _from_anywhere(self, nodes: list[Node]) -> list[Node]:
        if len(nodes) <= _ENOUGH:
            return nodes
        start = self._random.randrange(len(nodes))
        return nodes[start:] + nodes[:start]

    def check_node(self, node: Node, group: Group) -> None:
        refusal = self.refuses(node, group)
        if refusal is None:
            self._take([node], group)
        else:
            self.refuse(refusal, 1)

    def _take(self, nodes: Sequence[Node], group: Group) -> None:
        if nodes:
            self.found.extend(nodes)
            self.rooms.extend([room(self._info.needs.request, group)] * len(nodes))


class Algorithm:
    def __init__(self, state: ClusterState, volumes: Volumes, texts: Texts, random: Random) -> None:
        self._state = state
        self._volumes = volumes
        self._texts = texts
        self._random = random
        self._next = 0
        self._failures: Memo[Hashable, tuple[int, Diagnosis]] = Memo(_REMEMBERED)

    def decide(self, info: PodInfo) -> Choice | Diagnosis:
        key = self._failure_key(info)
        if key is not None:
            known = self._failures.get(key)
            if known is not None and known[0] == self._state.improvements:
                return known[1]
        outcome = self._search(info)
        if key is not None and isinstance(outcome, Diagnosis):
            self._failures.put(key, (self._state.improvements, outcome))
        return outcome

    @staticmethod
    def _failure_key(info: PodInfo) -> Hashable:
        """Return None for a pod whose chances also change in ways that `improvements` does not count."""
        needs = info.needs
        if info.claims or needs.affinity or needs.spread or info.nominated:
            return None
        return needs, info.key.namespace, frozenset(info.labels.items())

    def _search(self, info: PodInfo) -> Choice | Diagnosis:
        total = self._state.nodes.count
        volumes: VolumeCheck | None = None
        if info.claims and total:
            checked = self._volumes.check(info)
            if isinstance(checked, str):
                return Diagnosis(total, {}, checked)
            volumes = checked
        search = _Search(self._state, info, self._texts, volumes, self._random)
        if info.nominated and self._try_nominated(search, info):
            return self._choice(search.found[0], volumes)
        names = info.needs.selection.names if info.needs.selection is not None else None
        if names is None:
            self._check_groups(search)
        else:
            self._check_named(search, names)
        if not search.found:
            return Diagnosis(total, search.refused)
        return self._choice(self._pick(info, search), volumes)

    def _try_nominated(self, search: _Search, info: PodInfo) -> bool:
        """Try the node that the pod is nominated for."""
        node = self._state.nodes.get(info.nominated)
        if node is None or node.group is None or search.refuses(node, node.group) is not None:
            return False
        search.found.append(node)
        return True

    def _check_named(self, search: _Search, names: frozenset[str]) -> None:
        seen = 0
        for name in names:
            node = self._state.nodes.get(name)
            if node is not None and node.group is not None:
                seen += 1
                search.check_node(node, node.group)
        others = self._state.nodes.count - seen
        if others:
            search.refuse(self._texts.pinned_elsewhere if seen else NOT_SELECTED, others)

    def _check_groups(self, search: _Search) -> None:
        groups = self._state.nodes.groups
        count = len(groups)
        if not count:
            return
        each = max(2, _ENOUGH // count)
        start = self._next % count

        for offset in range(count):
            search.check_group(groups[(start + offset) % count], each)
            if len(search.found) >= _ENOUGH:
                self._next = start + offset + 1
                break

    def _pick(self, info: PodInfo, search: _Search) -> Node:
        scores = Scorers(self._state, info, search.found).total(search.rooms)
        best = max(scores)
        ties = [node for node, score in zip(search.found, scores, strict=True) if score == best]
        return ties[0] if len(ties) == 1 else self._random.choice(ties)

    @staticmethod
    def _choice(node: Node, volumes: VolumeCheck | None) -> Choice:
        return Choice(node, (volumes.choice(node) or NO_VOLUMES) if volumes is not None else NO_VOLUMES)

    def refuses(self, info: PodInfo, node: Node) -> Refusal | None:
        """Why one node refuses a pod, by all filters; for preemption, which changes the state in between."""
        if node.group is None:
            return NOT_SELECTED
        volumes = self._volumes.check(info) if info.claims else None
        if isinstance(volumes, str):
            return Refusal((volumes,), VOLUMES, True)
        return _Search(self._state, info, self._texts, volumes, self._random).refuses(node, node.group)

    def hopeful_nodes(self, info: PodInfo) -> list[Node]:
        """Nodes that refuse a pod only because of the pods that run there."""
        volumes = self._volumes.check(info) if info.claims else None
        if isinstance(volumes, str):
            return []
        search = _Search(self._state, info, self._texts, volumes, self._random)
        selection = info.needs.selection
        hopeful = []
        for node in self._state.nodes:
            if node.group is None or (selection is not None and selection.names and node.name not in selection.names):
                continue
            refusal = search.refuses(node, node.group)
            if refusal is not None and not refusal.final:
                hopeful.append(node)
        return hopeful

    def refuses_alone(self, info: PodInfo, node: Node) -> Refusal | None:
        """Why a node refuses a pod by its kind, name, ports and resources alone."""
        group = node.group
        if group is None:
            return NOT_SELECTED
        refusal = kind_refuses(info.needs, group.kind, self._texts)
        if refusal is None and depends_on_node(info.needs):
            refusal = node_refuses(info.needs, node)
        return refusal or group_lacks(info, group, self._texts)
