"""What is requested of the metrics APIs, and what becomes of their responses."""

from __future__ import annotations

from typing import Any

import pytest

from karmada.kube.autoscaling.metrics import MetricsClient, MetricsError, NamedMetrics, PodMetric
from karmada.kube.autoscaling.sources import printed
from karmada.kube.client.client import Client
from karmada.kube.client.discovery import Mapping
from karmada.kube.client.transport import Call, Transport
from karmada.kube.objects.errors import ApiError, NotFound
from karmada.kube.objects.gvk import GVK, GVR
from karmada.kube.objects.types import Obj
from tests.support.cases import cases


class Scripted(Transport):
    """A transport with fixed answers; records the requests."""

    def __init__(self, answers: dict[str, Obj]) -> None:
        self.answers = answers
        self.requests: list[Call] = []
        self.missing: ApiError = NotFound.resource()

    async def call(self, call: Call) -> Any:
        self.requests.append(call)
        if call.path not in self.answers:
            raise self.missing
        return self.answers[call.path]


class Mapper:
    async def mapping(self, kind: Any) -> Mapping:
        if kind.kind == "Node":
            return Mapping(GVR("", "v1", "nodes"), GVK("", "v1", "Node"), namespaced=False)
        return Mapping(GVR("apps", "v1", "deployments"), GVK("apps", "v1", "Deployment"), namespaced=True)


def metrics_client(answers: dict[str, Obj]) -> tuple[NamedMetrics, Scripted]:
    transport = Scripted(answers)
    return NamedMetrics(MetricsClient(Client(transport, mapper=Mapper()))), transport  # type: ignore[arg-type]


CUSTOM = "/apis/custom.metrics.k8s.io"
GROUP = {CUSTOM: {"preferredVersion": {"version": "v1beta2"}, "versions": [{"version": "v1beta2"}]}}


async def test_resource_metrics_are_summed_over_containers() -> None:
    usage = [{"name": "c", "usage": {"cpu": "250m"}}, {"name": "d", "usage": {"cpu": "123456789n"}}]
    item = {"metadata": {"name": "p", "namespace": "ns"}, "timestamp": "1970-01-01T00:01:00Z", "window": "15.5s"}
    half = {**item, "metadata": {"name": "q", "namespace": "ns"}, "containers": [{"name": "c", "usage": {}}]}
    path = "/apis/metrics.k8s.io/v1beta1/namespaces/ns/pods"
    client, transport = metrics_client({path: {"items": [{**item, "containers": usage}, half]}})
    assert await client.resource("ns", "app=web", "cpu", "") == {"p": PodMetric(374, 60.0, 15.5)}
    assert transport.requests[0].query == {"labelSelector": "app=web"}
    with pytest.raises(MetricsError, match="container d not present in metrics for pod ns/q"):
        await client.resource("ns", "", "cpu", "d")


@cases(NotFound.resource(), ApiError("404 page not found", code=404))
async def test_a_missing_metrics_api_is_reported_as_kubernetes_does(missing: ApiError) -> None:
    client, transport = metrics_client({})
    transport.missing = missing
    with pytest.raises(MetricsError) as error:
        await client.resource("ns", "", "cpu", "")
    assert str(error.value) == (
        "unable to fetch metrics from resource metrics API: "
        "the server could not find the requested resource (get pods.metrics.k8s.io)"
    )


async def test_custom_metrics_are_read_in_the_preferred_version() -> None:
    item = {"describedObject": {"name": "p"}, "timestamp": "1970-01-01T00:01:00Z", "value": "1500m"}
    answers: dict[str, Obj] = {**GROUP, f"{CUSTOM}/v1beta2/namespaces/ns/pods/*/rps": {"items": [item]}}
    client, transport = metrics_client(answers)
    assert await client.pods("ns", "app=web", "rps", "verb=GET") == {"p": PodMetric(1500, 60.0, 60.0)}
    assert transport.requests[-1].query == {"labelSelector": "app=web", "metricLabelSelector": "verb=GET"}


@cases(
    ({"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "namespaces/ns/deployments.apps/d/m"),
    ({"kind": "Node", "name": "n"}, "nodes/n/m"),
    ({"kind": "Namespace", "name": "another"}, "namespaces/ns/metrics/m"),
)
async def test_metrics_of_objects_have_paths_by_scope(described: Obj, path: str) -> None:
    client, _ = metrics_client({**GROUP, f"{CUSTOM}/v1beta2/{path}": {"items": [{"value": "7"}]}})
    assert await client.object("ns", described, "m", "") == 7000


async def test_external_metrics_come_as_a_list() -> None:
    path = "/apis/external.metrics.k8s.io/v1beta1/namespaces/ns/queue"
    client, transport = metrics_client({path: {"items": [{"value": "3"}, {"value": "500m"}]}})
    assert await client.external("ns", "queue", "q=w") == [3000, 500]
    assert transport.requests[0].query == {"labelSelector": "q=w"}


def test_selectors_are_printed_as_go_does() -> None:
    assert printed(None) == "nil"
    shown = printed(
        {"matchLabels": {"q": "w"}, "matchExpressions": [{"key": "k", "operator": "In", "values": ["a", "b"]}]}
    )
    assert shown == (
        "&LabelSelector{MatchLabels:map[string]string{q: w,},"
        "MatchExpressions:[]LabelSelectorRequirement{LabelSelectorRequirement{Key:k,Operator:In,Values:[a b],},},}"
    )
