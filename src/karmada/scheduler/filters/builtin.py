"""The filters by kinds that a cluster serves, taints, affinity, and where it says it is; and of evictions."""

from __future__ import annotations

from collections.abc import Hashable

from karmada.api.matching import api_enablement, cluster_matches
from karmada.api.taints import is_tolerated, taint_text
from karmada.api.well_known import NO_EXECUTE, NO_SCHEDULE
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj
from karmada.scheduler.filters.protocol import PASSES, Refusal
from karmada.scheduler.fleet import Facet
from karmada.scheduler.request import Request

NO_API = "cluster(s) did not have the API resource"
NO_AFFINITY = "cluster(s) did not match the placement cluster affinity constraint"
_EFFECTS = (NO_SCHEDULE, NO_EXECUTE)
PROPERTIES = {"provider": "provider", "region": "region", "zone": "zones"}
"""The field of a Cluster's spec for each field that clusters can be spread by."""


class ApiEnablement:
    """The cluster serves the kind."""

    name = "APIEnablement"
    spares_targets = True
    facet = Facet.APIS

    def key(self, request: Request) -> Hashable:
        return request.resource.get("apiVersion"), request.resource.get("kind")

    def check(self, request: Request, cluster: Obj) -> str:
        gvk = GVK.parse(request.resource.get("apiVersion") or "", request.resource.get("kind") or "")
        return PASSES if api_enablement(cluster, gvk) == "APIEnabled" else NO_API


class TaintToleration:
    """Every taint that keeps resources away is tolerated."""

    name = "TaintToleration"
    spares_targets = True
    facet = Facet.FACTS

    def key(self, request: Request) -> Hashable:
        return request.plan.tolerations_key

    def check(self, request: Request, cluster: Obj) -> str:
        for taint in (cluster.get("spec") or {}).get("taints") or ():
            if taint.get("effect") in _EFFECTS and not is_tolerated(taint, request.plan.tolerations):
                return f"cluster(s) had untolerated taint {{{taint_text(taint)}}}"
        return PASSES


class ClusterAffinity:
    """An affinity of the placement selects the cluster."""

    name = "ClusterAffinity"
    spares_targets = False
    facet = Facet.FACTS

    def key(self, request: Request) -> Hashable:
        if request.plan.affinity is not None:
            return request.plan.key
        return (request.plan.key, request.affinity_name, request.is_workload) if request.term is not None else b""

    def check(self, request: Request, cluster: Obj) -> str:
        affinities = request.affinities()
        if not affinities or any(cluster_matches(affinity, cluster) for affinity in affinities):
            return PASSES
        return NO_AFFINITY


class SpreadConstraint:
    """The cluster has what it is grouped by."""

    name = "SpreadConstraint"
    spares_targets = False
    facet = Facet.FACTS

    def key(self, request: Request) -> Hashable:
        return request.plan.fields

    def check(self, request: Request, cluster: Obj) -> str:
        spec = cluster.get("spec") or {}
        for field in request.plan.fields:
            wanted = PROPERTIES.get(field)
            if wanted is not None and not spec.get(wanted):
                return f"cluster(s) did not have {wanted} property"
        return PASSES


EVICTED = "cluster(s) is in the process of eviction"


class ClusterEviction:
    """The resource is not being evicted from the cluster."""

    name = "ClusterEviction"
    spares_targets = False

    def refusal(self, request: Request) -> Refusal | None:
        return Refusal(EVICTED, request.evicted) if request.evicted else None
