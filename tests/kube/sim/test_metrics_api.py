from __future__ import annotations

import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from karmada.kube.client.client import Client
from karmada.kube.client.transport import Call
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import ApiError, Forbidden, MethodNotAllowed, NotFound
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import APISERVICES, NODES, PODS, ROLE_BINDINGS, SERVICES
from karmada.kube.objects.meta import get_condition
from karmada.kube.objects.quantity import Quantity
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informers import Informers
from karmada.kube.server.app import ApiServer
from karmada.kube.server.auth.user import AUTHENTICATED, User
from karmada.kube.server.config import ServerConfig
from karmada.kube.sim.context import Context
from karmada.kube.sim.metrics.api import MetricsApis
from karmada.kube.sim.metrics.load import LoadModel, Setting
from karmada.kube.sim.profile import Profile
from tests.support.cases import cases
from tests.support.eventually import eventually

POD_METRICS, NODE_METRICS = GVR("metrics.k8s.io", "v1beta1", "pods"), GVR("metrics.k8s.io", "v1beta1", "nodes")
CUSTOM, EXTERNAL = "/apis/custom.metrics.k8s.io", "/apis/external.metrics.k8s.io/v1beta1"
NAMES = (
    "v1beta1.metrics.k8s.io",
    "v1beta1.custom.metrics.k8s.io",
    "v1beta2.custom.metrics.k8s.io",
    "v1beta1.external.metrics.k8s.io",
)


@dataclass
class Cluster:
    server: ApiServer
    clock: FakeClock
    client: Client
    load: LoadModel
    context: Context

    async def put(
        self,
        name: str,
        load: str = "",
        labels: dict[str, str] | None = None,
        *,
        phase: str = "Running",
        age: float = 60.0,
    ) -> Obj:
        meta = {"name": name, "labels": labels or {}, "annotations": {"sim.io/load": load} if load else {}}
        spec = {"nodeName": "n1", "containers": [{"name": "c", "image": "nginx"}]}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
        await self.client.create(PODS, body, "default")
        started = rfc3339(self.clock.now() - age)
        status = {
            "phase": phase,
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": started}],
            "containerStatuses": [
                {"name": "c", "image": "nginx", "imageID": "", "ready": True, "restartCount": 0,
                 "state": {"running": {"startedAt": started}}}
            ],
        }  # fmt: skip
        patch = {"status": status}
        pod = await self.client.patch(PODS, name, "default", patch, type="strategic", subresource="status")
        await self.context.until_seen(self.load.pods, [pod])
        return pod

    async def get(self, path: str, **query: str) -> Any:
        return await self.client.raw("GET", path, query=query)


