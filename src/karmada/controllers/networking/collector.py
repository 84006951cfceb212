"""Collecting EndpointSlices from members: what both flows share.

EndpointSlices of a cluster are watched from when a Work there requires it (`begins`), as long as there is one of the
kind that does: what was collected does not go away with an outage. The keys are services: (cluster,
namespace/name). A reconcile compares the EndpointSlices of a service in the member, if it is wanted, with the carriers
that exist for it; so it does not matter what changed. A key without a name is the cluster as a whole: whether it is
watched.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Final

from karmada.api import well_known
from karmada.api.cluster import Cluster
from karmada.api.work import Work
from karmada.controllers.cluster_state import is_push
from karmada.controllers.context import Context
from karmada.controllers.indexes import traits_of_work
from karmada.controllers.networking.carriers import (
    SLICE_KIND,
    Carriers,
    Flow,
    carried,
    is_ours,
    service_of,
    service_of_slice,
)
from karmada.controllers.networking.exposure import participation_changed
from karmada.controllers.networking.index import NETWORKING, carriers_in, holds, requirements, values
from karmada.controllers.shards import by_cluster_first
from karmada.controllers.works import names_of_work
from karmada.kube.objects import meta
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvrs import SLICES
from karmada.kube.objects.shapes import BARE
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.cache import IndexFn
from karmada.kube.runtime.controller import ControllerOptions, Done, Enqueue, Reconciler, Result, Watch
from karmada.kube.runtime.event_filter import matching
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.time_slice import in_slices
from karmada.members.access import NoAccess
from karmada.members.members import Member

BY_SERVICE: Final = "service"


_COLLECTED: Final = BARE._replace(name="collected endpoint slices", paged=True)
"""A shape of its own, so that the flows share one informer, and share it with nobody else.

