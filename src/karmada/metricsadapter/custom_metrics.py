"""custom.metrics.k8s.io: what the adapters of the clusters say of objects, added up by the object's name.

Requests to a cluster are of the best version that it serves, which is looked up again after a while; answers are of the
version of the request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from karmada.kube.objects.clock import Clock
from karmada.kube.objects.errors import BadRequest, MethodNotAllowed, NotFound
from karmada.kube.objects.gvk import GroupVersion
from karmada.kube.objects.quantity import Quantity
from karmada.kube.objects.selectors import parse_labels
from karmada.kube.objects.types import Obj
from karmada.kube.server.aggregation.metrics_objects import CUSTOM, missing
from karmada.kube.server.aggregation.metrics_rendering import list_of
from karmada.kube.server.http.request import Request, RequestInfo
from karmada.kube.server.http.results import Result
from karmada.metricsadapter.clusters import Answer, MeasuredClusters

_GROUP = f"/apis/{CUSTOM[0].group}"
_SELECTORS = ("labelSelector", "metricLabelSelector")
_VERSION_SECONDS = 60.0
_DISCOVERY_SECONDS = 30.0


class _Wanted(NamedTuple):
    """`path` is below the version."""

    path: str
    resource: str
    metric: str


class _Version(NamedTuple):
    """The best version that a cluster serves, None if none; valid until then."""

    version: GroupVersion | None
    until: float


class CustomMetrics:
    def __init__(self, clusters: MeasuredClusters, clock: Clock) -> None:
        self._clusters = clusters
        self._clock = clock
        self._versions: dict[str, _Version] = {}
        self._served: tuple[Obj, ...] = ()
        self._discovered = float("-inf")
        self.generation = 0
        """Rises when `resources` has changed."""

    # discovery

    def resources(self) -> tuple[Obj, ...]:
        """Return the metrics of all clusters, as they were at the last `discover`."""
        return self._served

    async def discover(self) -> None:
        if self._clock.monotonic() < self._discovered + _DISCOVERY_SECONDS:
            return
        self._discovered = self._clock.monotonic()
        answers = await self._clusters.get_all(await self._paths(""), {})
        entries = {entry["name"]: entry for answer in answers for entry in answer.body.get("resources") or ()}
        served = tuple(entries[name] for name in sorted(entries))
        if served != self._served:
            self._served = served
            self.generation += 1

    # requests

    async def handle(self, request: Request, version: GroupVersion) -> Result:
        if request.info.verb not in ("get", "list"):
            raise MethodNotAllowed()
        wanted = _wanted(request.info)
        answers = await self._clusters.get_all(await self._paths(wanted.path), _query(request))
        items = added_up(items_of(answers), version)
        if not items:
            raise missing(wanted.metric, wanted.resource)
        return list_of(version, "MetricValueList", items)

    async def _paths(self, below: str) -> dict[str, str]:
        """Return the path to request from each cluster that has such an API."""
        names = self._clusters.names()
        versions = await asyncio.gather(*(self._version_of(name) for name in names))
        return {
            name: f"/apis/{version}/{below}".rstrip("/")
            for name, version in zip(names, versions, strict=True)
            if version is not None
        }

    async def _version_of(self, name: str) -> GroupVersion | None:
        known, now = self._versions.get(name), self._clock.monotonic()
        if known is not None and now < known.until:
            return known.version
        answer = await self._clusters.get(name, _GROUP, {})
        served = {each.get("version") for each in answer.body.get("versions") or ()} if answer is not None else set()
        best = next((version for version in CUSTOM if version.version in served), None)
        self._versions[name] = _Version(best, now + _VERSION_SECONDS)
        return best


def _wanted(info: RequestInfo) -> _Wanted:
    """Return the metrics of an object (or, with the name *, of selected ones), or of a namespace itself."""
    if info.resource == "metrics" and info.namespace and info.name and not info.subresource:
        return _Wanted(f"namespaces/{info.namespace}/metrics/{info.name}", "namespaces", info.name)
    if not info.subresource or info.rest:
        raise NotFound.resource()
    namespace = f"namespaces/{info.namespace}/" if info.namespace else ""
    return _Wanted(f"{namespace}{info.resource}/{info.name}/{info.subresource}", info.resource, info.subresource)


def _query(request: Request) -> dict[str, str]:
    query = {key: value for key in _SELECTORS if (value := request.query.get(key))}
    try:
        for selector in query.values():
            parse_labels(selector)
    except ValueError as error:
        raise BadRequest(f"unable to parse requirement: {error}") from error
    return query


def items_of(answers: Iterable[Answer]) -> Iterable[Obj]:
    return (item for answer in answers for item in answer.body.get("items") or ())


def added_up(items: Iterable[Obj], version: GroupVersion) -> list[Obj]:
    """Return an item for each name of a described object, with the sum of its values, in the form of this version."""
    latest: dict[str, Obj] = {}
    sums: dict[str, Quantity] = {}
    for item in items:
        name = (item.get("describedObject") or {}).get("name") or ""
        value = Quantity.parse(item.get("value") or "0")
        latest[name] = item
        sums[name] = sums[name] + value if name in sums else value
    return [_in_version(latest[name], str(sums[name]), version) for name in sorted(latest)]


def _in_version(item: Obj, value: str, version: GroupVersion) -> Obj:
    metric: Mapping[str, object] = item.get("metric") or {
        "name": item.get("metricName"),
        "selector": item.get("selector"),
    }
    window = item.get("windowSeconds", item.get("window"))
    described: Obj = {"describedObject": item.get("describedObject") or {}}
    measured: Obj = {"timestamp": item.get("timestamp"), "value": value}
    if version.version == "v1beta1":
        named = {"metricName": metric["name"], "selector": metric.get("selector")}
        return {**described, **named, **measured, **({} if window is None else {"window": window})}
    return {**described, "metric": metric, **measured, **({} if window is None else {"windowSeconds": window})}
