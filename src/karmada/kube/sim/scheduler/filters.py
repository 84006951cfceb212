"""The filters of a single node: cordons, taints, selectors, host ports, resources.

What depends on a node's kind alone is computed once per kind and needs, and cached with the needs.
"""

from __future__ import annotations

from karmada.kube.sim.controllers.nodefit import NO_SCHEDULE, untolerated
from karmada.kube.sim.scheduler.messages import CORDONED, NOT_SELECTED, PORTS_TAKEN, Refusal, Texts
from karmada.kube.sim.scheduler.nodes import HARD, Group, Kind, Node
from karmada.kube.sim.scheduler.pods import Needs, PodInfo
from karmada.kube.sim.scheduler.resources import fits, shortage

_CORDON = ({"key": "node.kubernetes.io/unschedulable", "effect": NO_SCHEDULE},)
_MISSING = object()


def kind_refuses(needs: Needs, kind: Kind, texts: Texts) -> Refusal | None:
    """Return why nodes of a kind refuse a pod, by everything they have in common but their size."""
    known = needs.verdicts.get(kind, _MISSING)
    if known is _MISSING:
        verdict = _filter_kind(needs, kind, texts)
        needs.remember(kind, verdict)
        return verdict
    return known  # type: ignore[return-value]


def _filter_kind(needs: Needs, kind: Kind, texts: Texts) -> Refusal | None:
    if kind.unschedulable and untolerated(_CORDON, needs.tolerations, HARD) is not None:
        return CORDONED
    taint = untolerated(kind.hard_taints, needs.tolerations, HARD)
    if taint is not None:
        return texts.tainted(taint.get("key") or "", taint.get("value") or "")
    selection = needs.selection
    if selection is not None and not selection.depends_on_node and not selection.matches(kind.labels, ""):
        return NOT_SELECTED
    return None


def node_refuses(needs: Needs, node: Node) -> Refusal | None:
    """Return why a node refuses a pod by its own traits: its name, hostname and ports in use."""
    selection = needs.selection
    if selection is not None and selection.depends_on_node and not selection.matches(node.labels(), node.name):
        return NOT_SELECTED
    if node.ports and any(port.clashes(taken) for port in needs.ports for taken in node.ports):
        return PORTS_TAKEN
    return None


def depends_on_node(needs: Needs) -> bool:
    """Return whether `node_refuses` can refuse these needs."""
    return bool(needs.ports) or (needs.selection is not None and needs.selection.depends_on_node)


def group_lacks(info: PodInfo, group: Group, texts: Texts) -> Refusal | None:
    """Return the resources that are lacking on the nodes of a group."""
    request, usage = info.needs.request, group.usage_for(info)
    allocatable = group.kind.allocatable
    if fits(request, allocatable, usage):
        return None
    return shortage(request, allocatable, usage, oversized_is_final=texts.oversized_is_final)
