"""custom.metrics.k8s.io: numbers that describe objects of the cluster.

Pods have the metrics that their load gives them. A workload's metric is the sum over its pods. Any object may have
metrics of its own, by a setting that names it or by the load annotation it carries.
"""

from __future__ import annotations

from collections.abc import Iterator

from karmada.kube.kinds.resource import Reader, Resource
from karmada.kube.objects import meta
from karmada.kube.objects.errors import BadRequest, NotFound
from karmada.kube.objects.gvk import GroupResource, GroupVersion
from karmada.kube.objects.quantity import Quantity
from karmada.kube.objects.selectors import LabelSelector, parse_labels
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.server.aggregation.metrics_objects import missing
from karmada.kube.server.aggregation.metrics_rendering import list_of
from karmada.kube.server.http.request import Request
from karmada.kube.server.http.results import Result
from karmada.kube.server.registry import Registry
from karmada.kube.sim.metrics.amounts import ANNOTATION, annotated, nano_at
from karmada.kube.sim.metrics.load import WORKLOADS, LoadModel
from karmada.kube.sim.metrics.reading import Reading
from karmada.kube.sim.metrics.shapes import WINDOW_SECONDS

_PODS, _NAMESPACES = GroupResource("", "pods"), GroupResource("", "namespaces")


class CustomMetrics:
    def __init__(self, load: LoadModel, registry: Registry, reader: Reader) -> None:
        self._load = load
        self._registry = registry
        self._reader = reader

    # what there is

    def object_metrics(self) -> frozenset[str]:
        """kind/metric of the metrics that settings give to objects."""
        rules = self._load.rules.values()
        return frozenset(f"{rule.setting.kind}/{name}" for rule in rules for name in rule.setting.object)

    def served(self) -> list[tuple[str, bool]]:
        """resource/metric, and whether the resource is namespaced."""
        found = {(f"pods/{name}", True) for name in self._load.pod_metrics()}
        by_kind = {resource.gvk.kind: resource for resource in self._registry.stored().values()}
        for described in self.object_metrics():
            kind, _, metric = described.partition("/")
            resource = by_kind.get(kind)
            if resource is not None:
                found.add((f"{resource.group_resource}/{metric}", resource.namespaced))
        return sorted(found)

    # requests

    def handle(self, request: Request, version: GroupVersion) -> Result:
        info = request.info
        if info.resource == "metrics" and info.namespace and not info.subresource:
            return self._answer(request, version, _NAMESPACES, "", info.namespace, info.name)
        if not info.subresource or info.rest:
            raise NotFound.resource()
        plural, _, group = info.resource.partition(".")
        return self._answer(request, version, GroupResource(group, plural), info.namespace, info.name, info.subresource)

    def _answer(
        self, request: Request, version: GroupVersion, wanted: GroupResource, namespace: str, name: str, metric: str
    ) -> Result:
        resource = self._resource(wanted)
        if resource is None:
            raise missing(metric, str(wanted))
        try:
            labels = parse_labels(request.query.get("labelSelector"))
            series = parse_labels(request.query.get("metricLabelSelector"))
        except ValueError as error:
            raise BadRequest(f"unable to parse requirement: {error}") from error
        reading = Reading(self._load)
        described = self._objects(resource, namespace, name, labels)
        found = [
            (obj, value)
            for obj in described
            if (value := self._value(reading, resource, obj, metric, series)) is not None
        ]
        known = metric in self._load.pod_metrics() if wanted == _PODS else bool(found)
        if not found and (name != "*" or not known):
            raise missing(metric, str(wanted), "" if name == "*" else name)
        items = [_item(version, resource, obj, metric, value, reading.now, series) for obj, value in found]
        return list_of(version, "MetricValueList", items)

    def _resource(self, wanted: GroupResource) -> Resource | None:
        """Return a resource by plural and group; without a group the core's, else the first that has the name."""
        exact = self._registry.versions_of(wanted)
        if exact:
            return exact[0]
        if wanted.group:
            return None
        return next((resource for resource in self._registry if resource.plural == wanted.resource), None)

    def _objects(self, resource: Resource, namespace: str, name: str, labels: LabelSelector) -> Iterator[Obj]:
        if name == "*":
            listed = self._reader.list(resource.storage_resource, namespace)
            yield from (obj for obj in sorted(listed, key=meta.key) if labels.matches(meta.labels(obj)))
            return
        obj = self._reader.get(resource.storage_resource, namespace, name)
        if obj is None:
            raise NotFound.of(resource.group_resource, name)
        yield obj

    def _value(self, reading: Reading, resource: Resource, obj: Obj, metric: str, series: LabelSelector) -> int | None:
        kind = resource.gvk.kind
        value = reading.object_metric(kind, meta.namespace(obj), meta.name(obj), metric, series)
        if value is not None:
            return value
        if resource.group_resource == _PODS:
            return reading.metric(obj, metric, series)
        if kind in WORKLOADS:
            return reading.workload_metric(meta.uid(obj), metric, series)
        amount = annotated(meta.annotations(obj).get(ANNOTATION, "")).each.get(metric)
        return nano_at(amount, 0.0) if amount is not None and series.matches(None) else None


def _item(
    version: GroupVersion, resource: Resource, obj: Obj, metric: str, nano: int, now: float, series: LabelSelector
) -> Obj:
    described: Obj = {"kind": resource.gvk.kind}
    if meta.namespace(obj):
        described["namespace"] = meta.namespace(obj)
    described |= {"name": meta.name(obj), "apiVersion": resource.api_version}
    selector = _label_selector(series)
    value = {"timestamp": rfc3339(now), "value": str(Quantity(nano))}
    if version.version == "v1beta1":
        return {
            "describedObject": described,
            "metricName": metric,
            "window": WINDOW_SECONDS,
            **value,
            "selector": selector,
        }
    return {
        "describedObject": described,
        "metric": {"name": metric, "selector": selector},
        "windowSeconds": WINDOW_SECONDS,
        **value,
    }


def _label_selector(series: LabelSelector) -> Obj | None:
    """Return the metric selector of the request as an object; None if there is none."""
    if series.everything:
        return None
    return {"matchLabels": dict(series.equalities)}
