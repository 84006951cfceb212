"""metrics.k8s.io: what pods and nodes of all clusters use, each marked with its cluster."""

from __future__ import annotations

import asyncio
from itertools import chain

from karmada.api.well_known import QUERY_FROM_CLUSTER
from karmada.kube.objects import meta
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.errors import ApiError, BadRequest, MethodNotAllowed, NotFound
from karmada.kube.objects.gvk import GroupResource, GroupVersion
from karmada.kube.objects.selectors import parse_labels
from karmada.kube.objects.types import Obj
from karmada.kube.server.aggregation.metrics_objects import METRICS, METRICS_RESOURCES
from karmada.kube.server.aggregation.metrics_rendering import rendered
from karmada.kube.server.http.request import Request, RequestInfo
from karmada.kube.server.http.results import Result
from karmada.metricsadapter.clusters import MeasuredClusters

_SINGULAR = {"pods": "pod", "nodes": "node"}
_SELECTORS = ("labelSelector", "fieldSelector")


class ResourceMetrics:
    def __init__(self, clusters: MeasuredClusters, clock: Clock) -> None:
        self._clusters = clusters
        self._clock = clock

    def resources(self) -> tuple[Obj, ...]:
        return METRICS_RESOURCES

    async def handle(self, request: Request, _version: GroupVersion) -> Result:
        info = request.info
        if info.subresource or info.resource not in _SINGULAR:
            raise NotFound.resource()
        if info.verb not in ("get", "list"):
            raise MethodNotAllowed()
        single = info.verb == "get"
        items = [await self._one(info)] if single else await self._list(request)
        return rendered(request, info.resource, items, self._clock.now(), single=single)

    async def _one(self, info: RequestInfo) -> Obj:
        path = f"{_path(info)}/{info.name}"
        found = await self._clusters.get_all(dict.fromkeys(self._clusters.names(), path), {})
        if not found:
            raise NotFound.of(GroupResource("", info.resource), info.name)
        if len(found) > 1:
            message = f"the {_SINGULAR[info.resource]}({info.name}) found in more than one clusters"
            raise ApiError(message, code=500, reason="InternalError")
        return _marked(found[0].body, found[0].cluster)

    async def _list(self, request: Request) -> list[Obj]:
        query = {key: value for key in _SELECTORS if (value := request.query.get(key))}
        try:
            parse_labels(query.get("labelSelector", ""))
        except ValueError as error:
            raise BadRequest(f"unable to parse requirement: {error}") from error
        path = _path(request.info)
        found = await asyncio.gather(*(self._items(name, path, query) for name in self._clusters.names()))
        return sorted(chain.from_iterable(found), key=meta.key)

    async def _items(self, cluster: str, path: str, query: dict[str, str]) -> list[Obj]:
        """Mark items as soon as they are there: all of them together would hold up others for long."""
        answer = await self._clusters.get(cluster, path, query)
        return [] if answer is None else [_marked(item, cluster) for item in answer.body.get("items") or ()]


def _path(info: RequestInfo) -> str:
    namespace = f"namespaces/{info.namespace}/" if info.namespace else ""
    return f"/apis/{METRICS}/{namespace}{info.resource}"


def _marked(item: Obj, cluster: str) -> Obj:
    metadata = item.get("metadata") or {}
    annotations = {**(metadata.get("annotations") or {}), QUERY_FROM_CLUSTER: cluster}
    return {**item, "metadata": {**metadata, "annotations": annotations}}
