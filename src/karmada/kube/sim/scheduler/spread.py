"""Topology spread: no domain may have many more matching pods than the emptiest one.

Only nodes the pod could use by their labels (and taints, when nodeTaintsPolicy says so) count, and only those that have
all the labels the constraints speak of. Domains without a single matching pod count as well, which is why the domains
come from the kinds of nodes and not from the pods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from karmada.kube.objects.node_selection import HOSTNAME
from karmada.kube.objects.types import Obj
from karmada.kube.sim.controllers.nodefit import NO_EXECUTE, NO_SCHEDULE, untolerated
from karmada.kube.sim.scheduler.affinity import selector_of
from karmada.kube.sim.scheduler.messages import NO_TOPOLOGY, SKEWED, Refusal
from karmada.kube.sim.scheduler.pods import Needs, PodInfo
from karmada.kube.sim.scheduler.tallies import PodSelection, TallyKey

if TYPE_CHECKING:
    from karmada.kube.sim.scheduler.nodes import Node
    from karmada.kube.sim.scheduler.state import ClusterState

REQUIRED, WISHED = "DoNotSchedule", "ScheduleAnyway"
_IGNORE, _HONOR = "Ignore", "Honor"
_HARD = (NO_SCHEDULE, NO_EXECUTE)


def constraints_of(needs: Needs, kind: str) -> list[Obj]:
    return [c for c in needs.spread if (c.get("whenUnsatisfiable") or REQUIRED) == kind]


class _Eligible:
    """Return whether a node's pods count for a constraint; answered once per kind of node where that is enough."""

    def __init__(self, needs: Needs, constraint: Obj, topology_keys: list[str]) -> None:
        self._selection = needs.selection if constraint.get("nodeAffinityPolicy") != _IGNORE else None
        self._tolerations = needs.tolerations if constraint.get("nodeTaintsPolicy") == _HONOR else None
        self._keys = topology_keys
        self._by_kind: dict[object, bool] = {}
        self.by_node = self._selection is not None and self._selection.depends_on_node

    def __call__(self, node: Node) -> bool:
        if self.by_node:
            return self._is_eligible(node)
        known = self._by_kind.get(node.kind)
        if known is None:
            known = self._by_kind[node.kind] = self._is_eligible(node)
        return known

    def _is_eligible(self, node: Node) -> bool:
        kind = node.kind
        if kind is None or any(node.label(key) is None for key in self._keys):
            return False
        if self._selection is not None and not self._selection.matches(node.labels(), node.name):
            return False
        return self._tolerations is None or untolerated(kind.hard_taints, self._tolerations, _HARD) is None


class SpreadRule:
    """One constraint with the counts of its domains."""

    def __init__(self, state: ClusterState, info: PodInfo, constraint: Obj, topology_keys: list[str]) -> None:
        self.topology_key: str = constraint["topologyKey"]
        self.max_skew: int = constraint.get("maxSkew") or 1
        selector = selector_of(constraint, info.labels)
        selection = PodSelection(selector, frozenset((info.key.namespace,)))
        tally = state.tallies.of(TallyKey((selection,), living=True))
        self.itself = 1 if selector.matches(info.labels) else 0
        self.counts: dict[str, int] = {}
        eligible = _Eligible(info.needs, constraint, topology_keys)
        empty_hosts = self._find_domains(state, eligible)
        for name, count in tally.nodes.items():
            node = state.nodes.get(name)
            if node is not None and eligible(node):
                value = node.label(self.topology_key) or ""
                if value not in self.counts:
                    empty_hosts -= 1
                self.counts[value] = self.counts.get(value, 0) + count
        known = len(self.counts) + empty_hosts
        fewest = 0 if empty_hosts > 0 else min(self.counts.values(), default=0)
        self.minimum = 0 if known < (constraint.get("minDomains") or 1) else fewest

    def _find_domains(self, state: ClusterState, eligible: _Eligible) -> int:
        """Enters every domain with 0; where each node is its own domain only their number is returned."""
        hosts = 0
        for group in state.nodes.groups:
            if eligible.by_node:
                nodes = [node for node in group.nodes if eligible(node)]
            else:
                nodes = group.nodes if eligible(group.nodes[0]) else []
            if self.topology_key == HOSTNAME:
                hosts += len(nodes)
            elif nodes:
                self.counts[nodes[0].label(self.topology_key) or ""] = 0
        return hosts

    def allows(self, value: str) -> bool:
        return self.counts.get(value, 0) + self.itself - self.minimum <= self.max_skew


class SpreadCheck:
    def __init__(self, state: ClusterState, info: PodInfo) -> None:
        constraints = constraints_of(info.needs, REQUIRED)
        keys = [constraint["topologyKey"] for constraint in constraints]
        self._rules = [SpreadRule(state, info, constraint, keys) for constraint in constraints]

    def __bool__(self) -> bool:
        return bool(self._rules)

    def refuses(self, node: Node) -> Refusal | None:
        for rule in self._rules:
            value = node.label(rule.topology_key)
            if value is None:
                return NO_TOPOLOGY
            if not rule.allows(value):
                return SKEWED
        return None


def wishes(state: ClusterState, info: PodInfo) -> list[SpreadRule]:
    """Return the constraints that only weigh."""
    return [SpreadRule(state, info, c, [c["topologyKey"]]) for c in constraints_of(info.needs, WISHED)]
