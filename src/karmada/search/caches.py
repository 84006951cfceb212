"""All caches of members: what ResourceRegistries and Clusters want, made so.

Any change of either leads to one reconcile of everything: caches that are not wanted any more are dropped, missing ones
are started. Nothing but ResourceRegistries is watched until there is the first one. A cluster that comes (it joined, or
it is ready again) is announced once its objects are here, so that whoever watches all clusters begins anew with it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from karmada.api.cluster import Cluster
from karmada.api.search import ResourceRegistry
from karmada.controllers.cluster_state import is_ready
from karmada.kube.client.client import Client
from karmada.kube.client.discovery import Mapping as Kind
from karmada.kube.objects import meta
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import (
    Controller,
    ControllerOptions,
    Done,
    Enqueue,
    Reconciler,
    Result,
    Watch,
    requeue,
)
from karmada.kube.runtime.events import EventRecorder
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.waiting import cancel_and_wait, with_timeout
from karmada.members.access import NoAccess, secret_key
from karmada.members.members import Member, Members
from karmada.members.switching import Open, over_network
from karmada.search.kind_cache import ReflectedKind
from karmada.search.kinds import ServedKinds
from karmada.search.registries import Coverage, Namespaces, Wanted, named_kinds, what
from karmada.search.registry_status import RegistryStatus
from karmada.search.sinks import Sink

USER_AGENT: Final = "karmada-search"
_EVERYTHING: Final = Key("", "registries")
_TOGETHER_SECONDS: Final = 0.1
"""Clusters that change within so long are reconciled together: at the start of a large fleet, hundreds do."""
_LATE_SECONDS: Final = 10.0
"""After so long a new cluster is announced without the resources whose first list is not here."""
_UNKNOWN_SECONDS: Final = 60.0
"""After so long kinds that nobody served are looked for again."""
log = get_logger("search")


def _matters(cluster: Obj) -> object:
    """Return what of a Cluster decides about its caches."""
    status = cluster.get("status") or {}
    complete = meta.has_condition(status.get("conditions"), "CompleteAPIEnablements")
    metadata = meta.labels(cluster), meta.deletion_time(cluster)
    return is_ready(cluster), complete, metadata, cluster.get("spec"), status.get("apiEnablements")


def _concerns(old: Obj | None, new: Obj | None) -> bool:
    return old is None or new is None or _matters(old) != _matters(new)


class MemberCaches(Reconciler):
    name = "search-caches"
    options = ControllerOptions(needs_leader=False)
    watches = (Watch(Cluster.gvr, when=_concerns, map_to=lambda _cluster: (_EVERYTHING,), after=_TOGETHER_SECONDS),)

    def __init__(
        self,
        registries: Client,
        control_plane: Client,
        clock: Clock,
        *,
        allow_insecure: bool = False,
        open_way: Open = over_network,
    ) -> None:
        """`registries` has the ResourceRegistries, `control_plane` the clusters and their Secrets."""
        self._clock = clock
        self._registries = Informers(registries, clock=clock)
        self.of_registries = self._registries.of(ResourceRegistry.gvr)
        self._informers = Informers(control_plane, clock=clock)
        self.of_clusters = self._informers.of(Cluster.gvr)
        self.members = Members(
            self._informers,
            clock,
            user_agent=USER_AGENT,
            allow_insecure=allow_insecure,
            open_way=open_way,
            disable_compression=True,
        )
        self.members.moved.append(self._moved)
        self._kinds = ServedKinds(control_plane, self.members)
        self._recorder = EventRecorder(control_plane, USER_AGENT, clock=clock)
        self._status = RegistryStatus(registries, self._recorder, clock)
        self._sinks: list[Sink] = []
        self._wanted = Wanted()
        self._held: dict[str, _Cluster] = {}
        self._troubled: frozenset[tuple[str, str]] = frozenset()
        """The Secrets that clusters without access are waiting for."""
        self._when_added: dict[object, Callable[[], None]] = {}
        self._announcing: dict[str, asyncio.Task[None]] = {}
        self._beginning: asyncio.Task[None] | None = None
        self._unsubscribe: list[Callable[[], None]] = []
        self.reconciled = False
        """The caches are as registries want them, or were once."""
        self._controller = Controller(self, self._informers, clock=clock)

    # reading

    @property
    def kinds(self) -> Mapping[GVR, Kind]:
        return self._wanted.kinds

    def clusters(self, gvr: GVR) -> list[str]:
        return sorted(name for name, cluster in self._held.items() if gvr in cluster.caches)

    def cache(self, cluster: str, gvr: GVR) -> ReflectedKind | None:
        held = self._held.get(cluster)
        return held.caches.get(gvr) if held is not None else None

    def all(self) -> Iterator[ReflectedKind]:
        for cluster in self._held.values():
            yield from cluster.caches.values()

    @property
    def synced(self) -> bool:
        """Return whether every cache that is wanted has its objects."""
        if not self.of_registries.synced:
            return False
        nothing_wanted = len(self.of_registries) == 0
        return nothing_wanted or (self.reconciled and all(cache.synced for cache in self.all()))

    def counts(self) -> list[tuple[dict[str, str], float]]:
        """For metrics: objects by cluster and resource."""
        return [
            ({"cluster": cache.cluster, "resource": str(cache.kind.gvr.group_resource)}, cache.count)
            for cache in self.all()
        ]

    def not_synced(self) -> list[tuple[dict[str, str], float]]:
        """For metrics: by cluster, the resources whose first list is not complete."""
        return [
            ({"cluster": name}, sum(not cache.synced for cache in cluster.caches.values()))
            for name, cluster in self._held.items()
        ]

    def of(self, gvr: GVR) -> Informer:
        """Return the informer of Clusters, or of ResourceRegistries."""
        return {Cluster.gvr: self.of_clusters, ResourceRegistry.gvr: self.of_registries}[gvr]

    def client(self, cluster: str) -> Client:
        return self.members.get(cluster).client

    def add_sink(self, sink: Sink) -> None:
        self._sinks.append(sink)

    def on_cluster_added(self, call: Callable[[], None]) -> Callable[[], None]:
        token = object()
        self._when_added[token] = call

        def end() -> None:
            self._when_added.pop(token, None)

        return end

    # life

    async def start(self) -> None:
        self._unsubscribe.append(self.of_registries.add_handler(self._registry_changed))
        self._registries.start()

    async def stop(self) -> None:
        """Do nothing when the controller stops: only `close` ends everything."""

    async def close(self) -> None:
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        await self._registries.stop()
        if self._beginning is None:
            return
        await cancel_and_wait(self._beginning, *self._announcing.values())
        await self._controller.stop()
        await asyncio.gather(*(cache.stop() for cache in self.all()))
        self._held.clear()
        await self.members.stop()
        await self._informers.stop()
        await self._recorder.stop()

    def _registry_changed(self, old: Obj | None, new: Obj | None) -> None:
        if old is not None and new is not None and old.get("spec") == new.get("spec"):
            return
        if self._beginning is None:
            self._beginning = _started(self._begin(), "search caches")
        self._add(_EVERYTHING)

    async def _begin(self) -> None:
        """With the first registry."""
        self._informers.start()
        await self._informers.wait_synced()
        await self.members.start()
        if self.members.secrets is not None:
            self._unsubscribe.append(self.members.secrets.add_handler(self._secret_changed))
        await self._recorder.start()
        await self._controller.start()

    def attach(self, add: Enqueue, /) -> None:
        self._add = add

    def _secret_changed(self, _old: Obj | None, new: Obj | None) -> None:
        if new is not None and (meta.namespace(new), meta.name(new)) in self._troubled:
            self._add(_EVERYTHING)

    def _moved(self, cluster: str) -> None:
        held = self._held.get(cluster)
        for cache in held.caches.values() if held is not None else ():
            cache.forget_history()

    # reconciling

    async def reconcile(self, _key: Key, /) -> Result | None:
        registries, clusters = self.of_registries.list(), self.of_clusters.list()
        kinds = await self._kinds.of(named_kinds(registries), clusters)
        wanted = what(registries, clusters, kinds)
        unreachable = await self._apply(wanted)
        secrets = (secret_key(cluster) for cluster in clusters if meta.name(cluster) in unreachable)
        self._troubled = frozenset(key for key in secrets if key is not None)
        self.reconciled = True
        await self._status.report(registries, _without(wanted.coverage, unreachable))
        unknown = any(coverage.unknown for coverage in wanted.coverage.values())
        return requeue(_UNKNOWN_SECONDS) if unknown else Done

    async def _apply(self, wanted: Wanted) -> dict[str, str]:
        """Return the clusters that cannot be reached as they are set up, with the reason."""
        unreachable: dict[str, str] = {}
        self._wanted = wanted
        for name in [name for name in self._held if name not in wanted.by_cluster]:
            await self._drop(name)
        for name, namespaces in wanted.by_cluster.items():
            try:
                member = self.members.get(name)
            except NoAccess as error:
                unreachable[name] = str(error)
                await self._drop(name)
                continue
            await self._converge(name, member, namespaces)
        return unreachable

    async def _converge(self, name: str, member: Member, wanted: Mapping[GVR, Namespaces]) -> None:
        held = self._held.get(name)
        if held is not None and held.member is not member:  # a cluster of the same name, joined anew
            await self._drop(name)
            held = None
        added = held is None
        if held is None:
            held = self._held[name] = _Cluster(member)
        for gvr, cache in list(held.caches.items()):
            if wanted.get(gvr) != cache.namespaces:
                del held.caches[gvr]
                await cache.stop()
                for sink in self._sinks:
                    sink.forget(name, gvr)
        for gvr, namespaces in wanted.items():
            if gvr not in held.caches:
                kind = self._wanted.kinds[gvr]
                cache = ReflectedKind(name, kind, namespaces, member.transport, self._clock, self._sinks)
                held.caches[gvr] = cache
                cache.start()
        if added:
            self._announcing[name] = _started(self._announce(name, held), f"announce {name}")

    async def _announce(self, name: str, held: _Cluster) -> None:
        """Once all its objects are here; what takes long, or cannot be read, holds up the others for some time only."""
        late = set(held.caches.values())
        while late:
            with contextlib.suppress(TimeoutError):
                await with_timeout(self._clock, _synced(late), _LATE_SECONDS)
            here = {cache for cache in late if cache.synced}
            for call in list(self._when_added.values()) if here else ():
                call()
            late = {cache for cache in late - here if held.caches.get(cache.kind.gvr) is cache}
        del self._announcing[name]

    async def _drop(self, name: str) -> None:
        held = self._held.pop(name, None)
        if held is None:
            return
        announcing = self._announcing.pop(name, None)
        if announcing is not None:
            await cancel_and_wait(announcing)
        await asyncio.gather(*(cache.stop() for cache in held.caches.values()))
        for sink in self._sinks:
            sink.forget(name)
        log.info("A cluster is not cached any more", cluster=name)


async def _synced(caches: Iterable[ReflectedKind]) -> None:
    await asyncio.gather(*(cache.wait_synced() for cache in caches))


class _Cluster:
    """The caches of one cluster."""

    __slots__ = ("caches", "member")

    def __init__(self, member: Member) -> None:
        self.member = member
        self.caches: dict[GVR, ReflectedKind] = {}


def _started(work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
    """Return a task that nobody awaits: its failure is logged."""
    task = asyncio.create_task(work, name=name)
    task.add_done_callback(_log_failure)
    return task


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        log.error("Work of the caches failed", task.exception(), task=task.get_name())


def _without(coverage: Mapping[str, Coverage], unreachable: Mapping[str, str]) -> dict[str, Coverage]:
    """Return what registries cover once clusters that cannot be reached are taken out of it."""
    return {name: _less(each, unreachable) for name, each in coverage.items()}


def _less(coverage: Coverage, unreachable: Mapping[str, str]) -> Coverage:
    lost: Iterable[str] = [name for name in coverage.cached if name in unreachable]
    cached = tuple(name for name in coverage.cached if name not in unreachable)
    left_out = {**coverage.left_out, **{name: unreachable[name] for name in lost}}
    return replace(coverage, cached=cached, left_out=left_out)
