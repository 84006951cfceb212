"""get, list and watch of registered resources, over all clusters that cache them and that let the caller read them.

A cluster in which the caller has not the right is left out, with a warning that names it; if all refuse: Forbidden.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import orjson

from karmada.api.well_known import CACHED_FROM_CLUSTER
from karmada.kube.client.discovery import Mapping as Kind
from karmada.kube.objects.gvk import GVR, GroupResource
from karmada.kube.objects.types import Obj
from karmada.kube.server.auth.rbac import AuthzAttributes
from karmada.kube.server.http.options import ListOptions, list_options
from karmada.kube.server.http.request import Request, RequestInfo
from karmada.kube.server.http.results import ObjectResult, Result
from karmada.search.interfaces import Caches, KindCache, Reading
from karmada.search.proxy.chain import CACHE
from karmada.search.proxy.kinds import Kinds
from karmada.search.proxy.listing import Lists, Wanted
from karmada.search.proxy.live import Reads
from karmada.search.proxy.locating import Locating, the_one
from karmada.search.proxy.parsing import Proxied
from karmada.search.proxy.selecting import check_fields
from karmada.search.proxy.versions import ANY, Versions
from karmada.search.proxy.watching import open_watch
from karmada.search.reading import readable

_NAMESPACES: Final = GroupResource("", "namespaces")
_SELECTORS: Final = ("labelSelector", "fieldSelector")


class CachedReads:
    order = CACHE

    def __init__(
        self, caches: Caches, live: Reads, reading: Reading, kinds: Kinds, joined: Callable[[str], bool]
    ) -> None:
        """Make it; `joined`: whether there is a cluster of this name, cached or not."""
        self._caches = caches
        self._live = live
        self._reading = reading
        self._kinds = kinds
        self._joined = joined
        self._locating = Locating(caches, live)
        self._lists = Lists(live)

    def takes(self, inner: Proxied) -> bool:
        return inner.gvr in self._caches.kinds and inner.is_cached_read

    async def answer(self, inner: Proxied) -> Result:
        info, request = inner.info, inner.request
        kind = self._caches.kinds[info.gvr]
        if info.verb == "get":
            return await self._get(request, kind, info)
        options = list_options(request.query, watch=info.verb == "watch")
        resource = self._kinds.resource(kind)
        check_fields(resource, options.fields)
        namespace = namespace_of(info, kind)
        caches = await self._readable(request, kind.gvr, _attributes(info, namespace, options))
        if info.verb == "watch":
            follow = self._caches.on_cluster_added
            return await open_watch(resource, namespace, options, caches, follow, known=self._joined)
        return await self._lists.list(Wanted(resource, namespace, options, _selectors(request)), caches)

    async def _get(self, request: Request, kind: Kind, info: RequestInfo) -> Result:
        gvr, namespace, name = kind.gvr, namespace_of(info, kind), info.name
        wanted = AuthzAttributes("get", *gvr, namespace=decided_in(info, kind), name=name)
        caches = await self._readable(request, gvr, wanted)
        holders = await self._locating.holders(gvr, namespace, name, [cache.cluster for cache in caches])
        cluster = the_one(gvr, name, holders)
        cache = next(cache for cache in caches if cache.cluster == cluster)
        version = request.query.get("resourceVersion")
        cached = cache.get(namespace, name) if version == ANY else None
        raw = cached.raw if cached is not None else await self._live.get(cache, namespace, name, version)
        return ObjectResult(obj=_presented(raw, cluster), resource=self._kinds.resource(kind))

    async def _readable(self, request: Request, gvr: GVR, wanted: AuthzAttributes) -> list[KindCache]:
        """Return the caches that the caller may read; Forbidden when there are some and none of them is."""
        clusters = await readable(self._reading, request, wanted, self._caches.clusters(gvr))
        found = (self._caches.cache(cluster, gvr) for cluster in clusters)
        return [cache for cache in found if cache is not None]


def namespace_of(info: RequestInfo, kind: Kind) -> str:
    return info.namespace if kind.namespaced else ""


def decided_in(info: RequestInfo, kind: Kind) -> str:
    """Return the namespace whose roles count: that of the object; a Namespace is in itself."""
    return info.namespace if kind.namespaced or kind.gvr.group_resource == _NAMESPACES else ""


def _attributes(info: RequestInfo, namespace: str, options: ListOptions) -> AuthzAttributes:
    """Return what to authorize; a list of one name needs the right to this one only."""
    name = options.fields.exact("metadata.name") if options.fields is not None else None
    return AuthzAttributes(info.verb, *info.gvr, namespace=namespace, name=name or "")


def _selectors(request: Request) -> Mapping[str, str]:
    return {key: value for key in _SELECTORS if (value := request.query.get(key))}


def _presented(raw: bytes, cluster: str) -> Obj:
    """Return an object under a resourceVersion of the proxy, marked with its cluster."""
    obj: Obj = orjson.loads(raw)
    metadata = obj["metadata"]
    metadata["annotations"] = {**(metadata.get("annotations") or {}), CACHED_FROM_CLUSTER: cluster}
    metadata["resourceVersion"] = Versions({cluster: metadata.get("resourceVersion", "")}).encode()
    return obj
