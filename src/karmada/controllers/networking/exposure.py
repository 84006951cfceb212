"""What a MultiClusterService says: whether it is for other clusters, and which ones provide and use its Service."""

from __future__ import annotations

from karmada.api.matching import api_enablement
from karmada.controllers.cluster_state import is_ready
from karmada.kube.objects import meta
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key

ENDPOINT_SLICE_KIND = GVK("discovery.k8s.io", "v1", "EndpointSlice")


def is_cross_cluster(service: Obj) -> bool:
    return "CrossCluster" in ((service.get("spec") or {}).get("types") or ())


def providers(service: Obj, clusters: Informer) -> list[str]:
    return _named(service, "providerClusters", clusters)


def consumers(service: Obj, clusters: Informer) -> list[str]:
    return _named(service, "consumerClusters", clusters)


def _named(service: Obj, field: str, clusters: Informer) -> list[str]:
    """In the order given; all clusters, by name, when none is."""
    names = [cluster["name"] for cluster in (service.get("spec") or {}).get(field) or ()]
    return list(dict.fromkeys(names)) or sorted(key.name for key in clusters.keys())  # noqa: SIM118 - no dict


def uses(service: Obj, cluster: str) -> bool:
    """Return whether a cluster is among the consumers of the service."""
    named = (service.get("spec") or {}).get("consumerClusters") or ()
    return not named or any(cluster == each["name"] for each in named)


def concerns(service: Obj, cluster: str) -> bool:
    """Return whether a change of this cluster may matter to the service."""
    spec = service.get("spec") or {}
    lists = [spec.get("providerClusters"), spec.get("consumerClusters")]
    return not all(lists) or any(cluster == each["name"] for named in lists for each in named or ())


def problem_of(role: str, cluster: str, clusters: Informer, what: str) -> tuple[str, str] | None:
    """Why a cluster is left out: the reason and the message of an event; None when it is not."""
    found = clusters.get(Key("", cluster))
    if found is None or meta.is_deleting(found):
        return "ClusterNotFound", f"{role} cluster {cluster} is not found"
    if not is_ready(found):
        return "SyncServiceFailed", f"{role} cluster {cluster} is not ready, skip to propagate {what}"
    if api_enablement(found, ENDPOINT_SLICE_KIND) == "APIDisabled":
        return "APIIncompatible", f"{role} cluster {cluster} does not support EndpointSlice"
    return None


def _participation(cluster: Obj) -> tuple[bool, bool, str]:
    return meta.is_deleting(cluster), is_ready(cluster), api_enablement(cluster, ENDPOINT_SLICE_KIND)


def participation_changed(old: Obj | None, new: Obj | None) -> bool:
    """Return whether a cluster came, went, or can take part otherwise than before; other conditions do not matter."""
    return old is None or new is None or _participation(old) != _participation(new)
