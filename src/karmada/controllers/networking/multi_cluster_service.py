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
from karmada.controllers.networking.carriers import MULTI_CLUSTER_SERVICES, OFFERED, SERVICE_INDEXES, Carriers
from karmada.controllers.networking.claims import Claims
from karmada.controllers.networking.endpointslice_collect import is_marker
from karmada.controllers.networking.exposure import (
    concerns,
    consumers,
    is_cross_cluster,
    participation_changed,
    problem_of,
    providers,
)
from karmada.controllers.networking.reports import Report, reported
from karmada.controllers.networking.serving import cluster_of
from karmada.controllers.works import Works
from karmada.kube.objects import meta
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.shapes import METADATA
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.cache import ignores_status
from karmada.kube.runtime.controller import Done, Enqueue, Reconciler, Result, Watch
from karmada.kube.runtime.events import WARNING
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.predicates import any_of, deletion_changed, labels_changed, spec_changed
from karmada.kube.runtime.writes import add_finalizer, remove_finalizer

MULTI_CLUSTER_SERVICE: Final = "multiclusterservice-controller"
SERVICES: Final = GVR("", "v1", "services")
_REPORT: Final = Report("ServiceApplied", "SyncService", "Service is propagated to target clusters.")
_MADE_FOR: Final = "MultiClusterService/made-for"


def _service_of_marker(work: Obj) -> Iterable[Key]:
    labels = meta.labels(work)
    name = labels.get(well_known.MULTICLUSTER_SERVICE_NAME)
    return (Key(labels.get(well_known.MULTICLUSTER_SERVICE_NAMESPACE, ""), name),) if name and is_marker(work) else ()


@ignores_status
def _made_for(work: Obj) -> Iterable[str]:
    return map(str, _service_of_marker(work))


def _marks_otherwise(old: Obj | None, new: Obj | None) -> bool:
    """Return whether a marker came, went or was changed: by others too, who may have to be corrected."""
    found = [work for work in (old, new) if work is not None and is_marker(work)]
    return bool(found) and any_of(spec_changed, labels_changed, deletion_changed)(old, new)


class MultiClusterServices(Reconciler):
    name = MULTI_CLUSTER_SERVICE

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._clock = context.clock
        self._recorder = context.recorder(self.name)
        self._services = context.informers.of(MultiClusterService.gvr)
        self._clusters = context.informers.of(Cluster.gvr)
        self._works = Works(context)
        self._markers = context.informers.of(Work.gvr, indexes={_MADE_FOR: _made_for, **SERVICE_INDEXES})
        self._carriers = Carriers(context, context.client)
        self._claims = Claims(context.client, context.clock)
        self.watches = (
            Watch(MultiClusterService.gvr, when=any_of(spec_changed, deletion_changed, _annotations_changed)),
            Watch(SERVICES, shape=METADATA, map_to=self._of_service),
            Watch(Cluster.gvr, when=participation_changed, walk=self._requeue_of_cluster),
            Watch(Work.gvr, when=_marks_otherwise, map_to=_service_of_marker),
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
        for marker in self._markers.by_index(_MADE_FOR, str(service)):
            cluster = cluster_of(marker)
            if cluster in keep:
                continue
            for carrier in self._markers.by_index(OFFERED, str(service)):
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


def _annotations_changed(old: Obj | None, new: Obj | None) -> bool:
    return old is not None and new is not None and meta.annotations(old) != meta.annotations(new)


def _id_of(service: Obj) -> str:
    return meta.labels(service).get(well_known.MULTICLUSTER_SERVICE_ID, "")
