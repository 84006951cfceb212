"""What other clusters use of a cluster's EndpointSlice while that cluster does not answer.

Its endpoints may be gone, or only its API server: nobody knows. So they are not ready as long as another cluster serves
the same service, and stay in use when none does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from karmada.api import well_known
from karmada.controllers.cluster_state import is_ready
from karmada.controllers.networking.carriers import Flow, carried, service_of
from karmada.controllers.networking.index import NETWORKING, carriers
from karmada.kube.objects import meta
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key, key_of


def cluster_of(work: Obj) -> str:
    return well_known.cluster_of_namespace(meta.namespace(work)) or ""


def usable(endpoint_slice: Obj, work: Obj, siblings: Iterable[Obj], clusters: Informer) -> Obj:
    """Return the EndpointSlice of a carrier as others use it; `siblings` are all carriers of the same service."""
    source = cluster_of(work)
    if _answers(source, clusters):
        return endpoint_slice
    elsewhere = (other for other in siblings if cluster_of(other) != source)
    if not any(_answers(cluster_of(other), clusters) and _has_ready(carried(other)) for other in elsewhere):
        return endpoint_slice
    return {**endpoint_slice, "endpoints": [_not_ready(endpoint) for endpoint in endpoint_slice.get("endpoints") or ()]}


def carriers_of(works: Informer, flow: Flow, service: Key) -> Iterator[Obj]:
    """Return the carriers that a flow has of a service, each read (and parsed) only when it is its turn."""
    found = map(works.get, works.keys_by_index(NETWORKING, carriers(flow, service)))
    return (work for work in found if work is not None)


def siblings(works: Informer, flow: Flow, work: Obj, clusters: Informer) -> set[Key]:
    """Return a carrier, and those of the same service whose use depends on it: their clusters do not answer."""
    service = service_of(work, flow)
    others = () if service is None else works.keys_by_index(NETWORKING, carriers(flow, service))
    silent = (key for key in others if not _answers(well_known.cluster_of_namespace(key.namespace) or "", clusters))
    return {key_of(work), *silent}


def _answers(cluster: str, clusters: Informer) -> bool:
    found = clusters.get(Key("", cluster))
    return found is not None and is_ready(found)


def _has_ready(endpoint_slice: Obj | None) -> bool:
    endpoints = (endpoint_slice or {}).get("endpoints") or ()
    return any((endpoint.get("conditions") or {}).get("ready") is not False for endpoint in endpoints)


def _not_ready(endpoint: Obj) -> Obj:
    return {**endpoint, "conditions": {**(endpoint.get("conditions") or {}), "ready": False, "serving": False}}
