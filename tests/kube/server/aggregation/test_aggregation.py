from __future__ import annotations

import asyncio
import base64
import gzip
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
from aiohttp import web
from yarl import URL

from karmada.kube.client.client import Client
from karmada.kube.objects.errors import ApiError, ServiceUnavailable
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import APISERVICES, CRDS, NAMESPACES, SERVICES, SLICES
from karmada.kube.objects.meta import get_condition
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Retry, requeue
from karmada.kube.runtime.keys import Key
from karmada.kube.server.app import ApiServer
from karmada.kube.server.auth.headers import escape_key
from karmada.kube.server.watchcache.cache import encode_value, storage_key
from tests.support.custom_kinds import definition, version
from tests.support.eventually import LIMIT, eventually
from tests.support.running import api_server
from tests.support.tls_backend import TlsBackend, authority, endpoint_slice, service, serving

TOYS = "/apis/toys.example.com/v1/namespaces/default/toys"
CA = base64.b64encode(authority().cert_pem).decode()
RESOURCES: list[Obj] = [
    {"name": "toys", "singularName": "toy", "namespaced": True, "kind": "Toy", "verbs": ["get", "list", "watch"],
     "shortNames": ["ty"]},
    {"name": "toys/exec", "singularName": "", "namespaced": True, "kind": "Toy", "verbs": ["create", "get"]},
]  # fmt: skip


class Toys:
    """An aggregated server for toys.example.com/v1."""

    def __init__(self) -> None:
        self.seen: list[web.BaseRequest] = []
        self.bodies: list[bytes] = []
        self.healthy = True
        self.next_event = asyncio.Event()
        self.hung_up = asyncio.Event()
        self.openapi_requested: list[str] = []

    def hung_up_after_the_next_event(self) -> bool:
        """A watch notices that its client went away when it writes."""
        self.next_event.set()
        return self.hung_up.is_set()

    async def serve(self, raw: web.BaseRequest) -> web.StreamResponse:
        if raw.path == "/apis/toys.example.com/v1":
            if not self.healthy:
                return web.Response(status=500, text="broken")
            return web.json_response({"kind": "APIResourceList", "groupVersion": "toys.example.com/v1",
                                      "resources": RESOURCES})  # fmt: skip
        if raw.path.startswith("/openapi/"):
            self.openapi_requested.append(raw.headers.get("If-None-Match", ""))
            if raw.headers.get("If-None-Match") == '"TAG"':
                return web.Response(status=304)
            return web.json_response({"openapi": "3.0.0", "info": {"title": "toys"}}, headers={"ETag": '"TAG"'})
        self.seen.append(raw)
        self.bodies.append(await raw.read())
        if "watch" in raw.query:
            return await self._watch(raw)
        if raw.path.endswith("/exec"):
            return await self._upgrade(raw)
        if raw.path.endswith("/missing"):
            return web.json_response(
                {"kind": "Status", "code": 404, "reason": "NotFound", "message": "no toy"}, status=404
            )
        if raw.path.endswith("/hangs-up"):
            assert raw.transport is not None
            raw.transport.abort()
            raise ConnectionResetError
        return web.json_response({"kind": "ToyList", "items": []}, headers={"X-From": "toys", "Warning": '299 - "old"'})

    async def _watch(self, raw: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        await response.prepare(raw)
        try:
            for number in range(1, 100):
                await response.write(b'{"type":"ADDED","object":{"metadata":{"name":"toy-%d"}}}\n' % number)
                await self.next_event.wait()
                self.next_event.clear()
        except (ConnectionError, asyncio.CancelledError):
            self.hung_up.set()
            raise
        return response

    async def _upgrade(self, raw: web.BaseRequest) -> web.StreamResponse:
        """SPDY as far as the proxy sees: 101, a greeting, then everything comes back in capitals."""
        if raw.query.get("refuse"):
            return web.Response(status=403, text="no exec for you")
        transport = raw.transport
        assert transport is not None
        reader = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(reader)
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        writer = asyncio.StreamWriter(transport, protocol, reader, asyncio.get_running_loop())
        head = f"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: {raw.headers['Upgrade']}\r\n"
        writer.write(head.encode() + b"X-Stream: v4\r\n\r\nhello\n")
        while some := await reader.read(1 << 16):
            writer.write(some.upper())
            await writer.drain()
        self.hung_up.set()
        raise ConnectionResetError


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("server")


@pytest.fixture
async def server(data_dir: Path) -> AsyncIterator[ApiServer]:
    async with api_server(data_dir, controllers=False) as server:
        yield server


@pytest.fixture
def client(server: ApiServer) -> Client:
    return server.client()


@pytest.fixture
async def toys() -> Toys:
    return Toys()


@pytest.fixture
async def backend(server: ApiServer, toys: Toys) -> AsyncIterator[TlsBackend]:
    pair = serving("127.0.0.1", "toys.tools.svc")
    async with TlsBackend(pair, client_ca=server.pki.front_proxy_ca.cert_pem) as backend:
        backend.handler = lambda raw: toys.serve(raw)
        yield backend


@pytest.fixture
async def http(server: ApiServer) -> AsyncIterator[aiohttp.ClientSession]:
    context = admin_tls(server)
    connector = aiohttp.TCPConnector(ssl=context)
    async with aiohttp.ClientSession(f"https://127.0.0.1:{server.port}", connector=connector) as session:
        yield session


def admin_tls(server: ApiServer) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=server.pki.ca.cert_pem.decode())
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.load_cert_chain(server.pki.directory / "admin.crt", server.pki.directory / "admin.key")
    return context