With one each they would see a change at different times, and correct each other's carriers meanwhile.
"""


def _slice_index(endpoint_slice: Obj) -> Iterable[str]:
    service = service_of_slice(endpoint_slice)
    return (str(service),) if service is not None else ()


class Watched:
    """The informers of one member, and how they are left."""

    def __init__(self, member: Member, slices: Informer, others: Iterable[Informer] = ()) -> None:
        self.member = member
        self.slices = slices
        self.all = [slices, *others]
        self.unsubscribe: list[Callable[[], None]] = []
        self.queued = False
        """True if its services were enqueued once all was known."""

    @property
    def synced(self) -> bool:
        return all(informer.synced for informer in self.all)

    async def close(self) -> None:
        for unsubscribe in self.unsubscribe:
            unsubscribe()
        for informer in self.all:
            if not informer.has_handlers:
                await self.member.informers.discard(informer)


class Collector(Reconciler):
    """`handles` selects the clusters whose members this process reaches."""

    workers = 3
    flow: Flow
    kind: str
    """Works with a manifest of this kind require EndpointSlices of their cluster, unless they are being deleted.

    Be they suspended or not to be applied: the member still has the object, and nothing is released too early.
    """
    begins: IndexFn | None = None
    """Of these, those from which on EndpointSlices are watched, by cluster; None: from any."""
    options = ControllerOptions(shard_of=by_cluster_first)

    def __init__(self, context: Context, handles: Callable[[Obj], bool] = is_push) -> None:
        self._handles = handles
        self._members = context.members
        self._members.gone.append(self._forget)
        self._clusters = context.informers.of(Cluster.gvr)
        self._carriers = Carriers(context, context.client)
        self.works = context.informers.of(Work.gvr, indexes={NETWORKING: values})
        self._beginning = f"{self.kind}/begins"
        if self.begins is not None:
            self.works.add_index(self._beginning, self.begins)
        self.watched: dict[str, Watched] = {}
        self._add: Enqueue = lambda _key, _priority=0: None
        self.watches = (
            Watch(Work.gvr, having=(traits_of_work, self.kind), when=self._requires_otherwise, map_to=self._required),
            Watch(Work.gvr, having=(traits_of_work, SLICE_KIND), when=_carried_otherwise, map_to=self._service_keys),
            Watch(Cluster.gvr, when=_concerns, map_to=lambda cluster: (Key(meta.name(cluster), ""),)),
        )

    # what a flow defines

    @abstractmethod
    def is_wanted(self, cluster: str, service: Key) -> bool:
        """Return whether the EndpointSlices of a service of this cluster are collected."""

    def services_named(self, _work: Obj) -> Iterable[Key]:
        """Return the services that a Work which requires EndpointSlices names, if it names any."""
        return ()

    def more_informers(self, _member: Member) -> list[Informer]:
        """Return what else is watched in a member, for `is_wanted`; its objects have the names of services."""
        return []

    # events to keys

    def attach(self, add: Enqueue) -> None:
        self._add = add

    def _requires_otherwise(self, old: Obj | None, new: Obj | None) -> bool:
        return self._requirement(old) != self._requirement(new)

    def _requirement(self, work: Obj | None) -> tuple[bool, bool]:
        """Return whether it requires EndpointSlices, and whether they are watched from now on."""
        if work is None or not holds(work, self.kind) or meta.is_deleting(work):
            return (False, False)
        return True, self.begins is None or bool(self.begins(work))

    def _required(self, work: Obj) -> Iterable[Key]:
        """Return the cluster as a whole, and the services that are named."""
        cluster = well_known.cluster_of_namespace(meta.namespace(work))
        if cluster is None:
            return ()
        return (Key(cluster, ""), *(Key(cluster, str(service)) for service in self.services_named(work)))

    def _service_keys(self, work: Obj) -> Iterable[Key]:
        cluster = well_known.cluster_of_namespace(meta.namespace(work))
        service = service_of(work, self.flow)
        return () if cluster is None or service is None else (Key(cluster, str(service)),)

    def _forget(self, cluster: str) -> None:
        """Drop a cluster that is gone, and its informers with it."""
        self.watched.pop(cluster, None)
        self._add(Key(cluster, ""))

    # reconcile

    async def reconcile(self, key: Key) -> Result:
        if key.name:
            await self._sync_service(key.namespace, Key.parse(key.name))
        else:
            await self._sync_cluster(key.namespace)
        return Done

    async def _sync_cluster(self, name: str) -> None:
        cluster = self._clusters.get(Key("", name))
        handled = cluster is not None and not meta.is_deleting(cluster) and self._handles(cluster)
        kept = handled and self._is_required(name)
        watched = self.watched.get(name)
        if kept and watched is None and (self.begins is None or self.works.keys_by_index(self._beginning, name)):
            self._open(name)
        elif not kept and watched is not None:
            del self.watched[name]
            await watched.close()
            await self._queue_carried(name)
        elif not kept and handled:
            await self._queue_carried(name)
        elif watched is not None and watched.synced and not watched.queued:
            watched.queued = True
            await self._queue_all(name, watched.slices)

    def _is_required(self, cluster: str) -> bool:
        return bool(self.works.keys_by_index(NETWORKING, requirements(self.kind, cluster)))

    def _open(self, name: str) -> None:
        try:
            member = self._members.get(name)
        except NoAccess as error:
            raise ApiError(str(error)) from error
        slices = member.informers.of(SLICES, shape=_COLLECTED, indexes={BY_SERVICE: _slice_index})
        watched = self.watched[name] = Watched(member, slices, self.more_informers(member))

        def slice_changed(old: Obj | None, new: Obj | None) -> None:
            for endpoint_slice in (old, new):
                if endpoint_slice is None or is_ours(endpoint_slice):
                    continue
                service = service_of_slice(endpoint_slice)
                if service is not None:
                    self._add(Key(name, str(service)))

        def other_changed(old: Obj | None, new: Obj | None) -> None:
            obj = new if new is not None else old
            assert obj is not None
            self._add(Key(name, str(Key(meta.namespace(obj), meta.name(obj)))))

        watched.unsubscribe.append(slices.add_handler(slice_changed))
        watched.unsubscribe += [informer.add_handler(other_changed) for informer in watched.all[1:]]
        for informer in watched.all:
            informer.when_synced(lambda: self._add(Key(name, "")))

    async def _queue_all(self, cluster: str, slices: Informer) -> None:
        """Enqueue all services of a member: what changed while it was not watched left no event."""
        async for endpoint_slice in slices.scan():
            service = service_of_slice(endpoint_slice)
            if service is not None:
                self._add(Key(cluster, str(service)))
        await self._queue_carried(cluster)

    async def _queue_carried(self, cluster: str) -> None:
        async for carrier in in_slices(self.works.keys_by_index(NETWORKING, carriers_in(cluster, self.flow))):
            work = self.works.get(carrier)
            for key in () if work is None else self._service_keys(work):
                self._add(key)

    async def _sync_service(self, cluster: str, service: Key) -> None:
        watched = self.watched.get(cluster)
        if watched is not None and not watched.synced:
            return  # queued again once it is
        found = self._clusters.get(Key("", cluster))
        if watched is None and (found is None or not self._handles(found)):
            return
        if watched is None and found is not None and not meta.is_deleting(found) and self._is_required(cluster):
            return  # it will be watched
        slices: list[Obj] = []
        if watched is not None and self.is_wanted(cluster, service):
            slices = [s for s in watched.slices.by_index(BY_SERVICE, str(service)) if not is_ours(s)]
        wanted = {meta.key(s): s for s in slices}
        carriers = self.works.by_index(NETWORKING, carriers_in(cluster, self.flow, service))
        for work in carriers:
            endpoint_slice = wanted.get(meta.key(carried(work) or {}))
            named = endpoint_slice is not None and meta.name(work) in names_of_work(endpoint_slice)
            if not named and not meta.is_deleting(work):
                await self._carriers.release(work, self.flow)
        for endpoint_slice in wanted.values():
            await self._carriers.hold(cluster, endpoint_slice, service, self.flow)


def _concerns(old: Obj | None, new: Obj | None) -> bool:
    """Return whether a Cluster can take part otherwise than before, or is reached otherwise."""
    changed = old is not None and new is not None and old.get("spec") != new.get("spec")
    return changed or participation_changed(old, new)


_carries = matching(lambda work: carried(work) is not None)


def _carried_otherwise(old: Obj | None, new: Obj | None) -> bool:
    """Return whether a carrier was changed or deleted: by others too, who may have to be corrected."""
    if not _carries(old, new):
        return False
    if old is None or new is None:
        return True
    return old.get("spec") != new.get("spec") or meta.labels(old) != meta.labels(new)
