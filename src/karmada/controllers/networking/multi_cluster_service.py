"""MultiClusterServices of type CrossCluster: the Service of the same name goes to all clusters that provide or use it.

Each provider gets a marker (a suspended Work), from which collecting its EndpointSlices follows. The Service is
claimed: policies leave it alone, and its binding is written here, for the scheduler as any other.
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
from karmada.controllers.networking.carriers import MULTI_CLUSTER_SERVICES, Carriers
from karmada.controllers.networking.claims import Claims
from karmada.controllers.networking.exposure import (
    concerns,
    consumers,
    is_cross_cluster,
    participation_changed,
    problem_of,
    providers,
)
from karmada.controllers.networking.index import MARKER_KIND, NETWORKING, carriers, markers, service_of_marker, values
from karmada.controllers.networking.reports import Report, reported
from karmada.controllers.networking.serving import cluster_of
from karmada.controllers.works import Works
from karmada.kube.objects import meta
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvrs import SERVICES
from karmada.kube.objects.shapes import METADATA
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Enqueue, Reconciler, Result, Watch
from karmada.kube.runtime.events import WARNING
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.writes import add_finalizer, remove_finalizer

MULTI_CLUSTER_SERVICE: Final = "multiclusterservice-controller"
_REPORT: Final = Report("ServiceApplied", "SyncService", "Service is propagated to target clusters.")


def _service_keys(work: Obj) -> Iterable[Key]:
    service = service_of_marker(work)
    return () if service is None else (service,)


class MultiClusterServices(Reconciler):
    name = MULTI_CLUSTER_SERVICE

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._clock = context.clock
        self._recorder = context.recorder(self.name)
        self._services = context.informers.of(MultiClusterService.gvr)
        self._clusters = context.informers.of(Cluster.gvr)
        self._works = Works(context)
        self._markers = context.informers.of(Work.gvr, indexes={NETWORKING: values})
        self._carriers = Carriers(context, context.client)
        self._claims = Claims(context.client, context.clock)
        self.watches = (
            Watch(MultiClusterService.gvr, changed=("spec", "metadata.deletionTimestamp", "metadata.annotations")),
            Watch(SERVICES, shape=METADATA, map_to=self._of_service),
            Watch(Cluster.gvr, when=participation_changed, walk=self._requeue_of_cluster),
            Watch(
                Work.gvr,
                having=(traits_of_work, MARKER_KIND),
                changed=("spec", "metadata.labels", "metadata.deletionTimestamp"),
                map_to=_service_keys,
            ),
        )

    def _of_service(self, service: Obj) -> Iterable[Key]:
        key = Key(meta.namespace(service), meta.name(service))
        found = self._services.get(key)
        return (key,) if found is not None and is_cross_cluster(found) else ()

    async def _requeue_of_cluster(self, old: Obj | None, new: Obj | None, add: Enqueue) -> None:
        cluster = meta.name(new or old or {})
        async for service in self._services.scan():
            if is_cross_cluster(service) and concerns(service, cluster):
                add(key_of(service))

    async def reconcile(self, key: Key) -> Result:
        service = self._services.get(key)
        if service is None:
            await self._unmark(key, keep=set())  # markers that were written while it was deleted
            return Done
        if meta.is_deleting(service) or not is_cross_cluster(service):
            await self._retire(service)
            return Done
        sync = self._sync(service)
        await reported(_REPORT, service, sync, client=self._client, clock=self._clock, recorder=self._recorder)
        return Done

    # towards what is wanted

    async def _sync(self, service: Obj) -> bool:
        """Return whether anything was written."""
        finalized = await add_finalizer(
            self._client, MultiClusterService.gvr, service, well_known.MULTICLUSTER_SERVICE_FINALIZER
        )
        providing = providers(service, self._clusters)
        changed = finalized.outcome != "unchanged"
        for cluster in providing:
            changed |= await self._mark(service, cluster)
        await self._unmark(key_of(service), keep=set(providing))
        clusters = sorted({*providing, *consumers(service, self._clusters)})
        return await self._claims.claim(service, clusters) or changed

    async def _mark(self, service: Obj, cluster: str) -> bool:
        problem = problem_of("Provider", cluster, self._clusters, "MultiClusterService")
        if problem is not None:
            self._recorder.event(service, WARNING, *problem)
            return False
        labels = {
            well_known.MULTICLUSTER_SERVICE_ID: _id_of(service),
            well_known.MULTICLUSTER_SERVICE_NAMESPACE: meta.namespace(service),
            well_known.MULTICLUSTER_SERVICE_NAME: meta.name(service),
        }
        content = {field: value for field, value in service.items() if field != "status"}
        written = await self._works.ensure(cluster, content, labels=labels, finalizers=(), suspend_dispatching=True)
        return written.outcome != "unchanged"

    async def _unmark(self, service: Key, keep: set[str]) -> None:
        """Unmark providers that are none any more; what was collected there goes first."""
        for marker in self._markers.by_index(NETWORKING, markers(service)):
            cluster = cluster_of(marker)
            if cluster in keep:
                continue
            for carrier in self._markers.by_index(NETWORKING, carriers(MULTI_CLUSTER_SERVICES, service)):
                if cluster_of(carrier) == cluster:
                    await self._carriers.release(carrier, MULTI_CLUSTER_SERVICES)
            await self._works.delete(marker)

    async def _retire(self, service: Obj) -> None:
        """Leave the Service to policies again: it is being deleted, or has become another type."""
        if well_known.MULTICLUSTER_SERVICE_FINALIZER not in meta.finalizers(service):
            return
        what = "service work"
        try:
            await self._claims.release(service)
            what = "MultiClusterService work"
            await self._unmark(key_of(service), keep=set())
        except ApiError as error:
            self._recorder.event(service, WARNING, "SyncServiceFailed", f"failed to delete {what} :{error}")
            raise
        await remove_finalizer(
            self._client, MultiClusterService.gvr, service, well_known.MULTICLUSTER_SERVICE_FINALIZER
        )


def _id_of(service: Obj) -> str:
    return meta.labels(service).get(well_known.MULTICLUSTER_SERVICE_ID, "")