def api_service(**spec: Any) -> Obj:
    whole = {
        "group": "toys.example.com",
        "version": "v1",
        "service": {"namespace": "tools", "name": "toys"},
        "caBundle": CA,
        "groupPriorityMinimum": 2000,
        "versionPriority": 10,
    }
    meta = {"name": "v1.toys.example.com"}
    return {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": meta, "spec": whole | spec}


async def make_service(client: Client, **spec: Any) -> None:
    await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "tools"}})
    await client.create(SERVICES, service("toys", "tools", **spec))


async def make_external(client: Client, port: int, **spec: Any) -> Obj:
    """A Service that leads to loopback, and the APIService for it."""
    await make_service(client, type="ExternalName", externalName="127.0.0.1")
    return await client.create(
        APISERVICES, api_service(service={"namespace": "tools", "name": "toys", "port": port}, **spec)
    )


async def plant(server: ApiServer, obj: Obj, expected: int = 0) -> int:
    """Past validation, which lets no endpoint be on loopback."""
    meta = {"uid": "u", "creationTimestamp": "2024-01-01T00:00:00Z", **obj["metadata"]}
    key = storage_key(SLICES.group_resource, meta["namespace"], meta["name"])
    return await server.store.write(key, encode_value({**obj, "metadata": meta}), expected=expected)


def available(server: ApiServer, name: str = "v1.toys.example.com") -> Obj:
    obj = server.cache.get(APISERVICES.group_resource, "", name)
    return get_condition(((obj or {}).get("status") or {}).get("conditions"), "Available") or {}


async def reason(server: ApiServer, wanted: str) -> Obj:
    found = await eventually(
        lambda: available(server).get("reason") == wanted and available(server), show=lambda: available(server)
    )
    assert isinstance(found, dict)
    return found


@pytest.fixture
async def served(server: ApiServer, client: Client, backend: TlsBackend) -> None:
    """The toys are there."""
    await make_external(client, backend.port)
    await reason(server, "Passed")


# availability


@pytest.mark.usefixtures("served")
async def test_a_backend_that_answers_is_available(server: ApiServer) -> None:
    condition = available(server)
    assert condition["lastTransitionTime"]
    assert {k: condition[k] for k in ("type", "status", "reason", "message")} == {
        "type": "Available",
        "status": "True",
        "reason": "Passed",
        "message": "all checks passed",
    }