@asynccontextmanager
async def cluster(folder: Path) -> AsyncIterator[Cluster]:
    clock = FakeClock(time.time() // 1)  # certificates must be good now
    server = ApiServer(ServerConfig(data_dir=folder, storage="memory://", port=0), clock)
    client = server.client(user_agent="kubectl")
    informers = Informers(client, clock=clock)
    context = Context(lambda name: server.client(user_agent=name), informers, clock, Profile("test"))
    load = LoadModel(context)
    MetricsApis(context, load).install(server)
    await server.start()
    informers.start()
    await informers.wait_synced()
    try:
        capacity = {"status": {"capacity": {"cpu": "4", "memory": "16Gi"}}}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": {"zone": "a"}}, **capacity}
        made = await client.create(NODES, node)
        await context.until_seen(load.nodes, [made])
        reader = server.cache

        def available(name: str) -> bool:
            found = reader.get(APISERVICES.group_resource, "", name)
            conditions = ((found or {}).get("status") or {}).get("conditions")
            return (get_condition(conditions, "Available") or {}).get("status") == "True"

        await eventually(lambda: all(available(name) for name in NAMES))
        yield Cluster(server, clock, client, load, context)
    finally:
        await informers.stop()
        await server.stop()


@pytest.fixture
async def sim(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with cluster(tmp_path) as running:
        yield running


# --- as an aggregated API


async def test_api_services_name_the_metrics_server_and_are_available(sim: Cluster) -> None:
    found = await sim.client.get(APISERVICES, "v1beta1.metrics.k8s.io")
    assert found["spec"]["service"] == {"namespace": "kube-system", "name": "metrics-server", "port": 443}
    condition = get_condition(found["status"]["conditions"], "Available")
    assert condition is not None
    assert (condition["status"], condition["reason"], condition["message"]) == ("True", "Passed", "all checks passed")


async def test_discovery_lists_the_groups_and_their_resources(sim: Cluster) -> None:
    groups = {group["name"]: group for group in (await sim.get("/apis"))["groups"]}
    assert groups["metrics.k8s.io"]["preferredVersion"]["groupVersion"] == "metrics.k8s.io/v1beta1"
    assert groups["custom.metrics.k8s.io"]["preferredVersion"]["version"] == "v1beta2"
    listed = (await sim.get("/apis/metrics.k8s.io/v1beta1"))["resources"]
    assert [(r["name"], r["kind"], r["namespaced"], r["verbs"]) for r in listed] == [
        ("nodes", "NodeMetrics", False, ["get", "list"]),
        ("pods", "PodMetrics", True, ["get", "list"]),
    ]


async def test_discovery_shows_a_metric_as_soon_as_something_has_it(sim: Cluster) -> None:
    async def names(path: str) -> list[str]:
        return [resource["name"] for resource in (await sim.get(path))["resources"]]

    assert await names(f"{CUSTOM}/v1beta2") == []
    await sim.put("p", "http_requests=50")
    assert await names(f"{CUSTOM}/v1beta2") == ["pods/http_requests"]
    object_metric = Setting(kind="Ingress", name="main", namespace="default", object={"hits": "5"})
    sim.load.set("ingress", object_metric)
    sim.load.set("queue", Setting(external={"queue_length": "30"}))
    assert await names(f"{CUSTOM}/v1beta1") == ["ingresses.networking.k8s.io/hits", "pods/http_requests"]
    assert await names(EXTERNAL) == ["queue_length"]


async def test_aggregated_discovery_shows_metrics_below_the_resource_they_describe(sim: Cluster) -> None:
    await sim.put("p", "http_requests=50")
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    found = await sim.client.transport.call(Call("GET", "/apis", accept=accept))
    [group] = [item for item in found["items"] if item["metadata"]["name"] == "custom.metrics.k8s.io"]
    assert [(v["version"], v["freshness"]) for v in group["versions"]] == [
        ("v1beta2", "Current"),
        ("v1beta1", "Current"),
    ]
    [pods] = group["versions"][0]["resources"]
    assert (pods["resource"], pods["scope"], pods["verbs"]) == ("pods", "Namespaced", [])
    kind = {"group": "", "version": "", "kind": "MetricValueList"}
    assert pods["subresources"] == [{"subresource": "http_requests", "responseKind": kind, "verbs": ["get"]}]


async def test_without_its_service_the_group_is_unavailable_and_comes_back_with_it(sim: Cluster) -> None:
    service = await sim.client.get(SERVICES, "metrics-server", "kube-system")
    await sim.client.delete(SERVICES, "metrics-server", "kube-system")
    await eventually(lambda: not _available(sim))
    with pytest.raises(ApiError, match="service unavailable") as refused:
        await sim.client.list(NODE_METRICS)
    assert refused.value.http_code == 503
    body = {**service, "metadata": {"name": "metrics-server", "namespace": "kube-system"}}
    await sim.client.create(SERVICES, body, "kube-system")
    await eventually(lambda: _available(sim))


def _available(sim: Cluster) -> bool:
    found = sim.server.cache.get(APISERVICES.group_resource, "", NAMES[0])
    assert found is not None
    condition = get_condition(found["status"]["conditions"], "Available")
    return condition is not None and condition["status"] == "True"


async def test_who_may_not_read_metrics_is_refused_and_a_viewer_may(sim: Cluster) -> None:
    await sim.put("p")
    ann = sim.server.client(User("ann", groups=(AUTHENTICATED,)))
    with pytest.raises(Forbidden, match=r'cannot list resource "pods" in API group "metrics.k8s.io"'):
        await ann.list(POD_METRICS, "default")
    subject = {"kind": "User", "name": "ann", "apiGroup": "rbac.authorization.k8s.io"}
    role = {"kind": "ClusterRole", "name": "view", "apiGroup": "rbac.authorization.k8s.io"}
    binding = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "ann"}}
    await sim.client.create(ROLE_BINDINGS, {**binding, "subjects": [subject], "roleRef": role}, "default")

    def aggregated() -> bool:
        view = sim.server.cache.get(GVR("rbac.authorization.k8s.io", "v1", "clusterroles").group_resource, "", "view")
        return any("metrics.k8s.io" in rule.get("apiGroups", ()) for rule in (view or {}).get("rules") or ())

    await eventually(aggregated)
    assert len((await ann.list(POD_METRICS, "default"))["items"]) == 1


