"""EndpointSlices that MultiClusterServices collected go to the clusters that use the Service.

Each carrier becomes a Work in every other cluster that uses the Service, where the EndpointSlice is attached to the
Service of the same name. That Work has the name of the carrier, unless other clusters may have an EndpointSlice of that
name too (see `copy_name`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from karmada.api import well_known
from karmada.api.cluster import Cluster
from karmada.api.networking import MultiClusterService
from karmada.api.work import Work
from karmada.controllers.context import Context
from karmada.controllers.indexes import traits_of_work
from karmada.controllers.networking.carriers import MULTI_CLUSTER_SERVICES, SERVICE_NAME, carried, service_of
from karmada.controllers.networking.exposure import consumers, is_cross_cluster, participation_changed, problem_of, uses
from karmada.controllers.networking.index import (
    NETWORKING,
    all_carriers_in,
    carrier_of,
    carriers,
    sent_for,
    sent_from,
    values,
)
from karmada.controllers.networking.reports import Report, reported
from karmada.controllers.networking.serving import carriers_of, cluster_of, siblings, usable
from karmada.controllers.works import Identity, Works, carries, identity_of, longer_name
from karmada.kube.objects import meta
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Enqueue, Reconciler, Result, Watch
from karmada.kube.runtime.events import WARNING
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.time_slice import in_slices
from karmada.kube.runtime.writes import remove_finalizer

ENDPOINT_SLICE_DISPATCH: Final = "endpointslice-dispatch-controller"
_REPORT: Final = Report("EndpointSliceDispatched", "DispatchEndpointSlice", "EndpointSlice are dispatched successfully")


class EndpointSliceDispatch(Reconciler):
    name = ENDPOINT_SLICE_DISPATCH
    workers = 3

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._clock = context.clock
        self._recorder = context.recorder(self.name)
        self._services = context.informers.of(MultiClusterService.gvr)
        self._clusters = context.informers.of(Cluster.gvr)
        self._writer = Works(context)
        self._works = context.informers.of(Work.gvr, indexes={NETWORKING: values})
        self.watches = (
            Watch(
                Work.gvr, having=(traits_of_work, well_known.ENDPOINT_SLICE_DISPATCH_FINALIZER), map_to=self._siblings
            ),
            Watch(Work.gvr, having=(traits_of_work, well_known.PROVISION_CLUSTER), map_to=carrier_of),
            Watch(MultiClusterService.gvr, changed=("spec", "metadata.deletionTimestamp"), map_to=self._of_service),
            Watch(Cluster.gvr, when=participation_changed, walk=self._requeue_of_cluster),
        )

    # events to keys

    def _siblings(self, work: Obj) -> Iterable[Key]:
        return siblings(self._works, MULTI_CLUSTER_SERVICES, work, self._clusters)

    def _of_service(self, service: Obj) -> Iterable[Key]:
        return self._works.keys_by_index(NETWORKING, carriers(MULTI_CLUSTER_SERVICES, key_of(service)))

    async def _requeue_of_cluster(self, old: Obj | None, new: Obj | None, add: Enqueue) -> None:
        """Enqueue the carriers of the services that this cluster uses or provides."""
        name = meta.name(new or old or {})
        async for service in self._services.scan():
            if is_cross_cluster(service) and uses(service, name):
                async for key in in_slices(self._of_service(service)):
                    add(key)
        async for carrier in in_slices(self._works.keys_by_index(NETWORKING, all_carriers_in(name))):
            work = self._works.get(carrier)
            for key in () if work is None else self._siblings(work):
                add(key)

    # reconcile

    async def reconcile(self, key: Key) -> Result:
        work = self._works.get(key)
        endpoint_slice = carried(work) if work is not None else None
        named = service_of(work, MULTI_CLUSTER_SERVICES) if work is not None else None
        if work is None or endpoint_slice is None or named is None or meta.is_deleting(work):
            for copy in self._works.by_index(
                NETWORKING, sent_from(key)
            ):  # also such as were written while it went away
                await self._delete(copy)
            if work is not None:
                await remove_finalizer(self._client, Work.gvr, work, well_known.ENDPOINT_SLICE_DISPATCH_FINALIZER)
            return Done
        service = self._services.get(named)
        if service is None or meta.is_deleting(service):
            return Done
        dispatch = self._dispatch(work, endpoint_slice, service)
        await reported(_REPORT, service, dispatch, client=self._client, clock=self._clock, recorder=self._recorder)
        return Done

    async def _dispatch(self, work: Obj, endpoint_slice: Obj, service: Obj) -> bool:
        """Return whether anything was written."""
        using, name = consumers(service, self._clusters), copy_name(endpoint_slice, work)
        others = carriers_of(self._works, MULTI_CLUSTER_SERVICES, key_of(service))
        sent = dispatched(usable(endpoint_slice, work, others, self._clusters), cluster_of(work), meta.name(service))
        changed = await self._delete_orphans(work, service, set(using), name, identity_of(sent))
        for cluster in using:
            if cluster != cluster_of(work):
                changed |= await self._send(cluster, sent, name, work, service)
        return changed

    async def _delete_orphans(self, work: Obj, service: Obj, using: set[str], name: str, sent: Identity) -> bool:
        """Delete copies in clusters that no longer use the service, and those of this carrier under another name."""
        there = self._works.keys_by_index(NETWORKING, sent_for(key_of(service)))
        orphans = {key for key in there if well_known.cluster_of_namespace(key.namespace) not in using}
        names = (name, longer_name(name, sent))
        for key in self._works.keys_by_index(NETWORKING, sent_from(key_of(work))):
            copy = None if key.name in names else self._works.get(key)
            if copy is not None and carries(copy, sent):
                orphans.add(key)
        for copy in map(self._works.get, orphans):
            if copy is not None:
                await self._delete(copy)
        return bool(orphans)

    async def _send(self, cluster: str, sent: Obj, name: str, work: Obj, service: Obj) -> bool:
        problem = problem_of("Consumer", cluster, self._clusters, "EndpointSlice")
        if problem is not None:
            self._recorder.event(service, WARNING, *problem)
            return False
        written = await self._writer.ensure(
            cluster,
            sent,
            name=name,
            labels={
                well_known.MULTICLUSTER_SERVICE_NAMESPACE: meta.namespace(service),
                well_known.MULTICLUSTER_SERVICE_NAME: meta.name(service),
            },
            annotations={well_known.PROVISION_CLUSTER: cluster_of(work)},
        )
        return written.outcome != "unchanged"

    async def _delete(self, work: Obj) -> None:
        await self._writer.delete(work)


def dispatched(endpoint_slice: Obj, source: str, service: str) -> Obj:
    """Return the EndpointSlice of a provider as other clusters get it."""
    return {
        **endpoint_slice,
        "metadata": {
            "namespace": meta.namespace(endpoint_slice),
            "name": f"{source}-{meta.name(endpoint_slice)}",
            "labels": {
                SERVICE_NAME: service,
                well_known.ENDPOINT_SLICE_MANAGED_BY: well_known.ENDPOINT_SLICE_DISPATCHER,
            },
            "annotations": {well_known.PROVISION_CLUSTER: source},
        },
    }


def copy_name(endpoint_slice: Obj, work: Obj) -> str:
    """Return the name of the Works that carry an EndpointSlice to other clusters.

    A generated name is that of one EndpointSlice in one cluster. Another may be the name of one in every cluster, each
    with a carrier of its own: their copies must neither be taken for each other nor for a carrier.
    """
    if endpoint_slice["metadata"].get("generateName"):
        return meta.name(work)
    name = f"{cluster_of(work)}-{meta.name(endpoint_slice)}"
    return well_known.work_name("EndpointSlice", name, meta.namespace(endpoint_slice))