async def test_a_missing_service_is_reported_and_its_arrival_noticed(
    server: ApiServer, client: Client, backend: TlsBackend
) -> None:
    await client.create(APISERVICES, api_service())
    missing = await reason(server, "ServiceNotFound")
    assert (missing["status"], missing["message"]) == ("False", 'service/toys in "tools" is not present')
    await make_service(client, ports=[{"name": "tls", "port": 443}])
    no_slices = await reason(server, "EndpointsNotFound")
    assert no_slices["message"] == 'cannot find endpointslices for service/toys in "tools"'
    unready = endpoint_slice("toys", "tools", backend.port, port_name="tls", ready=False)
    revision = await plant(server, unready)
    no_addresses = await reason(server, "MissingEndpoints")
    assert no_addresses["message"] == ('endpoints for service/toys in "tools" have no addresses with port name "tls"')
    await plant(server, endpoint_slice("toys", "tools", backend.port, port_name="tls"), revision)
    await reason(server, "Passed")


async def test_a_service_on_another_port_is_reported(server: ApiServer, client: Client) -> None:
    await make_service(client, ports=[{"port": 443}])
    await client.create(APISERVICES, api_service(service={"namespace": "tools", "name": "toys", "port": 8443}))
    wrong = await reason(server, "ServicePortError")
    assert wrong["message"] == 'service/toys in "tools" is not listening on port 8443'


async def test_a_backend_that_refuses_connections_fails_the_check(server: ApiServer, client: Client) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        await make_external(client, port)
        failed = await reason(server, "FailedDiscoveryCheck")
    url = f"https://127.0.0.1:{port}/apis/toys.example.com/v1"
    refused = f"dial tcp 127.0.0.1:{port}: connect: connection refused"
    assert failed["message"] == f'failing or missing response from {url}: Get "{url}": {refused}'


async def test_a_backend_that_answers_badly_fails_the_check_and_is_soon_checked_again(
    server: ApiServer, client: Client, backend: TlsBackend, toys: Toys
) -> None:
    toys.healthy = False
    await make_external(client, backend.port)
    failed = await reason(server, "FailedDiscoveryCheck")
    url = f"https://127.0.0.1:{backend.port}/apis/toys.example.com/v1"
    assert failed["message"] == f"failing or missing response from {url}: bad status from {url}: 500"
    toys.healthy = True
    await reason(server, "Passed")


async def test_a_backend_with_a_certificate_of_another_authority_fails_the_check(
    server: ApiServer, client: Client, backend: TlsBackend
) -> None:
    others = base64.b64encode(authority("others").cert_pem).decode()
    made = await make_external(client, backend.port, caBundle=others)
    failed = await reason(server, "FailedDiscoveryCheck")
    assert failed["message"].endswith("x509: certificate signed by unknown authority")
    live = await client.get(APISERVICES, "v1.toys.example.com")
    spec = {**{k: v for k, v in made["spec"].items() if k != "caBundle"}, "insecureSkipTLSVerify": True}
    await client.update(APISERVICES, {**live, "spec": spec})
    await reason(server, "Passed")


@pytest.mark.usefixtures("served")
async def test_availability_is_checked_again_and_lost_backends_are_stale(
    server: ApiServer, toys: Toys, http: aiohttp.ClientSession
) -> None:
    key = Key("", "v1.toys.example.com")
    assert await server.aggregator.availability.reconcile(key) == requeue(30)
    toys.healthy = False
    assert await server.aggregator.availability.reconcile(key) == Retry
    await reason(server, "FailedDiscoveryCheck")
    async with http.get("/apis/toys.example.com/v1") as response:
        assert response.status == 503
    async with http.get(TOYS) as response:
        assert (response.status, await response.text()) == (503, "service unavailable\n")
        assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
    aggregated = await discovery(http)
    assert aggregated["toys.example.com"]["versions"][0]["freshness"] == "Stale"


# discovery and OpenAPI


async def discovery(http: aiohttp.ClientSession) -> dict[str, Obj]:
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    async with http.get("/apis", headers={"Accept": accept}) as response:
        return {group["metadata"]["name"]: group for group in orjson.loads(await response.read())["items"]}


@pytest.mark.usefixtures("served")
async def test_discovery_shows_the_resources_of_the_backend(http: aiohttp.ClientSession) -> None:
    async with http.get("/apis/toys.example.com/v1") as response:
        assert [r["name"] for r in (await response.json())["resources"]] == ["toys", "toys/exec"]
    [version] = (await discovery(http))["toys.example.com"]["versions"]
    [resource] = version["resources"]
    assert (version["freshness"], resource["resource"], resource["shortNames"]) == ("Current", "toys", ["ty"])
    assert resource["subresources"][0]["subresource"] == "exec"


