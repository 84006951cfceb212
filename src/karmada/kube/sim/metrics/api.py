"""metrics.k8s.io, custom.metrics.k8s.io and external.metrics.k8s.io, as a cluster with metrics-server has them.

To clients they are aggregated APIs: APIServices that name a Service in kube-system. Behind the Service stands no other
program but this object, which the aggregator calls in-process; so discovery, authorisation and `kubectl get
apiservices` are those of any aggregated API, and removing an APIService or the Service takes its group away.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from karmada.kube.objects import meta
from karmada.kube.objects.errors import BadRequest, MethodNotAllowed, NotFound
from karmada.kube.objects.gvk import GroupResource, GroupVersion
from karmada.kube.objects.podstate import phase
from karmada.kube.objects.selectors import parse_fields, parse_labels
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key
from karmada.kube.server.aggregation.backends import ServiceName
from karmada.kube.server.aggregation.metrics_objects import (
    CUSTOM,
    EXTERNAL,
    METRICS,
    METRICS_RESOURCES,
    api_service,
    missing,
    reader_role,
    service,
)
from karmada.kube.server.aggregation.metrics_rendering import list_of, rendered
from karmada.kube.server.http.request import Query, Request
from karmada.kube.server.http.results import Result
from karmada.kube.sim.context import Context
from karmada.kube.sim.metrics.custom import CustomMetrics
from karmada.kube.sim.metrics.load import LoadModel
from karmada.kube.sim.metrics.reading import Reading
from karmada.kube.sim.metrics.shapes import external_value, node_metrics, pod_metrics

if TYPE_CHECKING:
    from karmada.kube.server.app import ApiServer

METRICS_SERVER = ServiceName("kube-system", "metrics-server")
METRICS_ADAPTER = ServiceName("kube-system", "metrics-adapter")
_PRIORITIES = {METRICS: (100, 100), CUSTOM[0]: (100, 200), CUSTOM[1]: (100, 100), EXTERNAL: (100, 100)}
_SELECTABLE = ("metadata.name", "metadata.namespace")


class MetricsApis:
    def __init__(self, context: Context, load: LoadModel) -> None:
        self._context = context
        self._load = load

    def install(self, server: ApiServer) -> None:
        """Before the server starts: it then has the objects that announce these APIs from its first second."""
        inside = server.aggregator.inside
        inside[METRICS_SERVER] = ResourceMetrics(self._load)
        inside[METRICS_ADAPTER] = AdaptedMetrics(self._load, CustomMetrics(self._load, server.registry, server.cache))
        server.more_defaults += announcements()


class ResourceMetrics:
    """metrics.k8s.io, with the errors of metrics-server: it knows running pods, and of those the ones with a sample."""

    generation = 0

    def __init__(self, load: LoadModel) -> None:
        self._load = load

    def resources(self, _version: GroupVersion) -> tuple[Obj, ...]:
        return METRICS_RESOURCES

    async def handle(self, request: Request, _version: GroupVersion) -> Result:
        info = request.info
        if info.subresource or info.resource not in ("nodes", "pods"):
            raise NotFound.resource()
        if info.verb not in ("get", "list"):
            raise MethodNotAllowed()
        reading = Reading(self._load)
        if info.resource == "nodes":
            items = self._nodes(reading, info.name if info.verb == "get" else "", request.query)
        else:
            items = self._pods(reading, info.namespace, info.name if info.verb == "get" else "", request.query)
        return rendered(request, info.resource, items, self._load.clock.now(), single=info.verb == "get")

    def _nodes(self, reading: Reading, name: str, query: Query) -> list[Obj]:
        if name:
            node = self._load.nodes.get(Key("", name))
            if node is None:
                raise NotFound.of(GroupResource("", "node"), name)
            used = reading.node(node)
            if used is None:
                raise NotFound.of(GroupResource(METRICS.group, "nodemetrics"), name)
            return [node_metrics(node, used, reading.now)]
        found = _selected(self._load.nodes.list(), query)
        return [node_metrics(node, used, reading.now) for node in found if (used := reading.node(node)) is not None]

    def _pods(self, reading: Reading, namespace: str, name: str, query: Query) -> list[Obj]:
        if name:
            pod = self._load.pods.get(Key(namespace, name))
            if pod is None or phase(pod) != "Running":
                raise NotFound.of(GroupResource("", "pods"), name)
            used = reading.containers(pod)
            if used is None:
                raise NotFound.of(GroupResource(METRICS.group, "podmetrics"), f"{namespace}/{name}")
            return [pod_metrics(pod, used, reading.now)]
        found = _selected(self._load.pods.list(namespace), query)
        return [pod_metrics(pod, used, reading.now) for pod in found if (used := reading.containers(pod)) is not None]


def _selected(objects: list[Obj], query: Query) -> list[Obj]:
    """Return the objects that match the query's selectors, by name."""
    try:
        labels = parse_labels(query.get("labelSelector"))
        fields = parse_fields(query.get("fieldSelector"))
    except ValueError as error:
        raise BadRequest(f"unable to parse requirement: {error}") from error
    for requirement in fields.requirements:
        if requirement.path not in _SELECTABLE:
            known = ", ".join(f'"{path}"' for path in _SELECTABLE)
            raise BadRequest(f'"{requirement.path}" is not a known field selector: only {known}')

    def value(obj: Obj, path: str) -> str:
        return str(meta.metadata(obj).get(path.removeprefix("metadata.")) or "")

    found = [
        obj
        for obj in objects
        if labels.matches(meta.labels(obj)) and (fields.everything or fields.matches(partial(value, obj)))
    ]
    return sorted(found, key=meta.key)


