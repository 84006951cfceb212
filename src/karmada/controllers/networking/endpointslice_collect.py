"""MultiClusterServices: the EndpointSlices of a Service are collected from the clusters that provide it.

Which clusters do, the control plane says with a suspended Work that holds the MultiClusterService.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from karmada.api.networking import MultiClusterService
from karmada.controllers.networking.carriers import MULTI_CLUSTER_SERVICES, has_manifest
from karmada.controllers.networking.collector import Collector
from karmada.controllers.networking.serving import cluster_of
from karmada.kube.objects import meta
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.cache import ignores_status
from karmada.kube.runtime.keys import Key

ENDPOINT_SLICE_COLLECT: Final = "endpointslice-collect-controller"
MARKED: Final = "MultiClusterService/marked"
_KIND: Final = MultiClusterService.gvk.kind


def is_marker(work: Obj) -> bool:
    """Return whether a Work holds a MultiClusterService, and so has its Service's EndpointSlices collected."""
    return has_manifest(work, _KIND)


@ignores_status
def marked_service(work: Obj) -> Iterable[str]:
    """Return an index of Works: cluster and service of markers."""
    if not is_marker(work) or meta.is_deleting(work):
        return ()
    labels, flow = meta.labels(work), MULTI_CLUSTER_SERVICES
    return (str(Key(cluster_of(work), f"{labels.get(flow.namespace_label)}/{labels.get(flow.name_label)}")),)


class EndpointSliceCollect(Collector):
    name = ENDPOINT_SLICE_COLLECT
    options = replace(Collector.options, queue_name="endpointslice-collect")
    flow = MULTI_CLUSTER_SERVICES
    more_indexes = {MARKED: marked_service}  # noqa: RUF012 - of the class, like its name

    def requires_slices(self, work: Obj) -> bool:
        return is_marker(work) and not meta.is_deleting(work)

    def services_named(self, work: Obj) -> Iterable[Key]:
        labels = meta.labels(work)
        name = labels.get(self.flow.name_label)
        return (Key(labels.get(self.flow.namespace_label, ""), name),) if name else ()

    def is_wanted(self, cluster: str, service: Key) -> bool:
        return bool(self.works.keys_by_index(MARKED, str(Key(cluster, str(service)))))
