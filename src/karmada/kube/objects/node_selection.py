"""Which nodes a pod or a volume may be on by their labels and names: node selectors and node affinity terms.

Terms are alternatives, the expressions of a term must all hold. A term without expressions selects nothing. Besides
labels a term can name nodes (`matchFields` on metadata.name), which is how daemon pods are tied to their node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from karmada.kube.objects.selectors import EVERYTHING, NOTHING, LabelRequirement, LabelSelector
from karmada.kube.objects.types import Obj

HOSTNAME = "kubernetes.io/hostname"
_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!", "Gt": "gt", "Lt": "lt"}
_NAME = "metadata.name"
_NO_LABELS: dict[str, str] = {}


def _requirement(expression: Mapping[str, Any]) -> LabelRequirement:
    return LabelRequirement(
        expression["key"], _OPERATORS[expression["operator"]], tuple(sorted(expression.get("values") or ()))
    )


def _selector(expressions: Iterable[Mapping[str, Any]]) -> LabelSelector:
    """Return what cannot be compared selects nothing."""
    try:
        return LabelSelector([_requirement(expression) for expression in expressions])
    except (KeyError, ValueError, IndexError):
        return NOTHING


class Term:
    __slots__ = ("fields", "labels")

    def __init__(self, term: Mapping[str, Any]) -> None:
        expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
        self.labels = _selector(expressions) if expressions or fields else NOTHING
        self.fields = _selector(fields) if fields else EVERYTHING

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        return self.labels.matches(labels) and (self.fields is EVERYTHING or self.fields.matches({_NAME: name}))

    def names(self) -> set[str] | None:
        """Return the only nodes this term can select, where it names them."""
        found: set[str] | None = None
        for requirement in self.fields.requirements:
            if requirement.op == "in":
                named = set(requirement.values)
                found = named if found is None else found & named
        return found

    @property
    def depends_on_node(self) -> bool:
        """It can distinguish nodes that differ only in their hostname label."""
        return self.fields is not EVERYTHING or any(r.key == HOSTNAME for r in self.labels.requirements)


class NodeSelection:
    """A pod's `nodeSelector` and required node affinity, or a volume's."""

    __slots__ = ("_labels", "_terms", "depends_on_node", "names")

    def __init__(self, labels: Mapping[str, str] | None, required: Obj | None) -> None:
        pairs = [LabelRequirement(key, "=", (value,)) for key, value in (labels or _NO_LABELS).items()]
        self._labels = LabelSelector(pairs)
        self._terms = None if required is None else [Term(t) for t in required.get("nodeSelectorTerms") or ()]
        self.depends_on_node = any(pair.key == HOSTNAME for pair in pairs) or any(
            term.depends_on_node for term in self._terms or ()
        )
        self.names = self._names()

    def _names(self) -> frozenset[str] | None:
        """Return the only nodes that can be selected, if every term names some."""
        if not self._terms:
            return None
        found: set[str] = set()
        for term in self._terms:
            named = term.names()
            if named is None:
                return None
            found |= named
        return frozenset(found)

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        if not self._labels.matches(labels):
            return False
        return self._terms is None or any(term.matches(labels, name) for term in self._terms)


def selection_of(spec: Obj) -> NodeSelection | None:
    """Return the requirements of a pod on its node's labels and name; None when it has none."""
    node_affinity = ((spec.get("affinity") or {}).get("nodeAffinity")) or {}
    required = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if not spec.get("nodeSelector") and required is None:
        return None
    return NodeSelection(spec.get("nodeSelector"), required)


def preferences_of(spec: Obj) -> tuple[tuple[int, Term], ...]:
    node_affinity = ((spec.get("affinity") or {}).get("nodeAffinity")) or {}
    preferred = node_affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    return tuple((p.get("weight") or 0, Term(p.get("preference") or {})) for p in preferred)