# --- metrics.k8s.io


async def test_pods_are_listed_with_what_their_containers_use(sim: Cluster) -> None:
    await sim.put("b", "cpu=250m,memory=128Mi", {"app": "b"})
    await sim.put("a", "cpu=1u", {"app": "a"})
    listed = await sim.client.list(POD_METRICS, "default")
    assert listed["kind"] == "PodMetricsList"
    assert [item["metadata"]["name"] for item in listed["items"]] == ["a", "b"]
    b = listed["items"][1]
    assert b["containers"] == [{"name": "c", "usage": {"cpu": "250m", "memory": "128Mi"}}]
    assert b["metadata"]["labels"] == {"app": "b"}
    assert (b["timestamp"], b["window"]) == (rfc3339(sim.clock.now()), "10.0s")
    for found in (
        await sim.client.list(POD_METRICS, "default", label_selector="app=b"),
        await sim.client.list(POD_METRICS, "default", field_selector="metadata.name=b"),
    ):
        assert [item["metadata"]["name"] for item in found["items"]] == ["b"]
    assert await sim.client.get(POD_METRICS, "b", "default") == b


async def refusal(sim: Cluster, resource: GVR, name: str, namespace: str = "") -> str:
    with pytest.raises(NotFound) as refused:
        await sim.client.get(resource, name, namespace)
    return refused.value.message


async def test_a_pod_that_is_missing_or_not_running_is_not_found_as_a_pod(sim: Cluster) -> None:
    assert await refusal(sim, POD_METRICS, "p", "default") == 'pods "p" not found'
    await sim.put("p", "cpu=1m", phase="Pending")
    assert await refusal(sim, POD_METRICS, "p", "default") == 'pods "p" not found'


async def test_a_running_pod_without_a_sample_is_not_found_as_metrics(sim: Cluster) -> None:
    await sim.put("p", "cpu=1m", age=1.0)
    assert await refusal(sim, POD_METRICS, "p", "default") == 'podmetrics.metrics.k8s.io "default/p" not found'


async def test_a_missing_node_is_not_found_as_a_node_and_a_lost_one_as_metrics(sim: Cluster) -> None:
    assert await refusal(sim, NODE_METRICS, "n9") == 'node "n9" not found'
    lost = {"type": "Ready", "status": "Unknown", "lastHeartbeatTime": None, "lastTransitionTime": None}
    patched = await sim.client.patch(NODES, "n1", "", {"status": {"conditions": [lost]}}, subresource="status")
    await sim.context.until_seen(sim.load.nodes, [patched])
    assert await refusal(sim, NODE_METRICS, "n1") == 'nodemetrics.metrics.k8s.io "n1" not found'


async def test_a_node_uses_what_its_pods_use_and_something_for_itself_but_not_more_than_it_has(sim: Cluster) -> None:
    async def used() -> Quantity:
        node = await sim.client.get(NODE_METRICS, "n1")
        return Quantity.parse(node["usage"]["cpu"])

    alone = await used()
    await sim.put("p", "cpu=1,memory=1Gi")
    assert await used() == alone + Quantity.parse("1")
    await sim.put("q", "cpu=100")
    assert await used() == Quantity.parse("4")
    assert (await sim.client.list(NODE_METRICS, label_selector="zone=b"))["items"] == []


async def test_metrics_cannot_be_written(sim: Cluster) -> None:
    with pytest.raises(MethodNotAllowed):
        await sim.client.create(POD_METRICS, {"metadata": {"name": "x"}}, "default")


async def test_over_https_lists_can_be_had_as_a_table(sim: Cluster) -> None:
    await sim.put("p", "cpu=250m,memory=128Mi")
    pki = sim.server.pki
    tls = ssl.create_default_context(cadata=pki.ca.cert_pem.decode())
    certificate, key = sim.server.config.data_dir / "admin.crt", sim.server.config.data_dir / "admin.key"
    certificate.write_bytes(pki.admin.cert_pem)
    key.write_bytes(pki.admin.key_pem)
    tls.load_cert_chain(certificate, key)
    url = f"{sim.server.url}/apis/metrics.k8s.io/v1beta1/namespaces/default/pods"
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls)) as session:
        accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
        async with session.get(url, headers=accept) as response:
            table = await response.json()
        async with session.get(url) as response:
            plain = await response.json()
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "cpu", "memory", "Window"]
    assert table["rows"][0]["cells"] == ["p", "250m", "128Mi", "10.0s"]
    assert "kind" not in plain["items"][0]


