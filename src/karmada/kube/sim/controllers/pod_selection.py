"""Pods by label selector, through the index of labels that the pods' informer has anyway."""

from __future__ import annotations

from karmada.kube.objects.gvrs import PODS
from karmada.kube.objects.selectors import LabelSelector
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.label_index import BY_LABEL, index_by_label, select


class PodSelection:
    def __init__(self, informers: Informers) -> None:
        self.pods: Informer = informers.of(PODS, indexes={BY_LABEL: index_by_label})

    def of(self, namespace: str, selector: LabelSelector) -> list[Obj]:
        return select(self.pods, namespace, selector)
