"""Ports of pods and services: port-forward and proxies."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web

from karmada.kube.client.client import Client
from karmada.kube.client.pod_streams import forward
from karmada.kube.objects.errors import BadRequest, ServiceUnavailable
from karmada.kube.objects.gvrs import PODS, SERVICES, SLICES
from karmada.kube.sim.kubelet.answers import Forward, Http
from karmada.kube.sim.kubelet.proxying import inside, parse_name
from tests.kube.sim.connecting.pods_reached import BASE, Cluster, tls_of
from tests.support.cases import cases
from tests.support.eventually import eventually

# --- port-forward over WebSocket


async def test_ports_are_forwarded_over_websocket(sim: Cluster) -> None:
    await sim.put("p")
    sim.answers.set("hello", Http(port=8080, body="hello"))
    tunnel = await forward(sim.https, "default", "p", 8080)
    await tunnel.send(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n")
    said = b""
    while piece := await tunnel.receive():
        said += piece
    await tunnel.close()
    assert said.startswith(b"HTTP/1.1 200 OK")
    assert said.endswith(b"hello")


@asynccontextmanager
async def real_server() -> AsyncIterator[int]:
    """Something that listens on this machine."""

    async def serve(request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/moved":
            return web.Response(status=302, headers={"Location": "/new?x=1"})
        seen = "authorization" in {name.lower() for name in request.headers}
        return web.Response(text=f"{request.method} {request.path_qs} {await request.text()} {seen}")

    runner = web.ServerRunner(web.Server(serve))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()


async def test_a_port_may_lead_to_something_real(sim: Cluster) -> None:
    await sim.put("p")
    async with real_server() as port:
        sim.answers.set("real", Forward(port=80, to=f"127.0.0.1:{port}"))
        tunnel = await forward(sim.https, "default", "p", 80)
        await tunnel.send(b"GET /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        said = b""
        while piece := await tunnel.receive():
            said += piece
        assert b"GET /x" in said
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls_of(sim.server))) as session:
            url = f"{sim.server.url}{BASE}/pods/p:80/proxy"
            headers = {"Authorization": "Basic eDp5"}
            async with session.post(f"{url}/deep/path?q=1", data=b"body", headers=headers) as response:
                assert await response.text() == "POST /deep/path?q=1 body False"
            async with session.get(f"{url}/moved", allow_redirects=False) as response:
                assert response.headers["Location"] == f"{BASE}/pods/p:80/proxy/new?x=1"
    with pytest.raises(ServiceUnavailable, match="connection refused"):
        await Client(sim.https).raw("GET", f"{BASE}/pods/p:80/proxy/x")


# --- proxies


async def test_services_lead_to_a_ready_pod(sim: Cluster) -> None:
    await sim.put("p")
    ports = [{"name": "http", "port": 80, "targetPort": 8080}]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"ports": ports}}
    await sim.client.create(SERVICES, service, "default")
    with pytest.raises(ServiceUnavailable, match=r'^no endpoints available for service "web"$'):
        await sim.raw(f"{BASE}/services/web:http/proxy/")
    endpoint = {"addresses": ["10.244.0.9"], "conditions": {"ready": True}, "targetRef": {"kind": "Pod", "name": "p"}}
    slice_ = {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
              "metadata": {"name": "web-1", "labels": {"kubernetes.io/service-name": "web"}},
              "ports": [{"name": "http", "port": 8080}], "endpoints": [endpoint]}  # fmt: skip
    await sim.client.create(SLICES, slice_, "default")
    sim.answers.set("page", Http(port=8080, path="^/hello$", body="hello", status=201))
    for name in ("web:http", "web:80", "http:web:80"):
        assert await sim.raw(f"{BASE}/services/{name}/proxy/hello") == "hello"
        assert await sim.raw(f"{BASE}/services/{name}/proxy/") == "ok from p"
    with pytest.raises(ServiceUnavailable, match=r'^no service port 81 found for service "web"$'):
        await sim.raw(f"{BASE}/services/web:81/proxy/")
    with pytest.raises(ServiceUnavailable, match="no endpoints available"):
        await sim.raw(f"{BASE}/services/web/proxy/")


async def test_a_pod_that_does_not_run_refuses_connections(sim: Cluster) -> None:
    await sim.put("p", running=False)
    with pytest.raises(ServiceUnavailable, match=r"^error trying to reach service: dial tcp .*: connection refused$"):
        await sim.raw(f"{BASE}/pods/p/proxy/")
    with pytest.raises(BadRequest, match="invalid pod request"):
        await sim.raw(f"{BASE}/pods/p:http/proxy/")


async def test_a_proxy_without_a_path_sends_to_its_root(sim: Cluster) -> None:
    await sim.put("p")
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls_of(sim.server))) as session,
        session.get(f"{sim.server.url}{BASE}/pods/p/proxy?a=b", allow_redirects=False) as response,
    ):
        assert (response.status, response.headers["Location"]) == (301, f"{BASE}/pods/p/proxy/?a=b")


async def test_nodes_have_the_pages_of_a_kubelet(sim: Cluster) -> None:
    await sim.put("p")
    base = "/api/v1/nodes/n1/proxy"
    assert await sim.raw(f"{base}/healthz") == "ok"
    assert [pod["metadata"]["name"] for pod in (await sim.raw(f"{base}/pods"))["items"]] == ["p"]
    assert (await sim.raw(f"{base}/containerLogs/default/p/c")).endswith("line 12\n")
    summary = await sim.raw(f"{base}/stats/summary")
    assert summary["node"]["nodeName"] == "n1"
    [pod] = summary["pods"]
    assert (pod["podRef"]["name"], [c["name"] for c in pod["containers"]]) == ("p", ["c"])
    with pytest.raises(ServiceUnavailable, match="connection refused"):
        await sim.raw("/api/v1/nodes/n1:9100/proxy/metrics")


async def test_cpu_seconds_grow_by_what_is_used(sim: Cluster) -> None:
    pod = await sim.put("p")
    await sim.client.patch(
        PODS, "p", "default", {"metadata": {"annotations": {"sim.io/load": "cpu=500m"}}}, type="merge"
    )
    await eventually(lambda: any("annotations" in found["metadata"] for found in sim.load.pods.list()))

    async def seconds() -> float:
        text = await sim.raw("/api/v1/nodes/n1/proxy/metrics/resource")
        name = 'container_cpu_usage_seconds_total{container="c",namespace="default",pod="p"}'
        [line] = [line for line in text.splitlines() if line.startswith(name)]
        return float(line.split()[1])

    assert await seconds() == pytest.approx(30.0)
    await sim.clock.advance(10)
    assert await seconds() == pytest.approx(35.0)
    assert pod["metadata"]["name"] == "p"


@cases(
    ("a", ("", "a", "")),
    ("a:80", ("", "a", "80")),
    ("https:a:", ("https", "a", "")),
    ("http:a:x", ("http", "a", "x")),
)
def test_names_may_carry_a_scheme_and_a_port(text: str, expected: tuple[str, str, str]) -> None:
    assert parse_name(text, "service") == expected


def test_names_with_other_schemes_are_refused() -> None:
    with pytest.raises(BadRequest, match='invalid service request "ftp:a:21"'):
        parse_name("ftp:a:21", "service")


@cases(
    ("/a", "/proxy/a"),
    ("b/c", "b/c"),
    ("http://pod:80/a?b=c", "/proxy/a?b=c"),
    ("https://elsewhere/a", "https://elsewhere/a"),
)
def test_redirects_stay_behind_the_proxy(location: str, expected: str) -> None:
    assert inside(location, "/proxy", "pod") == expected
