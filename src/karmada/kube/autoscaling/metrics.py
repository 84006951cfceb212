"""Where an autoscaler's numbers come from: the metrics APIs, read through plain requests, so any cluster will do.

All values are in thousandths. Whatever goes wrong is a MetricsError whose text ends up in the autoscaler's conditions.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Hashable
from typing import Any, NamedTuple, Protocol, TypeVar

from karmada.kube.client.client import Client
from karmada.kube.client.discovery import NoMatch
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.clock import SYSTEM, Clock
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.quantity import Quantity
from karmada.kube.objects.selectors import labels_from
from karmada.kube.objects.times import parse_duration, parse_time
from karmada.kube.objects.types import Obj

_CUSTOM, _EXTERNAL = "/apis/custom.metrics.k8s.io", "/apis/external.metrics.k8s.io/v1beta1"
_RESOURCE = "/apis/metrics.k8s.io/v1beta1"
_DEFAULT_WINDOW = 60.0
NO_RESOURCE_METRICS = "no metrics returned from resource metrics API"
NO_CUSTOM_METRICS = "no metrics returned from custom metrics API"
_UNKNOWN_RESOURCE, _UNKNOWN_PATH = "the server could not find the requested resource", "404 page not found"

K = TypeVar("K", bound=Hashable)


class MetricsError(Exception):
    """The metric has no usable value."""


class PodMetric(NamedTuple):
    """One pod's value: `value` in thousandths, measured at `timestamp` over the `window` seconds before."""

    value: int
    timestamp: float
    window: float = _DEFAULT_WINDOW


class Metrics(Protocol[K]):
    """The metrics an autoscaler reads; pods have keys. Selectors are in their text form, `""` selects everything."""

    async def resource(self, namespace: str, selector: str, resource: str, container: str) -> dict[K, PodMetric]:
        """Return what pods use of a resource: all their containers together, or the one that is named."""

    async def pods(self, namespace: str, selector: str, metric: str, metric_selector: str) -> dict[K, PodMetric]:
        """Return a metric of the pods themselves."""

    async def object(self, namespace: str, described: Obj, metric: str, metric_selector: str) -> int:
        """Return a metric of one object: `described` names its apiVersion, kind and name."""

    async def external(self, namespace: str, metric: str, metric_selector: str) -> list[int]:
        """Return the values of a metric that describes nothing in the cluster."""


class MetricsSource(Protocol):
    """Where metrics come from: what the aggregated APIs return, whoever implements them."""

    async def pod_metrics(self, namespace: str, selector: str) -> list[Obj]:
        """PodMetrics of metrics.k8s.io."""

    async def pod_values(self, namespace: str, selector: str, metric: str, metric_selector: str) -> list[Obj]:
        """MetricValues of custom.metrics.k8s.io that describe pods."""

    async def object_value(self, namespace: str, described: Obj, metric: str, metric_selector: str) -> int:
        """Return the value of custom.metrics.k8s.io for one object."""


class MetricsClient:
    """The metrics APIs of a server. The preferred version of custom metrics is read again after `version_lifetime`."""

    def __init__(self, client: Client, *, clock: Clock = SYSTEM, version_lifetime: float = math.inf) -> None:
        self._client = client
        self._clock = clock
        self._lifetime = version_lifetime
        self._custom_version = ""
        self._discovered = -math.inf

    async def pod_metrics(self, namespace: str, selector: str) -> list[Obj]:
        path = f"{_RESOURCE}/namespaces/{namespace}/pods"
        answer = await self._get("resource", path, "pods.metrics.k8s.io", labelSelector=selector)
        return answer.get("items") or []

    async def pod_values(self, namespace: str, selector: str, metric: str, metric_selector: str) -> list[Obj]:
        path = f"namespaces/{namespace}/pods/*/{metric}"
        return await self._custom(path, metric, labelSelector=selector, metricLabelSelector=metric_selector)

    async def object_value(self, namespace: str, described: Obj, metric: str, metric_selector: str) -> int:
        path = f"{await self._path_of(namespace, described)}/{metric}"
        items = await self._custom(path, metric, metricLabelSelector=metric_selector)
        return Quantity.parse(items[0]["value"]).milli()

    async def external_values(self, namespace: str, metric: str, metric_selector: str) -> list[int]:
        path = f"{_EXTERNAL}/namespaces/{namespace}/{metric}"
        what = f"{metric}.external.metrics.k8s.io"
        answer = await self._get("external", path, what, labelSelector=metric_selector)
        items = answer.get("items") or []
        if not items:
            raise MetricsError("no metrics returned from external metrics API")
        return [Quantity.parse(item["value"]).milli() for item in items]

    # requests

    async def _get(self, api: str, path: str, what: str, **query: str) -> Obj:
        parameters = {key: value for key, value in query.items() if value}
        answer: Obj = await _worded(api, what, self._client.raw("GET", path, query=parameters))
        return answer

    async def _custom(self, path: str, metric: str, **query: str) -> list[Obj]:
        if not self._custom_version or self._clock.monotonic() - self._discovered >= self._lifetime:
            group = await self._get("custom", _CUSTOM, "custom.metrics.k8s.io")
            self._custom_version = (group.get("preferredVersion") or group["versions"][0])["version"]
            self._discovered = self._clock.monotonic()
        what = f"{metric}.custom.metrics.k8s.io"
        try:
            answer = await self._get("custom", f"{_CUSTOM}/{self._custom_version}/{path}", what, **query)
        except MetricsError as error:
            if isinstance(error.__cause__, ApiError) and error.__cause__.http_code == 404:
                self._custom_version = ""  # the version may no longer be served
            raise
        items: list[Obj] = answer.get("items") or []
        if not items:
            raise MetricsError(NO_CUSTOM_METRICS)
        return items

    async def _path_of(self, namespace: str, described: Obj) -> str:
        """Return the metric of an object in the autoscaler's own namespace, whatever namespace it names."""
        gvk = GVK.parse(described.get("apiVersion") or "v1", described["kind"])
        if (gvk.group, gvk.kind) == ("", "Namespace"):
            return f"namespaces/{namespace}/metrics"
        mapping = await _worded("custom", gvk.kind, self._client.mapper.mapping(gvk.group_kind))
        place = f"{mapping.gvr.group_resource}/{described['name']}"
        return f"namespaces/{namespace}/{place}" if mapping.namespaced else place


