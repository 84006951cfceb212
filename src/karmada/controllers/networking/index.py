"""How the Works of this package are found: one index, which most Works are not in.

Three sorts of Works are: carriers, which hold an EndpointSlice of a member; markers, which hold a MultiClusterService
and have the EndpointSlices of its Service collected; and the Works that take an EndpointSlice to another cluster.
Beside them those of ServiceExports, of which only the cluster matters. The functions here give the values to look up.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from karmada.api import well_known
from karmada.api.multicluster import ServiceExport
from karmada.api.networking import MultiClusterService
from karmada.controllers.networking.carriers import FLOWS, SLICE_KIND, Flow, carried, service_of
from karmada.kube.objects import meta
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.cache import ignores_status
from karmada.kube.runtime.keys import Key

NETWORKING: Final = "networking"
"""The name of the index, of the informer of Works; `values` is its function."""
EXPORT_KIND: Final = ServiceExport.gvk.kind
MARKER_KIND: Final = MultiClusterService.gvk.kind
_KINDS: Final = (EXPORT_KIND, MARKER_KIND, SLICE_KIND)


def carriers(flow: Flow, service: Key) -> str:
    """Carriers of a service, in all clusters."""
    return f"carrier|{flow.token}|{service}"


def carriers_in(cluster: str, flow: Flow, service: Key | None = None) -> str:
    """Carriers in a cluster that a flow has for a service; None: for any."""
    return f"carrier|{flow.token}|{cluster}|{service or ''}"


def all_carriers_in(cluster: str) -> str:
    """Carriers in a cluster, of whatever flow."""
    return f"carrier||{cluster}"


def requirements(kind: str, cluster: str) -> str:
    """Works with a manifest of this kind in a cluster, unless they are being deleted."""
    return f"requirement|{kind}|{cluster}"


def markers(service: Key) -> str:
    """Markers of a service, in all clusters."""
    return f"marker|{service}"


def markers_in(cluster: str, service: Key) -> str:
    """Markers of a service in a cluster, unless they are being deleted."""
    return f"marker|{cluster}|{service}"


def sent_from(carrier: Key) -> str:
    """Works that take the EndpointSlice of a carrier to other clusters."""
    return f"sent|from|{carrier}"


def sent_for(service: Key) -> str:
    """Works that take EndpointSlices of a service to other clusters."""
    return f"sent|for|{service}"


@ignores_status
def values(work: Obj) -> Iterable[str]:
    """Return the values by which a Work is found; a plain function, as it runs for every change of every Work."""
    manifests = ((work.get("spec") or {}).get("workload") or {}).get("manifests") or ()
    found = [manifest.get("kind") for manifest in manifests if isinstance(manifest, dict)]
    kinds = [kind for kind in _KINDS if kind in found]
    annotations = work["metadata"].get("annotations") or {}
    if not kinds and well_known.PROVISION_CLUSTER not in annotations:
        return ()
    return [*_of_carrier(work), *_of_requirement(work, kinds), *_of_marker(work, kinds), *_of_sent(work)]


def applied_exports(work: Obj) -> Iterable[str]:
    """Return another index of Works: those of ServiceExports that were applied, by cluster."""
    manifests = ((work.get("spec") or {}).get("workload") or {}).get("manifests") or ()
    if EXPORT_KIND not in [manifest.get("kind") for manifest in manifests if isinstance(manifest, dict)]:
        return ()
    cluster = _cluster(work)
    applied = meta.has_condition((work.get("status") or {}).get("conditions"), "Applied")
    return (cluster,) if applied and cluster is not None and not meta.is_deleting(work) else ()


def is_marker(work: Obj) -> bool:
    """Return whether a Work holds a MultiClusterService, and so has its Service's EndpointSlices collected."""
    return holds(work, MARKER_KIND)


def holds(work: Obj, kind: str) -> bool:
    """Return whether a Work has a manifest of this kind."""
    manifests = ((work.get("spec") or {}).get("workload") or {}).get("manifests") or ()
    return any(isinstance(manifest, dict) and manifest.get("kind") == kind for manifest in manifests)


def _cluster(work: Obj) -> str | None:
    return well_known.cluster_of_namespace(meta.namespace(work))


def _of_carrier(work: Obj) -> Iterable[str]:
    if carried(work) is None:
        return
    cluster = _cluster(work)
    if cluster is not None:
        yield all_carriers_in(cluster)
    for flow in FLOWS:
        service = service_of(work, flow)
        if service is not None:
            yield carriers(flow, service)
            if cluster is not None:
                yield carriers_in(cluster, flow, service)
                yield carriers_in(cluster, flow)


def _of_requirement(work: Obj, kinds: Iterable[str]) -> Iterable[str]:
    cluster = _cluster(work)
    if cluster is not None and not meta.is_deleting(work):
        yield from (requirements(kind, cluster) for kind in kinds if kind != SLICE_KIND)


def service_of_marker(work: Obj) -> Key | None:
    """Return the service that a Work is a marker of."""
    labels = meta.labels(work)
    name = labels.get(well_known.MULTICLUSTER_SERVICE_NAME)
    return Key(labels.get(well_known.MULTICLUSTER_SERVICE_NAMESPACE, ""), name) if name and is_marker(work) else None


def _of_marker(work: Obj, kinds: Iterable[str]) -> Iterable[str]:
    service = service_of_marker(work) if MARKER_KIND in kinds else None
    if service is not None:
        yield markers(service)
        if not meta.is_deleting(work):
            yield markers_in(_cluster(work) or "", service)


def carrier_of(work: Obj) -> Iterable[Key]:
    """Return the carrier of a Work that takes its EndpointSlice to another cluster."""
    provider = meta.annotations(work).get(well_known.PROVISION_CLUSTER)
    manifests = ((work.get("spec") or {}).get("workload") or {}).get("manifests") or ()
    if not provider or not manifests:
        return ()
    sent = manifests[0]
    name = meta.name(sent).removeprefix(f"{provider}-")
    carrier = well_known.work_name("EndpointSlice", name, meta.namespace(sent))
    return (Key(well_known.execution_namespace(provider), carrier),)


def _of_sent(work: Obj) -> Iterable[str]:
    yield from map(sent_from, carrier_of(work))
    labels = meta.labels(work)
    name = labels.get(well_known.MULTICLUSTER_SERVICE_NAME)
    if name and meta.annotations(work).get(well_known.PROVISION_CLUSTER):
        yield sent_for(Key(labels.get(well_known.MULTICLUSTER_SERVICE_NAMESPACE, ""), name))
