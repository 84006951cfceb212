"""The sink: hands changes to the writers of the OpenSearches that registries name for them.

It follows registries and clusters. Nothing is connected, imported or remembered while no registry names an OpenSearch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Protocol

from karmada.api.cluster import Cluster
from karmada.api.search import ResourceRegistry
from karmada.kube.client.client import Client
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.doc import Doc
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import SECRETS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer
from karmada.search.interfaces import Caches
from karmada.search.opensearch.routes import Destination, Route, routes
from karmada.search.opensearch.store import Store
from karmada.search.opensearch.writer import Writer
from karmada.search.pending import Source

Gauge = list[tuple[dict[str, str], float]]


class Informs(Protocol):
    """Has the informers of ResourceRegistries and of Clusters."""

    def of(self, gvr: GVR, /) -> Informer: ...


class OpenSearchSink:
    def __init__(self, caches: Caches, informers: Informs, control_plane: Client, clock: Clock) -> None:
        """Before the informers start."""
        self._caches = caches
        self._control_plane = control_plane
        self._clock = clock
        self._registries = informers.of(ResourceRegistry.gvr)
        self._clusters = informers.of(Cluster.gvr)
        self._stores: dict[Destination, Store] = {}
        self._writers: dict[tuple[Destination, str], Writer] = {}
        self._by_cluster: dict[str, list[Writer]] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._ignore: list[Callable[[], None]] = [
            informer.add_handler(self._changed) for informer in (self._registries, self._clusters)
        ]

    @property
    def idle(self) -> bool:
        """OpenSearch has all that was cached and routed to it so far."""
        return all(writer.idle for writer in self._writers.values())

    def waiting(self) -> Gauge:
        return [(_labels(*key), writer.waiting) for key, writer in self._writers.items()]

    def refused(self) -> Gauge:
        return [(_labels(*key), writer.refused) for key, writer in self._writers.items()]

    # the sink

    def upsert(self, cluster: str, gvr: GVR, obj: Doc) -> None:
        writers = self._by_cluster.get(cluster)
        if writers:
            self._note(writers, Source(cluster, gvr), obj.namespace, obj.name, obj.uid)

    def delete(self, cluster: str, gvr: GVR, namespace: str, name: str, uid: str) -> None:
        writers = self._by_cluster.get(cluster)
        if writers:
            self._note(writers, Source(cluster, gvr), namespace, name, uid)

    def replaced(self, cluster: str, gvr: GVR) -> None:
        if self._registries.list():
            self.route()  # a kind may have been unknown when its registry came
        for writer in self._by_cluster.get(cluster, ()):
            writer.compare(Source(cluster, gvr))

    def forget(self, cluster: str, gvr: GVR | None = None) -> None:
        """Forget a cluster that is gone, as `route` removes it; of one that is not Ready nothing is removed."""

    @staticmethod
    def _note(writers: list[Writer], source: Source, namespace: str, name: str, uid: str) -> None:
        for writer in writers:
            writer.note(source, namespace, name, uid)

    async def stop(self) -> None:
        for ignore in self._ignore:
            ignore()
        for writer in self._writers.values():
            await writer.stop()
        for store in self._stores.values():
            await store.close()
        await asyncio.gather(*self._closing)

    # routes

    def _changed(self, old: Obj | None, new: Obj | None) -> None:
        if not _only_status_changed(old, new):
            self.route()

    def route(self) -> None:
        """Make writers for what registries say now."""
        kinds = {kind.gvk: kind for kind in self._caches.kinds.values()}
        found = routes(self._registries.list(), self._clusters.list(), kinds)
        wanted: dict[tuple[Destination, str], dict[Source, Route]] = {}
        for destination, by_source in found.items():
            for source, route in by_source.items():
                wanted.setdefault((destination, source.cluster), {})[source] = route
        self._drop_finished(wanted)
        for key in wanted.keys() | self._writers.keys():
            self._writer(*key).route(wanted.get(key, {}))
        self._by_cluster = {}
        for (_, cluster), writer in self._writers.items():
            self._by_cluster.setdefault(cluster, []).append(writer)

    def _drop_finished(self, wanted: Mapping[tuple[Destination, str], object]) -> None:
        for key in [key for key, writer in self._writers.items() if writer.finished and key not in wanted]:
            del self._writers[key]
        for destination in self._stores.keys() - {destination for destination, _ in self._writers}:
            closing = asyncio.get_running_loop().create_task(self._stores.pop(destination).close(), name="opensearch")
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    def _writer(self, destination: Destination, cluster: str) -> Writer:
        writer = self._writers.get((destination, cluster))
        if writer is None:
            store = self._stores.get(destination)
            if store is None:
                store = self._stores[destination] = Store(destination, self._secret)
            writer = self._writers[destination, cluster] = Writer(cluster, store, self._caches, self._clock)
        return writer

    async def _secret(self, namespace: str, name: str) -> Obj:
        return await self._control_plane.get(SECRETS, name, namespace)


def _labels(destination: Destination, cluster: str) -> dict[str, str]:
    return {"cluster": cluster, "opensearch": str(destination)}


def _only_status_changed(old: Obj | None, new: Obj | None) -> bool:
    """Clusters report their status often; routes do not depend on it."""
    if old is None or new is None:
        return False
    before, after = (
        (obj.get("spec"), obj["metadata"].get("labels"), obj["metadata"].get("deletionTimestamp")) for obj in (old, new)
    )
    return before == after
