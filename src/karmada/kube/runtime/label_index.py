"""Objects by label selector, through an index of their labels: none is looked at that cannot match."""

from __future__ import annotations

from collections.abc import Iterable

from karmada.kube.objects.selectors import LabelSelector
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer

BY_LABEL = "label"


def index_by_label(obj: Obj) -> Iterable[str]:
    metadata = obj["metadata"]
    namespace, labels = metadata.get("namespace", ""), metadata.get("labels")
    return [f"{namespace}/{key}={value}" for key, value in labels.items()] if labels else ()


def select(informer: Informer, namespace: str, selector: LabelSelector) -> list[Obj]:
    """Return the objects of a namespace that match; the equality that fewest objects have is looked up.

    The informer must have `index_by_label` as its index `BY_LABEL`.
    """
    if selector.nothing:
        return []
    pairs = [informer.by_index(BY_LABEL, f"{namespace}/{key}={value}") for key, value in selector.equalities]
    candidates = min(pairs, key=len) if pairs else informer.list(namespace)
    return [obj for obj in candidates if selector.matches(obj["metadata"].get("labels"))]
