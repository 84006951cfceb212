"""Pods by label selector, through the index of labels that the pods' informer has anyway."""

from __future__ import annotations

from karmada.kube.objects.selectors import LabelSelector
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.informers import Informers
from karmada.kube.sim.controllers.podcontrol import PODS
from karmada.kube.sim.controllers.service_pods import index_by_label

BY_LABEL = "label"


class PodSelection:
    def __init__(self, informers: Informers) -> None:
        self.pods: Informer = informers.of(PODS, indexes={BY_LABEL: index_by_label})

    def of(self, namespace: str, selector: LabelSelector) -> list[Obj]:
        """The pods of a namespace that match; of several equalities the one that fewest pods have is looked up."""
        if selector.nothing:
            return []
        pairs = [self.pods.by_index(BY_LABEL, f"{namespace}/{key}={value}") for key, value in selector.equalities]
        candidates = min(pairs, key=len) if pairs else self.pods.list(namespace)
        return [pod for pod in candidates if selector.matches(pod["metadata"].get("labels"))]
