"""The filters that keep resources together or apart, by the groups their bindings are in.

With affinity a resource goes only where every other member of its group is that is anywhere; the first may go anywhere.
With anti-affinity it goes where no other member is. Only bindings of the same namespace count. Where a resource is
already, it stays.
"""

from __future__ import annotations

from collections.abc import Iterator

from karmada.api.well_known import binding_name
from karmada.kube.objects import meta
from karmada.kube.objects.types import Obj
from karmada.scheduler.filters.protocol import Refusal
from karmada.scheduler.request import Peers, Request

NOT_TOGETHER = "ResourceBinding with the same affinity group does not target this cluster"
NOT_APART = "cluster already has workload with the same anti-affinity group"
NO_PEERS = "ResourceBindingIndexer is nil"
NOT_LISTED = "failed to list ResourceBindings"
NOT_COMPARED = "failed to compare resource versions for ResourceBinding"

AFFINITY, ANTI_AFFINITY = "affinityGroup", "antiAffinityGroup"


class NotComparable(ValueError):
    """A resourceVersion that is not a number."""


class NotListed(Exception):
    """The bindings of a group cannot be found."""


def _group(spec: Obj, which: str) -> str:
    return (spec.get("workloadAffinityGroups") or {}).get(which) or ""


def members(request: Request, peers: Peers, which: str) -> Iterator[tuple[Obj, set[str]]]:
    """Yield every other member of the request's group, and the clusters it is in."""
    resource = request.resource
    group, namespace = _group(request.spec, which), resource.get("namespace") or ""
    own = binding_name(resource.get("kind") or "", resource.get("name") or "")
    for binding in peers.affinity(group) if which == AFFINITY else peers.anti_affinity(group):
        spec = binding.get("spec") or {}
        if meta.namespace(binding) == namespace and meta.name(binding) != own and _group(spec, which) == group:
            yield binding, {target["name"] for target in spec.get("clusters") or ()}


class WorkloadAffinity:
    name = "WorkloadAffinity"
    spares_targets = True

    def refusal(self, request: Request) -> Refusal | None:
        group = _group(request.spec, AFFINITY)
        if not group:
            return None
        if request.peers is None:
            return Refusal(NO_PEERS, (), others=True)
        try:
            others = [clusters for _, clusters in members(request, request.peers, AFFINITY) if clusters]
        except (NotComparable, NotListed) as wrong:
            return _failed(wrong)
        return Refusal(NOT_TOGETHER, set.intersection(*others), others=True) if others else None


class WorkloadAntiAffinity:
    name = "WorkloadAntiAffinity"
    spares_targets = True

    def refusal(self, request: Request) -> Refusal | None:
        group = _group(request.spec, ANTI_AFFINITY)
        if not group:
            return None
        if request.peers is None:
            return Refusal(NO_PEERS, (), others=True)
        try:
            taken = set().union(*(clusters for _, clusters in members(request, request.peers, ANTI_AFFINITY)))
        except (NotComparable, NotListed) as wrong:
            return _failed(wrong)
        return Refusal(NOT_APART, taken) if taken else None


def _failed(wrong: Exception) -> Refusal:
    return Refusal(NOT_COMPARED if isinstance(wrong, NotComparable) else NOT_LISTED, (), others=True)
