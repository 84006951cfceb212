"""Why pods stay unscheduled, in the words of kube-scheduler, which differ a little between versions.

A `Refusal` is the result of one filter for one node (or the whole cluster): the reasons of the message, the plugin (a
later change is matched against it), and whether removing pods from the node could change anything. Refusals are
counted, not kept per node: thousands of nodes usually have two or three of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

FIT: Final = "NodeResourcesFit"
PORTS: Final = "NodePorts"
NODE_AFFINITY: Final = "NodeAffinity"
TAINTS: Final = "TaintToleration"
UNSCHEDULABLE: Final = "NodeUnschedulable"
VOLUMES: Final = "VolumeBinding"
ONE_POD_VOLUMES: Final = "VolumeRestrictions"
SPREAD: Final = "PodTopologySpread"
AFFINITY: Final = "InterPodAffinity"
ANTI_AFFINITY: Final = "InterPodAntiAffinity"
NO_NODES: Final = "NoNodes"


class Refusal(NamedTuple):
    """`final`: taking pods away from the node would not help."""

    reasons: tuple[str, ...]
    plugin: str
    final: bool


NO_NODES_MESSAGE: Final = "no nodes available to schedule pods"
GATED_MESSAGE: Final = "Scheduling is blocked due to non-empty scheduling gates"
NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"
NEVER_PREEMPTS: Final = "not eligible due to preemptionPolicy=Never."
VICTIMS_ENDING: Final = "not eligible due to a terminating pod on the nominated node."

CORDONED: Final = Refusal(("node(s) were unschedulable",), UNSCHEDULABLE, True)
NOT_SELECTED: Final = Refusal(("node(s) didn't match Pod's node affinity/selector",), NODE_AFFINITY, True)
PORTS_TAKEN: Final = Refusal(("node(s) didn't have free ports for the requested pod ports",), PORTS, False)
AFFINITY_UNMET: Final = Refusal(("node(s) didn't match pod affinity rules",), AFFINITY, True)
ANTI_AFFINITY_UNMET: Final = Refusal(("node(s) didn't match pod anti-affinity rules",), ANTI_AFFINITY, False)
OTHERS_KEEP_AWAY: Final = Refusal(("node(s) didn't satisfy existing pods anti-affinity rules",), ANTI_AFFINITY, False)
SKEWED: Final = Refusal(("node(s) didn't match pod topology spread constraints",), SPREAD, False)
NO_TOPOLOGY: Final = Refusal(
    ("node(s) didn't match pod topology spread constraints (missing required label)",), SPREAD, True
)
NO_VOLUME: Final = Refusal(("node(s) didn't find available persistent volumes to bind",), VOLUMES, True)
NO_VOLUME_ZONE: Final = Refusal(("node(s) had no available volume zone",), VOLUMES, True)
VOLUME_GONE: Final = Refusal(
    ("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",), VOLUMES, True
)
VOLUME_OF_ONE_POD: Final = Refusal(
    ("node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode",),
    ONE_POD_VOLUMES,
    False,
)
UNBOUND_CLAIMS: Final = "pod has unbound immediate PersistentVolumeClaims"
NO_VICTIMS: Final = Refusal(("No preemption victims found for incoming pod",), FIT, False)

_TAINTS_UNNAMED = 35
_VOLUME_AFFINITY_RENAMED = 35
_PINNED_NAMED = 30
_OVERSIZED_FINAL = 32


class Texts:
    """The texts that depend on the cluster's version."""

    def __init__(self, minor: int) -> None:
        affinity = (
            "node(s) didn't match PersistentVolume's node affinity"
            if minor >= _VOLUME_AFFINITY_RENAMED
            else "node(s) had volume node affinity conflict"
        )
        self.volume_elsewhere = Refusal((affinity,), VOLUMES, True)
        self.pinned_elsewhere = (
            Refusal(("node(s) didn't satisfy plugin(s) [NodeAffinity]",), NODE_AFFINITY, True)
            if minor >= _PINNED_NAMED
            else NOT_SELECTED
        )
        self.oversized_is_final = minor >= _OVERSIZED_FINAL
        """A request larger than the whole node can never fit, whatever runs there."""
        self._named_taints = minor < _TAINTS_UNNAMED
        self._tainted: dict[str, Refusal] = {}

    def tainted(self, key: str, value: str) -> Refusal:
        text = f"node(s) had untolerated taint {{{key}: {value}}}" if self._named_taints else _UNNAMED_TAINT
        refusal = self._tainted.get(text)
        if refusal is None:
            refusal = self._tainted[text] = Refusal((text,), TAINTS, True)
        return refusal


_UNNAMED_TAINT = "node(s) had untolerated taint(s)"


def unavailable(total: int, refused: Mapping[Refusal, int]) -> str:
    """Return the text when all nodes refuse: the reasons with their counts, in the order of their texts."""
    counts: dict[str, int] = {}
    for refusal, nodes in refused.items():
        for reason in refusal.reasons:
            counts[reason] = counts.get(reason, 0) + nodes
    if not counts:
        return f"0/{total} nodes are available:"
    listed = ", ".join(sorted(f"{nodes} {reason}" for reason, nodes in counts.items()))
    return f"0/{total} nodes are available: {listed}."


def unavailable_at_all(total: int, why: str) -> str:
    """Return the text for a pod that no node was checked for, for a reason in the pod itself."""
    return f"0/{total} nodes are available: {why}."


def with_preemption(message: str, outcome: str) -> str:
    return f"{message} preemption: {outcome}"


def preempted_by(preemptor_uid: str, node: str) -> str:
    return f"Preempted by pod {preemptor_uid} on node {node}"


PREEMPTING: Final = "default-scheduler: preempting to accommodate a higher priority pod"


def assigned(namespace: str, name: str, node: str) -> str:
    return f"Successfully assigned {namespace}/{name} to {node}"
