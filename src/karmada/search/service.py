"""Search as a part of a process: caches, index, OpenSearch and their endpoints on a server.

`search/{category}/…` and `proxying/{any}/proxy/…` of search.karmada.io are paths to connect to, not objects. They are
served beside ResourceRegistries: by the API server of the all-in-one, or by karmada-search behind it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from karmada.api.search import V1ALPHA1
from karmada.apiserver.cluster_resource import CLUSTERS
from karmada.apiserver.members import Members, plain
from karmada.kube.client.client import Client
from karmada.kube.client.discovery import Mapping as Kind
from karmada.kube.kinds.resource import Resource
from karmada.kube.objects.errors import MethodNotAllowed
from karmada.kube.objects.gvk import GVK, GVR, GroupResource
from karmada.kube.objects.gvrs import SECRETS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.writes import get_if_exists
from karmada.kube.server.app import ApiServer
from karmada.kube.server.core import ServerCore
from karmada.kube.server.handlers.dispatch import ANY, Place
from karmada.kube.server.http.request import Request
from karmada.kube.server.http.results import RawResult, Result
from karmada.kube.server.outbound.https import Outbound
from karmada.members.switching import Open, over_network
from karmada.search.cache_api import CacheApi
from karmada.search.caches import USER_AGENT, MemberCaches
from karmada.search.index.api import CATEGORY as QUERY
from karmada.search.index.api import QueryApi
from karmada.search.index.service import SearchIndex
from karmada.search.opensearch.sink import OpenSearchSink
from karmada.search.proxy.chain import Part
from karmada.search.proxy.control_plane import LocalControlPlane
from karmada.search.proxy.kinds import Kinds, Served
from karmada.search.proxy.mounting import connectable, mount_proxy
from karmada.search.reading import MemberReading

GROUP: Final = GVK.parse(V1ALPHA1, "Search").group
SEARCH: Final = GroupResource(GROUP, "search")
Category = Callable[[Request], Awaitable[Result]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    search: bool = True
    """True if `search/…` is served."""
    proxy: bool = True
    """True if `proxying/…` is served."""
    member_authorization: bool = True
    """True if callers need their own right in the members that they read."""
    allow_insecure: bool = False
    """True if members may be reached over plain HTTP."""


class Search:
    """`start` it once the server serves; `close` ends everything."""

    def __init__(
        self,
        server: ServerCore,
        registries: Client,
        control_plane: Client,
        fallback: Part,
        options: Options,
        *,
        served: Served = lambda _gvr: None,
        open_way: Open = over_network,
    ) -> None:
        """`fallback` answers what the proxy does not; `served` are the kinds of the control plane, if it is here."""
        clock = server.clock
        self.caches = MemberCaches(
            registries, control_plane, clock, allow_insecure=options.allow_insecure, open_way=open_way
        )
        self._control_plane = control_plane
        self._outbound = Outbound()
        self.index = SearchIndex(self.caches, clock, filled=lambda: self.caches.synced)
        self.opensearch = OpenSearchSink(self.caches, self.caches, control_plane, clock)
        reading = MemberReading(self.caches.client, clock, enforced=options.member_authorization)
        self.caches.add_sink(self.opensearch)
        gauges = server.metrics.gauges
        gauges["karmada_search_cached_objects"] = self.caches.counts
        gauges["karmada_search_caches_not_synced"] = self.caches.not_synced
        gauges["karmada_search_opensearch_waiting_objects"] = self.opensearch.waiting
        gauges["karmada_search_opensearch_refused_objects"] = self.opensearch.refused
        if options.search:
            gauges["karmada_search_index_waiting_objects"] = lambda: [({}, self.index.waiting)]
            self.caches.add_sink(self.index)
            cached = CacheApi(self.caches, reading, Kinds(server.definitions, served), self._kind)
            query = QueryApi(self.caches, self.index, reading, clock)
            mount_categories(server, {"cache": cached.handle, "opensearch": _nothing, QUERY: query.handle})
        if options.proxy:
            members = Members(
                _Clusters(self.caches), self._secret, self._outbound, allow_insecure=options.allow_insecure
            )
            mount_proxy(server, self.caches, reading, members, fallback, served=served)

    async def start(self) -> None:
        await self.caches.start()

    async def close(self) -> None:
        await self.caches.close()
        await self.opensearch.stop()
        await self.index.stop()
        await self._outbound.close()

    async def _kind(self, gvr: GVR) -> Kind | None:
        return (await self._control_plane.mapper.catalog()).by_gvr.get(gvr)

    async def _secret(self, namespace: str, name: str) -> Obj | None:
        """From the informer; from the server where it is not there yet."""
        secrets = self.caches.members.secrets
        found = secrets.get(Key(namespace, name)) if secrets is not None else None
        if found is not None:
            return found
        return await get_if_exists(self._control_plane, SECRETS, name, namespace)


class _Clusters:
    """The Clusters that the caches follow, for those who read them from a server's cache elsewhere."""

    def __init__(self, caches: MemberCaches) -> None:
        self._caches = caches

    def get(self, resource: GroupResource, namespace: str, name: str) -> Obj | None:
        assert resource == CLUSTERS
        return self._caches.of_clusters.get(Key(namespace, name))

    def list(self, resource: GroupResource, namespace: str = "") -> list[Obj]:
        assert resource == CLUSTERS
        return self._caches.of_clusters.list(namespace)

    async def scan(self, resource: GroupResource, namespace: str = "") -> AsyncIterator[Obj]:
        for obj in self.list(resource, namespace):
            yield obj


def install(server: ApiServer, options: Options, *, open_way: Open = over_network) -> Search:
    """In the process of the API server; before it starts. It ends with the server."""
    client = server.client(user_agent=USER_AGENT)
    fallback = LocalControlPlane(server.http.rerouted)
    search = Search(server, client, client, fallback, options, served=server.registry.get, open_way=open_way)
    server.closing.append(search.close)
    return search


def mount_categories(server: ServerCore, categories: Mapping[str, Category]) -> None:
    async def connect(request: Request, _resource: Resource) -> Result:
        name = request.info.name
        if not name:
            raise MethodNotAllowed()
        category = categories.get(name)
        if category is None:
            raise plain(f"connect with unrecognized search category {name}")
        return await category(request)

    server.registry.add([connectable(SEARCH, "Search")])
    server.handlers.endpoints[Place(SEARCH, ANY)] = connect


async def _nothing(_request: Request) -> Result:
    """`search/opensearch/…` is accepted and has no content, as in Karmada."""
    return RawResult(b"", "")