# --- custom and external metrics


async def test_custom_metrics_of_pods_by_selector_and_by_name(sim: Cluster) -> None:
    await sim.put("a", "http_requests=50", {"app": "web"})
    await sim.put("b", "http_requests=1500m", {"app": "web"})
    await sim.put("c", "", {"app": "web"})
    path = f"{CUSTOM}/v1beta2/namespaces/default/pods"
    found = await sim.get(f"{path}/*/http_requests", labelSelector="app=web")
    assert (found["kind"], found["apiVersion"]) == ("MetricValueList", "custom.metrics.k8s.io/v1beta2")
    described = {"kind": "Pod", "namespace": "default", "name": "a", "apiVersion": "v1"}
    assert found["items"][0] == {
        "describedObject": described,
        "metric": {"name": "http_requests", "selector": None},
        "windowSeconds": 60,
        "timestamp": rfc3339(sim.clock.now()),
        "value": "50",
    }
    assert [item["value"] for item in found["items"]] == ["50", "1500m"]
    [old] = (await sim.get(f"{CUSTOM}/v1beta1/namespaces/default/pods/b/http_requests"))["items"]
    assert (old["metricName"], old["value"], old["window"]) == ("http_requests", "1500m", 60)
    assert (await sim.get(f"{path}/*/http_requests", labelSelector="app=other"))["items"] == []


@cases(
    ("pods/*/unknown", "the server could not find the metric unknown for pods"),
    ("pods/p/unknown", "the server could not find the metric unknown for pods p"),
    ("pods/missing/hits", 'pods "missing" not found'),
    ("gizmos.example.com/*/hits", "the server could not find the metric hits for gizmos.example.com"),
    ("pods", "the server could not find the requested resource"),
)
async def test_unknown_metrics_are_not_found(path: str, message: str, sim: Cluster) -> None:
    await sim.put("p", "hits=1")
    with pytest.raises(NotFound) as refused:
        await sim.get(f"{CUSTOM}/v1beta2/namespaces/default/{path}")
    assert refused.value.message == message


async def test_objects_have_metrics_by_setting_by_annotation_and_as_the_sum_of_their_pods(sim: Cluster) -> None:
    ports = {"ports": [{"port": 80}]}
    noted = {"name": "noted", "annotations": {"sim.io/load": "hits=7"}}
    await sim.client.create(
        SERVICES, {"apiVersion": "v1", "kind": "Service", "metadata": noted, "spec": ports}, "default"
    )
    set_by_us = Setting(kind="Namespace", name="default", object={"hits": "12"}, labels={"verb": "GET"})
    sim.load.set("namespace", set_by_us)
    sim.load.set("node", Setting(kind="Node", name="n1", object={"hits": "3"}))

    async def value(path: str, **query: str) -> str:
        [item] = (await sim.get(f"{CUSTOM}/v1beta2/{path}", **query))["items"]
        return str(item["value"])

    assert await value("namespaces/default/services/noted/hits") == "7"
    assert await value("namespaces/default/metrics/hits") == "12"
    assert await value("namespaces/default/metrics/hits", metricLabelSelector="verb=GET") == "12"
    assert await value("nodes/n1/hits") == "3"
    with pytest.raises(NotFound):
        await value("namespaces/default/metrics/hits", metricLabelSelector="verb=POST")


async def test_external_metrics_by_namespace_and_labels(sim: Cluster) -> None:
    sim.load.set("one", Setting(external={"queue_length": "30"}, labels={"queue": "one"}))
    sim.load.set("two", Setting(namespace="other", external={"queue_length": "5"}, labels={"queue": "two"}))

    async def values(namespace: str, **query: str) -> list[tuple[str, str]]:
        found = await sim.get(f"{EXTERNAL}/namespaces/{namespace}/queue_length", **query)
        assert found["kind"] == "ExternalMetricValueList"
        return [(item["metricLabels"]["queue"], item["value"]) for item in found["items"]]

    assert await values("default") == [("one", "30")]
    assert await values("other") == [("one", "30"), ("two", "5")]
    assert await values("other", labelSelector="queue=two") == [("two", "5")]
    with pytest.raises(NotFound, match="could not find the metric nothing"):
        await sim.get(f"{EXTERNAL}/namespaces/default/nothing")