class AdaptedMetrics:
    """The APIs custom.metrics.k8s.io and external.metrics.k8s.io."""

    def __init__(self, load: LoadModel, custom: CustomMetrics) -> None:
        self._load = load
        self._custom = custom
        self._known: tuple[frozenset[str], ...] = ()
        self._changes = 0

    @property
    def generation(self) -> int:
        """Return a new number each time: the metrics are looked up on every discovery request."""
        known = (self._load.pod_metrics(), self._load.external_metrics(), self._custom.object_metrics())
        if known != self._known:
            self._known = known
            self._changes += 1
        return self._changes

    def resources(self, version: GroupVersion) -> tuple[Obj, ...]:
        if version == EXTERNAL:
            return tuple(_entry(name, "ExternalMetricValueList") for name in sorted(self._load.external_metrics()))
        return tuple(
            _entry(name, "MetricValueList", namespaced=namespaced) for name, namespaced in self._custom.served()
        )

    async def handle(self, request: Request, version: GroupVersion) -> Result:
        if request.info.verb not in ("get", "list"):
            raise MethodNotAllowed()
        if version == EXTERNAL:
            return self._external(request)
        return self._custom.handle(request, version)

    def _external(self, request: Request) -> Result:
        info = request.info
        if info.name or not info.namespace:
            raise NotFound.resource()
        metric = info.resource
        try:
            selector = parse_labels(request.query.get("labelSelector"))
        except ValueError as error:
            raise BadRequest(f"unable to parse requirement: {error}") from error
        if metric not in self._load.external_metrics():
            raise missing(metric, metric)
        now = self._load.clock.now()
        values = [v for v in self._load.external(info.namespace, metric) if selector.matches(v.labels)]
        return list_of(EXTERNAL, "ExternalMetricValueList", [external_value(metric, value, now) for value in values])


def _entry(name: str, kind: str, *, namespaced: bool = True) -> Obj:
    return {"name": name, "singularName": "", "namespaced": namespaced, "kind": kind, "verbs": ["get"]}


def announcements() -> list[Obj]:
    """Return what installing metrics-server and a metrics adapter leaves in a cluster."""
    served = [(METRICS, METRICS_SERVER), *((version, METRICS_ADAPTER) for version in (*CUSTOM, EXTERNAL))]
    return [
        *(service(name, {"k8s-app": name.name}) for name in (METRICS_SERVER, METRICS_ADAPTER)),
        *(
            api_service(version, name, _PRIORITIES[version], {"k8s-app": name.name}, skip_verify=True)
            for version, name in served
        ),
        reader_role({"k8s-app": METRICS_SERVER.name}),
    ]
