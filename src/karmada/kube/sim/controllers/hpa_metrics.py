"""Where an autoscaler's numbers come from: the metrics APIs, read through plain requests, so any cluster will do.

All values are in thousandths. Whatever goes wrong is a MetricsError whose text ends up in the autoscaler's conditions.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, NamedTuple, Protocol

from karmada.kube.client.client import Client
from karmada.kube.client.discovery import NoMatch
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.quantity import Quantity
from karmada.kube.objects.selectors import labels_from
from karmada.kube.objects.times import parse_duration, parse_time
from karmada.kube.objects.types import Obj

_CUSTOM, _EXTERNAL = "/apis/custom.metrics.k8s.io", "/apis/external.metrics.k8s.io/v1beta1"
_RESOURCE = "/apis/metrics.k8s.io/v1beta1"
_DEFAULT_WINDOW = 60.0
_UNKNOWN_RESOURCE, _UNKNOWN_PATH = "the server could not find the requested resource", "404 page not found"


class MetricsError(Exception):
    """The metric has no usable value."""


class PodMetric(NamedTuple):
    """One pod's value: `value` in thousandths, measured at `timestamp` over the `window` seconds before."""

    value: int
    timestamp: float
    window: float = _DEFAULT_WINDOW


class Metrics(Protocol):
    """The metrics an autoscaler reads; selectors are in their text form, `""` selects everything."""

    async def resource(self, namespace: str, selector: str, resource: str, container: str) -> dict[str, PodMetric]:
        """What pods use of a resource, by pod name: all their containers together, or the one that is named."""

    async def pods(self, namespace: str, selector: str, metric: str, metric_selector: str) -> dict[str, PodMetric]:
        """A metric of the pods themselves, by pod name."""

    async def object(self, namespace: str, described: Obj, metric: str, metric_selector: str) -> int:
        """A metric of one object: `described` names its apiVersion, kind and name."""

    async def external(self, namespace: str, metric: str, metric_selector: str) -> list[int]:
        """The values of a metric that describes nothing in the cluster."""


class MetricsClient:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._custom_version = ""

    async def resource(self, namespace: str, selector: str, resource: str, container: str) -> dict[str, PodMetric]:
        path = f"{_RESOURCE}/namespaces/{namespace}/pods"
        answer = await self._get("resource", path, "pods.metrics.k8s.io", labelSelector=selector)
        items = answer.get("items") or []
        if not items:
            raise MetricsError("no metrics returned from resource metrics API")
        found: dict[str, PodMetric] = {}
        for item in items:
            value = _used(item, resource, container)
            if value is not None:
                window = parse_duration(item["window"]) if item.get("window") else _DEFAULT_WINDOW
                found[item["metadata"]["name"]] = PodMetric(value, parse_time(item["timestamp"]), window)
        return found

    async def pods(self, namespace: str, selector: str, metric: str, metric_selector: str) -> dict[str, PodMetric]:
        path = f"namespaces/{namespace}/pods/*/{metric}"
        items = await self._custom(path, metric, labelSelector=selector, metricLabelSelector=metric_selector)
        found: dict[str, PodMetric] = {}
        for item in items:
            seconds = float(item.get("windowSeconds") or item.get("window") or _DEFAULT_WINDOW)
            name = item["describedObject"]["name"]
            found[name] = PodMetric(Quantity.parse(item["value"]).milli(), parse_time(item["timestamp"]), seconds)
        return found

    async def object(self, namespace: str, described: Obj, metric: str, metric_selector: str) -> int:
        path = f"{await self._path_of(namespace, described)}/{metric}"
        items = await self._custom(path, metric, metricLabelSelector=metric_selector)
        return Quantity.parse(items[0]["value"]).milli()

    async def external(self, namespace: str, metric: str, metric_selector: str) -> list[int]:
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
        if not self._custom_version:
            group = await self._get("custom", _CUSTOM, "custom.metrics.k8s.io")
            self._custom_version = (group.get("preferredVersion") or group["versions"][0])["version"]
        what = f"{metric}.custom.metrics.k8s.io"
        try:
            answer = await self._get("custom", f"{_CUSTOM}/{self._custom_version}/{path}", what, **query)
        except MetricsError as error:
            if isinstance(error.__cause__, ApiError) and error.__cause__.http_code == 404:
                self._custom_version = ""  # the version may no longer be served
            raise
        items: list[Obj] = answer.get("items") or []
        if not items:
            raise MetricsError("no metrics returned from custom metrics API")
        return items

    async def _path_of(self, namespace: str, described: Obj) -> str:
        gvk = GVK.parse(described.get("apiVersion") or "v1", described["kind"])
        if (gvk.group, gvk.kind) == ("", "Namespace"):
            return f"namespaces/{described['name']}/metrics"
        mapping = await _worded("custom", gvk.kind, self._client.mapper.mapping(gvk.group_kind))
        place = f"{mapping.gvr.group_resource}/{described['name']}"
        return f"namespaces/{namespace}/{place}" if mapping.namespaced else place


async def _worded(api: str, what: str, request: Awaitable[Any]) -> Any:
    """The response; failures become a MetricsError."""
    try:
        return await request
    except ApiError as error:
        unknown = error.message in (_UNKNOWN_RESOURCE, _UNKNOWN_PATH)
        text = f"{_UNKNOWN_RESOURCE} (get {what})" if unknown else error.message
        raise MetricsError(f"unable to fetch metrics from {api} metrics API: {text}") from error
    except (ConnectionFailed, NoMatch, TimeoutError) as error:
        raise MetricsError(f"unable to fetch metrics from {api} metrics API: {error}") from error


def _used(item: Obj, resource: str, container: str) -> int | None:
    """A pod without a number for one of its containers has none at all."""
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
    return total if containers else None


def selector_text(metric: Obj) -> str:
    """A metric's own selector in the text form."""
    selector = metric.get("selector")
    return str(labels_from(selector)) if selector else ""
