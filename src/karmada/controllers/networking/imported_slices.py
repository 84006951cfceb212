"""EndpointSlices that ServiceExports collected become EndpointSlices of the control plane, behind the derived Service.

From there they are propagated as any other resource, to the clusters that import the service.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from karmada.api import well_known
from karmada.api.cluster import Cluster
from karmada.api.work import Work
from karmada.controllers.context import Context
from karmada.controllers.indexes import traits_of_work
from karmada.controllers.networking.carriers import EXPORTS, SERVICE_NAME, carried, service_of
from karmada.controllers.networking.exposure import participation_changed
from karmada.controllers.networking.index import NETWORKING, all_carriers_in, values
from karmada.controllers.networking.serving import carriers_of, siblings, usable
from karmada.kube.objects import meta
from karmada.kube.objects.gvrs import SLICES
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Enqueue, Reconciler, Result, Watch
from karmada.kube.runtime.converge import ResourceWriter
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.time_slice import in_slices
from karmada.kube.runtime.writes import delete_if_exists, remove_finalizer

ENDPOINT_SLICE: Final = "endpointslice-controller"
_MADE_HERE: Final = f"{well_known.ENDPOINT_SLICE_MANAGED_BY}={well_known.ENDPOINT_SLICE_CONTROLLER}"
_BY_WORK: Final = "work"
_CONTENT: Final[tuple[str, ...]] = ("addressType", "endpoints", "ports")


class ImportedSlices(Reconciler):
    name = ENDPOINT_SLICE
    workers = 3

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._works = context.informers.of(Work.gvr, indexes={NETWORKING: values})
        self._clusters = context.informers.of(Cluster.gvr)
        self._slices = context.informers.of(SLICES, label_selector=_MADE_HERE, indexes={_BY_WORK: _works_of_slice})
        self._writer = ResourceWriter(context.client, SLICES, self._slices)
        self.watches = (
            Watch(Work.gvr, having=(traits_of_work, well_known.ENDPOINT_SLICE_FINALIZER), map_to=self._siblings),
            Watch(Work.gvr, having=(traits_of_work, EXPORTS.name_label), map_to=self._siblings),
            Watch(Cluster.gvr, when=participation_changed, walk=self._requeue_of_cluster),
            Watch(SLICES, map_to=_work_keys, label_selector=_MADE_HERE),
        )

    def _siblings(self, work: Obj) -> Iterable[Key]:
        return siblings(self._works, EXPORTS, work, self._clusters)

    async def _requeue_of_cluster(self, old: Obj | None, new: Obj | None, add: Enqueue) -> None:
        carriers = self._works.keys_by_index(NETWORKING, all_carriers_in(meta.name(new or old or {})))
        async for carrier in in_slices(carriers):
            work = self._works.get(carrier)
            for key in () if work is None else self._siblings(work):
                add(key)

    async def reconcile(self, key: Key) -> Result:
        work = self._works.get(key)
        if work is None:
            await self._delete_all(str(key))  # written while the carrier went away
            return Done
        service = service_of(work, EXPORTS)
        endpoint_slice = carried(work)
        if meta.is_deleting(work) or service is None or endpoint_slice is None:
            await self._remove(work)
            return Done
        others = carriers_of(self._works, EXPORTS, service)
        wanted = imported(usable(endpoint_slice, work, others, self._clusters), work, service)

        async def make(current: Obj | None) -> Obj:
            return wanted if current is None else {**current, **_over(current, wanted)}

        await self._writer.converge(key_of(wanted), make)
        return Done

    async def _remove(self, work: Obj) -> None:
        await self._delete_all(meta.labels(work).get(well_known.WORK_ID, ""))
        await remove_finalizer(self._client, Work.gvr, work, well_known.ENDPOINT_SLICE_FINALIZER)

    async def _delete_all(self, made_for: str) -> None:
        for made in self._slices.by_index(_BY_WORK, made_for):
            await delete_if_exists(self._client, SLICES, meta.name(made), meta.namespace(made), uid=meta.uid(made))


def imported(endpoint_slice: Obj, work: Obj, service: Key) -> Obj:
    """Return the control plane's EndpointSlice for that of a member."""
    cluster = well_known.cluster_of_namespace(meta.namespace(work)) or ""
    return {
        "apiVersion": endpoint_slice["apiVersion"],
        "kind": endpoint_slice["kind"],
        "metadata": {
            "namespace": meta.namespace(endpoint_slice),
            "name": well_known.imported_slice_name(cluster, meta.name(endpoint_slice)),
            "labels": {
                well_known.WORK_ID: meta.labels(work).get(well_known.WORK_ID, ""),
                SERVICE_NAME: well_known.derived_service_name(service.name),
                well_known.ENDPOINT_SLICE_MANAGED_BY: well_known.ENDPOINT_SLICE_CONTROLLER,
            },
            "annotations": {
                well_known.WORK_NAMESPACE: meta.namespace(work),
                well_known.WORK_NAME: meta.name(work),
            },
        },
        **{field: endpoint_slice[field] for field in _CONTENT if field in endpoint_slice},
    }


def _over(current: Obj, wanted: Obj) -> Obj:
    """Content and labels are ours; annotations may be others'."""
    content = {field: wanted.get(field) for field in _CONTENT if field in wanted or field in current}
    return {"metadata": {**current["metadata"], "labels": wanted["metadata"]["labels"]}, **content}


def _works_of_slice(endpoint_slice: Obj) -> Iterable[str]:
    """Return the Works of a slice: by the id of its Work, and by its key for what is left when that is gone."""
    work = meta.labels(endpoint_slice).get(well_known.WORK_ID)
    return [*((work,) if work else ()), *map(str, _work_keys(endpoint_slice))]


def _work_keys(endpoint_slice: Obj) -> Iterable[Key]:
    annotations = meta.annotations(endpoint_slice)
    name = annotations.get(well_known.WORK_NAME)
    return (Key(annotations.get(well_known.WORK_NAMESPACE, ""), name),) if name else ()