@pytest.mark.usefixtures("served")
async def test_the_openapi_document_of_the_backend_is_served_as_ours(
    server: ApiServer, toys: Toys, http: aiohttp.ClientSession
) -> None:
    async with http.get("/openapi/v3") as response:
        place = (await response.json())["paths"]["apis/toys.example.com/v1"]["serverRelativeURL"]
    assert place.endswith("?hash=TAG")
    async with http.get(place) as response:
        assert (await response.json())["info"] == {"title": "toys"}
    await server.aggregator.availability.reconcile(Key("", "v1.toys.example.com"))
    assert toys.openapi_requested == ["", '"TAG"']
    _, packed = server.aggregator.openapi_documents()["apis/toys.example.com/v1"]
    assert b"toys" in gzip.decompress(packed)


@pytest.mark.usefixtures("served")
async def test_a_deleted_api_service_takes_its_group_along(
    server: ApiServer, client: Client, http: aiohttp.ClientSession
) -> None:
    before = server.aggregator.generation
    await client.delete(APISERVICES, "v1.toys.example.com")
    assert server.aggregator.generation > before
    async with http.get("/apis/toys.example.com/v1") as response:
        assert response.status == 404
    async with http.get(TOYS) as response:
        assert response.status == 404
    assert "toys.example.com" not in await discovery(http)


# requests


@pytest.mark.usefixtures("served")
async def test_a_request_reaches_the_backend_with_the_identity_of_the_caller_and_none_of_its_credentials(
    toys: Toys, http: aiohttp.ClientSession
) -> None:
    forged = {
        "Authorization": "Bearer secret",
        "X-Remote-User": "root",
        "X-Remote-Group": "system:masters",
        "X-Remote-Extra-Team": "x",
        "Impersonate-User": "bea",
        "Impersonate-Group": "system:masters",
        "Impersonate-Extra-" + escape_key("example.com/Team"): "blue",
        "X-Custom": "kept",
        "Keep-Alive": "5",
    }
    place = f"{TOYS}?limit=5&labelSelector=a%3Db%2Cc"
    async with http.get(URL(place, encoded=True), headers=forged) as response:
        assert (response.status, response.headers["X-From"]) == (200, "toys")
        assert response.headers["Warning"] == '299 - "old"'
        assert await response.json() == {"kind": "ToyList", "items": []}
    [seen] = toys.seen
    headers = seen.headers
    assert seen.raw_path == place
    assert headers["X-Remote-User"] == "bea"
    assert headers.getall("X-Remote-Group") == ["system:masters", "system:authenticated"]
    assert headers["X-Remote-Extra-example.com%2F%54eam"] == "blue"
    assert headers["X-Custom"] == "kept"
    assert headers["X-Forwarded-For"] == "127.0.0.1"
    gone = {"authorization", "impersonate-user", "x-remote-extra-team", "keep-alive"}
    assert not gone & {name.lower() for name in headers}
    assert seen.get_extra_info("peercert")["subject"][-1][0][1] == "front-proxy-client"


@pytest.mark.usefixtures("served")
async def test_bodies_are_forwarded_and_errors_come_back_as_they_are(toys: Toys, http: aiohttp.ClientSession) -> None:
    async with http.post(f"{TOYS}/missing?dryRun=All", json={"kind": "Toy"}) as response:
        assert (response.status, (await response.json())["message"]) == (404, "no toy")
    [seen] = toys.seen
    assert (seen.method, seen.query["dryRun"], seen.headers["Content-Type"]) == ("POST", "All", "application/json")
    assert orjson.loads(toys.bodies[0]) == {"kind": "Toy"}


@pytest.mark.usefixtures("served")
async def test_a_watch_streams_every_event_as_it_comes_and_ends_with_the_client(
    toys: Toys, http: aiohttp.ClientSession
) -> None:
    async with http.get(f"{TOYS}?watch=true") as response:
        assert await response.content.readline() == b'{"type":"ADDED","object":{"metadata":{"name":"toy-1"}}}\n'
        toys.next_event.set()
        assert await response.content.readline() == b'{"type":"ADDED","object":{"metadata":{"name":"toy-2"}}}\n'
    toys.next_event.set()
    await eventually(toys.hung_up_after_the_next_event)


