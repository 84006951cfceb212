"""Whether a pod may run on a node, by name, labels and taints; resources are not considered.

This is the part of scheduling that a DaemonSet must know, too: it makes pods only for nodes that can take them, and
takes them back from nodes that cannot any more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from karmada.kube.objects.types import Obj

NO_SCHEDULE, NO_EXECUTE = "NoSchedule", "NoExecute"
_KEEPING_OUT = frozenset((NO_SCHEDULE, NO_EXECUTE))
_DRIVING_OUT = frozenset((NO_EXECUTE,))


class Fit(NamedTuple):
    """`run`: a new pod may start here; `stay`: one that is here may go on."""

    run: bool
    stay: bool


_YES, _STAY, _NO = Fit(True, True), Fit(False, True), Fit(False, False)


def fit(pod_spec: Obj, tolerations: Collection[Obj], node: Obj) -> Fit:
    """`tolerations` replaces the spec's own, for callers that add some."""
    if not matches_node(pod_spec, node):
        return _NO
    taints = (node.get("spec") or {}).get("taints")
    if not taints or untolerated(taints, tolerations, _KEEPING_OUT) is None:
        return _YES
    return _STAY if untolerated(taints, tolerations, _DRIVING_OUT) is None else _NO


def matches_node(pod_spec: Obj, node: Obj) -> bool:
    """Return whether the node is the one the spec names, if any, and matches its selector and required affinity."""
    metadata = node["metadata"]
    if pod_spec.get("nodeName") not in (None, "", metadata["name"]):
        return False
    labels = metadata.get("labels") or {}
    if any(labels.get(key) != value for key, value in (pod_spec.get("nodeSelector") or {}).items()):
        return False
    affinity = (pod_spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    return any(matches_term(term, node) for term in required.get("nodeSelectorTerms") or ())


def matches_term(term: Obj, node: Obj) -> bool:
    """Return whether all expressions of a node selector term hold; a term that says nothing holds for no node."""
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    labels = node["metadata"].get("labels") or {}
    names = {"metadata.name": node["metadata"]["name"]}
    return all(_holds(e, labels) for e in expressions) and all(_holds(f, names) for f in fields)


def _holds(expression: Obj, labels: Mapping[str, str]) -> bool:
    operator, values = expression["operator"], expression.get("values") or ()
    value = labels.get(expression["key"])
    match operator:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    number, bound = _whole(value), _whole(values[0] if values else None)
    if number is None or bound is None:
        return False
    return number > bound if operator == "Gt" else number < bound


def _whole(text: str | None) -> int | None:
    try:
        return int(text) if text is not None else None
    except ValueError:
        return None


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