async def _worded(api: str, what: str, request: Awaitable[Any]) -> Any:
    """Return the response; failures become a MetricsError."""
    try:
        return await request
    except ApiError as error:
        unknown = error.message in (_UNKNOWN_RESOURCE, _UNKNOWN_PATH)
        text = f"{_UNKNOWN_RESOURCE} (get {what})" if unknown else error.message
        raise MetricsError(f"unable to fetch metrics from {api} metrics API: {text}") from error
    except (ConnectionFailed, NoMatch, TimeoutError) as error:
        raise MetricsError(f"unable to fetch metrics from {api} metrics API: {error}") from error


def usage_of(item: Obj, resource: str, container: str) -> PodMetric | None:
    """Return the usage of all containers or the named one; None for a pod without a number for one of them."""
    total = 0
    containers = item.get("containers") or ()
    if container:
        containers = [c for c in containers if c["name"] == container]
        if not containers:
            meta = item["metadata"]
            where = f"{meta['namespace']}/{meta['name']}"
            raise MetricsError(f"container {container} not present in metrics for pod {where}")
    for part in containers:
        amount = (part.get("usage") or {}).get(resource)
        if amount is None:
            return None
        total += Quantity.parse(amount).milli()
    if not containers:
        return None
    window = parse_duration(item["window"]) if item.get("window") else _DEFAULT_WINDOW
    return PodMetric(total, parse_time(item["timestamp"]), window)


def value_of(item: Obj) -> PodMetric:
    """Return the value of a MetricValue, of either version."""
    seconds = float(item.get("windowSeconds") or item.get("window") or _DEFAULT_WINDOW)
    return PodMetric(Quantity.parse(item["value"]).milli(), parse_time(item["timestamp"]), seconds)


class NamedMetrics:
    """Metrics of the pods of one cluster, by their names."""

    def __init__(self, client: MetricsClient) -> None:
        self._client = client

    async def resource(self, namespace: str, selector: str, resource: str, container: str) -> dict[str, PodMetric]:
        items = await self._client.pod_metrics(namespace, selector)
        if not items:
            raise MetricsError(NO_RESOURCE_METRICS)
        read = ((item["metadata"]["name"], usage_of(item, resource, container)) for item in items)
        return {name: metric for name, metric in read if metric is not None}

    async def pods(self, namespace: str, selector: str, metric: str, metric_selector: str) -> dict[str, PodMetric]:
        items = await self._client.pod_values(namespace, selector, metric, metric_selector)
        return {item["describedObject"]["name"]: value_of(item) for item in items}

    async def object(self, namespace: str, described: Obj, metric: str, metric_selector: str) -> int:
        return await self._client.object_value(namespace, described, metric, metric_selector)

    async def external(self, namespace: str, metric: str, metric_selector: str) -> list[int]:
        return await self._client.external_values(namespace, metric, metric_selector)


def selector_text(metric: Obj) -> str:
    """Return a metric's own selector in the text form."""
    selector = metric.get("selector")
    try:
        return str(labels_from(selector)) if selector else ""
    except ValueError as error:
        raise MetricsError(str(error)) from error