@pytest.mark.usefixtures("served")
async def test_a_backend_that_hangs_up_is_503_with_the_reason(http: aiohttp.ClientSession) -> None:
    async with http.post(f"{TOYS}/hangs-up") as response:
        assert (response.status, await response.text()) == (503, "EOF\n")


async def open_tunnel(
    server: ApiServer, path: str, ahead: bytes = b""
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=admin_tls(server))
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n"
    writer.write(head.encode() + ahead)
    return reader, writer


@pytest.mark.usefixtures("served")
async def test_an_upgrade_becomes_a_pipe_for_bytes(server: ApiServer, toys: Toys) -> None:
    reader, writer = await open_tunnel(server, f"{TOYS}/bear/exec?command=ls")
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 101 Switching Protocols\r\n")
    assert b"X-Stream: v4" in head
    assert b"Upgrade: SPDY/3.1" in head
    assert await reader.readline() == b"hello\n"
    for text in (b"one", b"two", b"x" * 300_000):
        writer.write(text + b"\n")
        assert await reader.readexactly(len(text) + 1) == text.upper() + b"\n"
    [seen] = toys.seen
    assert (seen.headers["Upgrade"], seen.headers["X-Remote-User"]) == ("SPDY/3.1", "system:admin")
    writer.close()
    await asyncio.wait_for(toys.hung_up.wait(), LIMIT)


@pytest.mark.usefixtures("served")
async def test_an_upgrade_that_the_backend_refuses_is_an_ordinary_answer(server: ApiServer) -> None:
    reader, writer = await open_tunnel(server, f"{TOYS}/bear/exec?refuse=1")
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 403 ")
    assert await reader.readexactly(15) == b"no exec for you"
    writer.close()


@pytest.mark.usefixtures("served")
async def test_a_websocket_passes_through_without_the_token_among_its_protocols(
    toys: Toys, http: aiohttp.ClientSession
) -> None:
    serve = toys.serve

    async def talk(raw: web.BaseRequest) -> web.StreamResponse:
        if not raw.path.endswith("/chat"):
            return await serve(raw)
        toys.seen.append(raw)
        socket = web.WebSocketResponse(protocols=["v5.channel.k8s.io"])
        await socket.prepare(raw)
        async for message in socket:
            await socket.send_str(f"you said {message.data}")
        return socket

    toys.serve = talk  # type: ignore[method-assign]
    protocols = ("base64url.bearer.authorization.k8s.io.c2VjcmV0", "v5.channel.k8s.io")
    async with http.ws_connect(f"{TOYS}/bear/chat", protocols=protocols) as talking:
        assert talking.protocol == "v5.channel.k8s.io"
        await talking.send_str("hi")
        assert (await talking.receive(timeout=LIMIT)).data == "you said hi"
    assert toys.seen[-1].headers["Sec-WebSocket-Protocol"] == "v5.channel.k8s.io"


@pytest.mark.usefixtures("served")
async def test_in_process_clients_are_proxied_too(server: ApiServer, client: Client, toys: Toys) -> None:
    toys_resource = GVR("toys.example.com", "v1", "toys")
    assert await client.list(toys_resource, "default", label_selector="a in (b, c)") == {"kind": "ToyList", "items": []}
    [seen] = toys.seen
    assert seen.query["labelSelector"] == "a in (b, c)"
    assert seen.headers["X-Remote-User"] == "system:apiserver"
    with pytest.raises(ApiError) as caught:
        await client.get(toys_resource, "missing", "default")
    assert (caught.value.http_code, caught.value.message) == (404, "no toy")


@pytest.mark.usefixtures("served")
async def test_in_process_clients_can_watch(client: Client, toys: Toys) -> None:
    events = await client.watch(GVR("toys.example.com", "v1", "toys"), "default", resource_version="5")
    first = await asyncio.wait_for(anext(events), LIMIT)
    assert (first.type, first.object["metadata"]["name"]) == ("ADDED", "toy-1")
    toys.next_event.set()
    assert (await asyncio.wait_for(anext(events), LIMIT)).object["metadata"]["name"] == "toy-2"
    assert toys.seen[0].query["resourceVersion"] == "5"
    await events.aclose()  # type: ignore[attr-defined]
    await eventually(toys.hung_up_after_the_next_event)


