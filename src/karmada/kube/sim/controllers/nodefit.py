"""Whether a pod may run on a node, by name, labels and taints; resources are not considered.

This is the part of scheduling that a DaemonSet must know, too: it makes pods only for nodes that can take them, and
takes them back from nodes that cannot any more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from karmada.kube.objects.node_selection import NodeSelection
from karmada.kube.objects.types import Obj

NO_SCHEDULE, NO_EXECUTE = "NoSchedule", "NoExecute"
_KEEPING_OUT = frozenset((NO_SCHEDULE, NO_EXECUTE))
_DRIVING_OUT = frozenset((NO_EXECUTE,))


class Fit(NamedTuple):
    """`run`: a new pod may start here; `stay`: one that is here may go on."""

    run: bool
    stay: bool


_YES, _STAY, _NO = Fit(True, True), Fit(False, True), Fit(False, False)


def fit(pod_spec: Obj, selection: NodeSelection | None, tolerations: Collection[Obj], node: Obj) -> Fit:
    """Return where the node stands for a pod of this spec.

    `selection` is that of the spec; `tolerations` replaces its own, for callers that add some.
    """
    if not matches_node(pod_spec, selection, node):
        return _NO
    taints = (node.get("spec") or {}).get("taints")
    if not taints or untolerated(taints, tolerations, _KEEPING_OUT) is None:
        return _YES
    return _STAY if untolerated(taints, tolerations, _DRIVING_OUT) is None else _NO


def matches_node(pod_spec: Obj, selection: NodeSelection | None, node: Obj) -> bool:
    """Return whether the node is the one the spec names, if any, and the spec's `selection` has it."""
    metadata = node["metadata"]
    if pod_spec.get("nodeName") not in (None, "", metadata["name"]):
        return False
    return selection is None or selection.matches(metadata.get("labels") or {}, metadata["name"])


def untolerated(taints: Iterable[Obj], tolerations: Collection[Obj], effects: Collection[str]) -> Obj | None:
    """Return the first taint with one of these effects that nothing tolerates."""
    for taint in taints:
        if taint["effect"] in effects and not any(tolerates(toleration, taint) for toleration in tolerations):
            return taint
    return None


def tolerates(toleration: Obj, taint: Obj) -> bool:
    """Return whether a taint is tolerated: no effect means every effect; no key, with Exists, every key."""
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    key = toleration.get("key") or ""
    if key and key != taint["key"]:
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Exists":
        return True
    return bool(key) and operator == "Equal" and (toleration.get("value") or "") == (taint.get("value") or "")
