"""Pods that must be near others, or must not: required pod affinity and anti-affinity.

A topology key splits the nodes into domains (the nodes with the same value of that label); a term applies to the domain
of a node. The terms of a pod are evaluated once per decision, as sets of good and bad domains; checking a node is then
a few dict look-ups. Anti-affinity works in both directions, so the terms of pods that run already are
kept by term, not by pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from karmada.kube.objects.selectors import EVERYTHING, NOTHING, LabelRequirement, LabelSelector, labels_from
from karmada.kube.objects.types import Obj
from karmada.kube.sim.scheduler.messages import AFFINITY_UNMET, ANTI_AFFINITY_UNMET, OTHERS_KEEP_AWAY, Refusal
from karmada.kube.sim.scheduler.pods import PodInfo
from karmada.kube.sim.scheduler.tallies import PodSelection, Tally, TallyKey

if TYPE_CHECKING:
    from karmada.kube.sim.scheduler.nodes import Node, NodeTable
    from karmada.kube.sim.scheduler.state import ClusterState


class AffinityTerm(NamedTuple):
    topology_key: str
    pods: PodSelection


def selector_of(raw: Mapping[str, Any], labels: Mapping[str, str]) -> LabelSelector:
    """Return a term's label selector, with the values that the pod itself has for the keys the term wants (un)equal."""
    try:
        selector = labels_from(raw.get("labelSelector"))
    except ValueError:
        return NOTHING
    extra = [
        LabelRequirement(key, op, (labels[key],))
        for field, op in (("matchLabelKeys", "in"), ("mismatchLabelKeys", "notin"))
        for key in raw.get(field) or ()
        if key in labels
    ]
    if not extra or selector.nothing:
        return selector
    return LabelSelector([*selector.requirements, *(e for e in extra if e not in selector.requirements)])


def _term(raw: Obj, info: PodInfo) -> AffinityTerm:
    namespaces = frozenset(raw.get("namespaces") or ())
    wanted = raw.get("namespaceSelector")
    by_labels = None
    if wanted is not None:
        try:
            by_labels = labels_from(wanted) if wanted else EVERYTHING
        except ValueError:
            by_labels = NOTHING
    elif not namespaces:
        namespaces = frozenset((info.key.namespace,))
    return AffinityTerm(raw["topologyKey"], PodSelection(selector_of(raw, info.labels), namespaces, by_labels))


def terms_of(raw: Iterable[Obj], info: PodInfo) -> tuple[AffinityTerm, ...]:
    return tuple(_term(each, info) for each in raw)


def anti_affinity_of(info: PodInfo) -> tuple[AffinityTerm, ...]:
    return terms_of(info.needs.anti_affinity, info)


def domains(nodes: NodeTable, counts: Mapping[str, int], topology_key: str) -> dict[str, int]:
    """Return counts by node, added up by domain."""
    found: dict[str, int] = {}
    for name, count in counts.items():
        node = nodes.get(name)
        value = node.label(topology_key) if node is not None else None
        if value is not None:
            found[value] = found.get(value, 0) + count
    return found


class PodAffinityCheck:
    """The filter for required (anti-)affinity of one pod."""

    def __init__(self, state: ClusterState, info: PodInfo) -> None:
        self._wanted: list[tuple[str, dict[str, int]]] = []
        self._unwanted: list[tuple[str, dict[str, int]]] = []
        self._kept_away: list[tuple[str, dict[str, int]]] = []
        self._alone = False
        if info.needs.affinity:
            self._want(state, info)
        for term in anti_affinity_of(info) if info.needs.anti_affinity else ():
            tally = state.tallies.of(TallyKey((term.pods,)))
            self._add(self._unwanted, state, term.topology_key, tally.nodes)
        for term, counts in state.keeping_away.items():
            if term.pods.matches(info, state.namespace_labels):
                self._add(self._kept_away, state, term.topology_key, counts)

    def _want(self, state: ClusterState, info: PodInfo) -> None:
        """Pods count when they match all terms. The first pod of a set with affinity to itself may go anywhere."""
        terms = terms_of(info.needs.affinity, info)
        tally: Tally = state.tallies.of(TallyKey(tuple(term.pods for term in terms)))
        self._wanted = [(term.topology_key, domains(state.nodes, tally.nodes, term.topology_key)) for term in terms]
        if not any(counts for _, counts in self._wanted):
            self._alone = all(term.pods.matches(info, state.namespace_labels) for term in terms)

    @staticmethod
    def _add(
        rules: list[tuple[str, dict[str, int]]], state: ClusterState, topology_key: str, counts: Mapping[str, int]
    ) -> None:
        found = domains(state.nodes, counts, topology_key)
        if found:
            rules.append((topology_key, found))

    def __bool__(self) -> bool:
        """Return whether some node may be refused."""
        return bool(self._wanted or self._unwanted or self._kept_away)

    def refuses(self, node: Node) -> Refusal | None:
        for topology_key, found in self._wanted:
            value = node.label(topology_key)
            if value is None or (value not in found and not self._alone):
                return AFFINITY_UNMET
        for topology_key, found in self._unwanted:
            if node.label(topology_key) in found:
                return ANTI_AFFINITY_UNMET
        for topology_key, found in self._kept_away:
            if node.label(topology_key) in found:
                return OTHERS_KEEP_AWAY
        return None


def company(state: ClusterState, info: PodInfo) -> list[tuple[str, dict[str, int]]]:
    """For preferred (anti-)affinity: a topology key and the weight that being in each domain has."""
    found = []
    for weight, raw in info.needs.preferred_pods:
        term = _term(raw, info)
        tally = state.tallies.of(TallyKey((term.pods,)))
        by_domain = domains(state.nodes, tally.nodes, term.topology_key)
        if by_domain:
            found.append((term.topology_key, {value: weight * count for value, count in by_domain.items()}))
    return found