async def test_in_process_clients_see_an_unavailable_backend(client: Client) -> None:
    await client.create(APISERVICES, api_service())
    with pytest.raises(ApiError) as caught:
        await client.list(GVR("toys.example.com", "v1", "toys"), "default")
    assert caught.value.http_code == ServiceUnavailable.code
    assert caught.value.message == "service unavailable"


async def test_callers_without_rights_do_not_reach_the_backend(server: ApiServer, served: None, toys: Toys) -> None:
    context = ssl.create_default_context(cadata=server.pki.ca.cert_pem.decode())
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    url = f"https://127.0.0.1:{server.port}{TOYS}"
    async with aiohttp.ClientSession() as session, session.get(url, ssl=context) as response:
        assert response.status == 403
    assert toys.seen == []


# registration


async def test_every_served_group_version_has_a_local_api_service(server: ApiServer, client: Client) -> None:
    versions = {f"{v.version}.{v.group}" for v in server.registry.versions()}
    await eventually(lambda: {o["metadata"]["name"] for o in server.cache.list(APISERVICES.group_resource)} >= versions)
    core = await client.get(APISERVICES, "v1.")
    assert core["spec"] == {"version": "v1", "groupPriorityMinimum": 18000, "versionPriority": 15}
    assert core["metadata"]["labels"] == {"kube-aggregator.kubernetes.io/automanaged": "onstart"}
    apps = await client.get(APISERVICES, "v1.apps")
    assert (apps["spec"]["group"], apps["spec"]["groupPriorityMinimum"]) == ("apps", 17800)
    condition = available(server, "v1.apps")
    assert (condition["status"], condition["reason"]) == ("True", "Local")
    assert condition["message"] == "Local APIServices are always available"
    assert not server.aggregator.owns(server.registry.versions()[0])


def toy_crd() -> Obj:
    return definition("toys.example.com", "Toy", version(), version("v1alpha1", served=False, storage=False))


async def test_the_api_service_of_a_crd_comes_and_goes_with_it(server: ApiServer, client: Client) -> None:
    await client.create(CRDS, toy_crd())
    name = "v1.toys.example.com"
    made = await eventually(lambda: server.cache.get(APISERVICES.group_resource, "", name))
    assert made["metadata"]["labels"] == {"kube-aggregator.kubernetes.io/automanaged": "true"}
    assert (made["spec"]["groupPriorityMinimum"], made["spec"]["versionPriority"]) == (1000, 100)
    assert server.cache.get(APISERVICES.group_resource, "", "v1alpha1.toys.example.com") is None
    await client.delete(APISERVICES, name)
    await eventually(lambda: server.cache.get(APISERVICES.group_resource, "", name))
    await client.delete(CRDS, "toys.toys.example.com")
    await eventually(lambda: server.cache.get(APISERVICES.group_resource, "", name) is None)


async def test_objects_are_read_again_only_after_one_has_changed(
    server: ApiServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    registration, passes = server.aggregator.registration, list[Key]()
    everything, reconcile = Key("", ""), registration._reconcile
    await eventually(lambda: registration._reconciled == registration._state())

    async def counted() -> None:
        passes.append(everything)
        await reconcile()

    monkeypatch.setattr(registration, "_reconcile", counted)
    await registration.reconcile(everything)
    assert passes == []
    await client.create(CRDS, toy_crd())
    await registration.reconcile(everything)
    assert passes


@pytest.mark.usefixtures("served")
async def test_an_api_service_of_another_owner_is_left_alone_and_wins_over_a_crd(
    server: ApiServer, client: Client, toys: Toys
) -> None:
    await client.create(CRDS, toy_crd())
    await server.aggregator.registration.reconcile(None)  # type: ignore[arg-type]
    assert "service" in (await client.get(APISERVICES, "v1.toys.example.com"))["spec"]
    await client.list(GVR("toys.example.com", "v1", "toys"), "default")
    assert len(toys.seen) == 1
