"""MultiClusterServices: the EndpointSlices of a Service are collected from the clusters that provide it.

Which clusters do, the control plane says with a suspended Work that holds the MultiClusterService.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from karmada.controllers.networking.carriers import MULTI_CLUSTER_SERVICES
from karmada.controllers.networking.collector import Collector
from karmada.controllers.networking.index import MARKER_KIND, NETWORKING, markers_in
from karmada.kube.objects import meta
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key

ENDPOINT_SLICE_COLLECT: Final = "endpointslice-collect-controller"


class EndpointSliceCollect(Collector):
    name = ENDPOINT_SLICE_COLLECT
    options = replace(Collector.options, queue_name="endpointslice-collect")
    flow = MULTI_CLUSTER_SERVICES
    kind = MARKER_KIND

    def services_named(self, work: Obj) -> Iterable[Key]:
        labels = meta.labels(work)
        name = labels.get(self.flow.name_label)
        return (Key(labels.get(self.flow.namespace_label, ""), name),) if name else ()

    def is_wanted(self, cluster: str, service: Key) -> bool:
        return bool(self.works.keys_by_index(NETWORKING, markers_in(cluster, service)))
