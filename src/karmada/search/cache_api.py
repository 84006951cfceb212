"""`search/cache/<path of a resource>`: what the caches of all clusters have of it, always as one list.

Objects are complete, and marked with their cluster. Of the parameters only labelSelector counts. A resource that no
registry names is an empty list, and so is a name that no cluster has.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Final, NamedTuple

import orjson

from karmada.apiserver.members import plain
from karmada.kube.client.discovery import Mapping as Kind
from karmada.kube.objects.doc import Doc
from karmada.kube.objects.errors import ApiError, MethodNotAllowed
from karmada.kube.objects.gvk import GVR, GroupResource
from karmada.kube.objects.selectors import LabelSelector
from karmada.kube.runtime.time_slice import TimeSlice
from karmada.kube.server.auth.rbac import AuthzAttributes
from karmada.kube.server.http.negotiation import Form
from karmada.kube.server.http.options import list_options
from karmada.kube.server.http.request import Request
from karmada.kube.server.http.results import RawResult, Result, StreamedList
from karmada.search.cached_object import stamped
from karmada.search.interfaces import Caches, KindCache, Reading
from karmada.search.proxy.kinds import Kinds
from karmada.search.reading import readable

BATCH: Final = 100
_JSON: Final = "application/json; charset=utf-8"
_NAMESPACES: Final = GroupResource("", "namespaces")
FindKind = Callable[[GVR], Awaitable[Kind | None]]


class NativePath(NamedTuple):
    """The resource that a path of a Kubernetes API names."""

    gvr: GVR
    namespace: str = ""
    name: str = ""


def parse_native(parts: Sequence[str]) -> NativePath:
    """ApiError with the texts that clients of Karmada know."""
    prefixed = 1 if parts[:1] == ["api"] else 2 if parts[:1] == ["apis"] else 0
    if not prefixed or len(parts) < prefixed + 2:
        raise plain(f"k8s native Request URL({'/'.join(parts)}) is not a resource request")
    group = parts[1] if prefixed == 2 else ""
    version, *rest = parts[prefixed:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    if len(rest) > 2:
        raise plain(f"invalid request parts([{' '.join(parts)}]) for k8s native request URL")
    return NativePath(GVR(group, version, rest[0]), namespace, rest[1] if len(rest) > 1 else "")


class CacheApi:
    def __init__(self, caches: Caches, reading: Reading, kinds: Kinds, find_kind: FindKind) -> None:
        """`find_kind` names the kind of a resource that no registry does."""
        self._caches = caches
        self._reading = reading
        self._kinds = kinds
        self._find_kind = find_kind

    async def handle(self, request: Request) -> Result:
        if request.method != "GET":
            raise MethodNotAllowed()
        info = request.info
        path = parse_native([info.subresource, *(part for part in info.rest.split("/") if part)])
        try:
            labels = list_options(request.query, watch=False).labels
        except ApiError as error:
            return _error(400, error.message)
        kind = self._caches.kinds.get(path.gvr) or await self._find_kind(path.gvr)
        if kind is None:
            return _error(500, f"no matches for {path.gvr.api_version}, Resource={path.gvr.resource}")
        caches = await self._readable(request, path)
        request.form = Form(_JSON)  # whatever else the client would take
        return StreamedList(self._kinds.resource(kind), {}, _batches(caches, path, labels))

    async def _readable(self, request: Request, path: NativePath) -> list[KindCache]:
        gvr, verb = path.gvr, "get" if path.name else "list"
        within = path.name if gvr.group_resource == _NAMESPACES else path.namespace  # one is in itself, as in requests
        wanted = AuthzAttributes(verb, gvr.group, gvr.version, gvr.resource, "", within, path.name)
        names = await readable(self._reading, request, wanted, self._caches.clusters(gvr))
        found = [cache for cache in (self._caches.cache(name, gvr) for name in names) if cache is not None]
        late = [cache.cluster for cache in found if not cache.synced]
        if late:
            request.warn(f"clusters whose objects are not here yet: {', '.join(late)}")
        return found


def _error(status: int, message: str) -> RawResult:
    return RawResult(orjson.dumps({"error": message}), _JSON, status)


async def _batches(
    caches: Sequence[KindCache], path: NativePath, labels: LabelSelector | None
) -> AsyncGenerator[Sequence[bytes], None]:
    """Yield each cluster as it is when its turn comes."""
    turn = TimeSlice()
    for cache in caches:
        objects = _named(cache, path) if path.name else cache.list(path.namespace)
        for start in range(0, len(objects), BATCH):
            batch = objects[start : start + BATCH]
            yield [stamped(obj, cache.cluster) for obj in batch if labels is None or labels.matches(obj.labels)]
            if turn.is_over():
                await turn.next()


def _named(cache: KindCache, path: NativePath) -> list[Doc]:
    found = cache.get(path.namespace, path.name)
    return [found] if found is not None else []
