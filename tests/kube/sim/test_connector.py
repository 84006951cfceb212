"""The way into pods, over HTTPS, as clients take it."""

from __future__ import annotations

import asyncio
import base64
import ssl
import struct
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
from aiohttp import web

from karmada.kube.client.client import Client
from karmada.kube.client.https import HttpsTransport
from karmada.kube.client.kubeconfig import load_config
from karmada.kube.client.websocket import STDERR, STDOUT, RemoteCommand, attach, execute, forward
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import ApiError, BadRequest, Invalid, ServiceUnavailable
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informers import Informers
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig
from karmada.kube.sim.context import Context
from karmada.kube.sim.kubelet.answers import Answers, Command, Forward, Http, Log
from karmada.kube.sim.kubelet.connector import PodConnector
from karmada.kube.sim.kubelet.endpoint import KubeletServer
from karmada.kube.sim.kubelet.proxying import inside, parse_name
from karmada.kube.sim.kubelet.spdy import FIN, SYN_STREAM, HeaderWriter, control_frame, data_frame
from karmada.kube.sim.metrics.load import LoadModel
from karmada.kube.sim.profile import Profile
from tests.support.eventually import eventually

PODS, NODES, SERVICES = GVR("", "v1", "pods"), GVR("", "v1", "nodes"), GVR("", "v1", "services")
CONFIG_MAPS, SECRETS = GVR("", "v1", "configmaps"), GVR("", "v1", "secrets")
SLICES = GVR("discovery.k8s.io", "v1", "endpointslices")
BASE = "/api/v1/namespaces/default"
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


@dataclass
class Cluster:
    server: ApiServer
    clock: FakeClock
    client: Client
    https: HttpsTransport
    context: Context
    load: LoadModel
    connector: PodConnector

    @property
    def answers(self) -> Answers:
        return self.connector.answers

    async def put(
        self, name: str, *, running: bool = True, node: str = "n1", ended: Obj | None = None, **spec: Any
    ) -> Obj:
        """A pod that has been running for a minute."""
        containers = spec.pop("containers", [{"name": "c", "image": "nginx"}])
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}}}
        assigned = {"nodeName": node} if node else {}
        made = await self.client.create(
            PODS, {**body, "spec": {**assigned, "containers": containers, **spec}}, "default"
        )
        if running:
            state = {"running": {"startedAt": rfc3339(self.clock.now() - 60)}}
            made = await self.set_state(made, state, ended)
        await self.seen(made)
        return made

    async def set_state(self, pod: Obj, state: Obj, before: Obj | None = None, phase: str = "Running") -> Obj:
        statuses = [
            {"name": container["name"], "image": "nginx", "imageID": "", "ready": True, "restartCount": 0,
             "state": state, "lastState": {"terminated": before} if before else {}}
            for container in pod["spec"]["containers"]
        ]  # fmt: skip
        patch = {"status": {"phase": phase, "podIP": "10.244.0.9", "containerStatuses": statuses}}
        name = pod["metadata"]["name"]
        changed = await self.client.patch(PODS, name, "default", patch, type="merge", subresource="status")
        await self.seen(changed)
        return changed

    def asleep(self) -> int:
        """How many wait for the clock."""
        return sum(not future.done() for _, _, future in self.clock._sleepers)

    async def seen(self, *pods: Obj) -> None:
        await self.context.until_seen(self.load.pods, pods)

    async def run(self, pod: str, *command: str, **options: Any) -> tuple[int, bytes, bytes]:
        return await finished(await execute(self.https, "default", pod, command, **options))

    async def log(self, name: str, **query: str) -> str:
        text = await self.client.raw("GET", f"{BASE}/pods/{name}/log", query=query)
        return str(text)

    async def raw(self, path: str) -> Any:
        return await self.client.raw("GET", path)


async def finished(command: RemoteCommand) -> tuple[int, bytes, bytes]:
    said = {STDOUT: b"", STDERR: b""}
    async for channel, data in command.output():
        said[channel] += data
    return await command.exit_code(), said[STDOUT], said[STDERR]


@asynccontextmanager
async def cluster(folder: Path) -> AsyncIterator[Cluster]:
    clock = FakeClock(time.time() // 1)  # certificates must be good now
    server = ApiServer(ServerConfig(data_dir=folder, storage="memory://", port=0), clock)
    client = server.client(user_agent="kubectl")
    informers = Informers(client, clock=clock)
    context = Context(lambda name: server.client(user_agent=name), informers, clock, Profile("test"))
    load = LoadModel(context)
    connector = PodConnector(context, load)
    server.endpoints.connector = connector
    await server.start()
    https = HttpsTransport(load_config(server.kubeconfig))
    informers.start()
    await informers.wait_synced()
    accounts = server.cache
    try:
        named = GVR("", "v1", "serviceaccounts").group_resource
        await eventually(lambda: accounts.get(named, "default", "default"))
        status = {"addresses": [{"type": "InternalIP", "address": "172.18.0.2"}]}
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "n1", "labels": {"type": "sim"}},
            "status": status,
        }
        made = await client.create(NODES, node)
        await context.until_seen(load.nodes, [made])
        yield Cluster(server, clock, client, https, context, load, connector)
    finally:
        await https.close()
        await informers.stop()
        await server.stop()


@pytest.fixture
async def sim(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with cluster(tmp_path) as running:
        yield running


def tls_of(server: ApiServer) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=server.pki.ca.cert_pem.decode())
    certificate, key = server.config.data_dir / "t.crt", server.config.data_dir / "t.key"
    certificate.write_bytes(server.pki.admin.cert_pem)
    key.write_bytes(server.pki.admin.key_pem)
    context.load_cert_chain(certificate, key)
    return context


# --- logs


async def test_logs_are_read_by_container_and_run(sim: Cluster) -> None:
    before = {"exitCode": 1, "startedAt": rfc3339(sim.clock.now() - 100), "finishedAt": rfc3339(sim.clock.now() - 98)}
    await sim.put("p", ended=before)
    assert (await sim.log("p", tailLines="1")).endswith("p/c line 12\n")
    assert (await sim.log("p", previous="true")).endswith("p/c line 1\n")
    sim.answers.set("said", Log(namespace="default", text="ready\nsteady"))
    assert await sim.log("p") == "ready\nsteady\n"


@pytest.mark.parametrize(
    ("query", "error", "text"),
    [
        ({"container": "x"}, BadRequest, "container x is not valid for pod p"),
        ({"previous": "true"}, BadRequest, 'previous terminated container "c" in pod "p" not found'),
        ({"tailLines": "-1"}, Invalid, "must be greater than or equal to 0"),
    ],
)
async def test_bad_questions_about_logs_are_refused(
    sim: Cluster, query: dict[str, str], error: type[ApiError], text: str
) -> None:
    await sim.put("p")
    with pytest.raises(error) as refused:
        await sim.log("p", **query)
    assert text in refused.value.message


async def test_a_pod_on_no_node_has_no_log_and_one_that_waits_says_so(sim: Cluster) -> None:
    await sim.put("nowhere", running=False, node="")
    assert await sim.log("nowhere") == ""
    waits = await sim.put("waits", running=False)
    await sim.set_state(waits, {"waiting": {"reason": "ContainerCreating"}}, phase="Pending")
    with pytest.raises(BadRequest, match='container "c" in pod "waits" is waiting to start: ContainerCreating'):
        await sim.log("waits")


async def test_following_a_log_ends_with_the_container(sim: Cluster) -> None:
    pod = await sim.put("p")
    asleep = sim.asleep()
    url = f"{sim.server.url}{BASE}/pods/p/log?follow=true&tailLines=1"
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls_of(sim.server))) as session,
        session.get(url) as response,
    ):
        assert response.headers["Content-Type"] == "text/plain"
        assert (await response.content.readline()).endswith(b"p/c line 12\n")
        await eventually(lambda: sim.asleep() > asleep)
        await sim.clock.advance(5)
        assert (await response.content.readline()).endswith(b"p/c line 13\n")
        await sim.set_state(pod, {"terminated": {"exitCode": 0, "finishedAt": rfc3339(sim.clock.now())}})
        assert await response.content.read() == b""


# --- exec


async def test_a_command_runs_in_the_container_and_ends_with_its_code(sim: Cluster) -> None:
    await sim.put("p")
    assert await sim.run("p", "echo", "hi") == (0, b"hi\n", b"")
    assert await sim.run("p", "sh", "-c", "hostname; echo oops >&2; exit 3") == (3, b"p\n", b"oops\n")
    code, _, complaint = await sim.run("p", "nosuch")
    assert (code, b"not found" in complaint) == (127, True)


async def test_stdin_reaches_the_command(sim: Cluster) -> None:
    await sim.put("p")
    command = await execute(sim.https, "default", "p", ["cat"], stdin=True)
    await command.write(b"through ")
    await command.write(b"and through")
    await command.close_stdin()
    assert await finished(command) == (0, b"through and through", b"")


async def test_a_terminal_echoes_and_a_shell_prompts(sim: Cluster) -> None:
    await sim.put("p")
    command = await execute(sim.https, "default", "p", ["sh"], stdin=True, tty=True)
    await command.resize(80, 24)
    await command.write(b"echo hi\rexit 4\r")
    code, output, _ = await finished(command)
    assert code == 4
    assert b"echo hi\r\n" in output
    assert b"hi\r\n" in output


async def test_a_container_finds_its_environment_and_its_files(sim: Cluster) -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "conf"}, "data": {"a": "1", "b": "2"}}
    await sim.client.create(CONFIG_MAPS, config, "default")
    data = {"password": base64.b64encode(b"s3cret").decode()}
    await sim.client.create(
        SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "sec"}, "data": data}, "default"
    )
    env = [
        {"name": "PLAIN", "value": "x"},
        {"name": "BOTH", "value": "$(PLAIN)-$(MISSING)-$$(PLAIN)"},
        {"name": "KEY", "valueFrom": {"configMapKeyRef": {"name": "conf", "key": "a"}}},
        {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "sec", "key": "password"}}},
        {"name": "GONE", "valueFrom": {"secretKeyRef": {"name": "nosuch", "key": "k", "optional": True}}},
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "APP", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
        {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
    ]
    mounts = [
        {"name": "conf", "mountPath": "/etc/conf"},
        {"name": "conf", "mountPath": "/etc/one", "subPath": "a"},
        {"name": "sec", "mountPath": "/etc/sec"},
        {"name": "info", "mountPath": "/etc/info"},
    ]
    volumes = [
        {"name": "conf", "configMap": {"name": "conf"}},
        {"name": "sec", "secret": {"secretName": "sec", "items": [{"key": "password", "path": "deep/pw"}]}},
        {"name": "info", "downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
    ]
    limits = {"limits": {"cpu": "1500m"}}
    container = {"name": "c", "image": "nginx", "env": env, "volumeMounts": mounts, "resources": limits,
                 "envFrom": [{"prefix": "ALL_", "configMapRef": {"name": "conf"}}]}  # fmt: skip
    await sim.put("p", containers=[container], volumes=volumes)
    _, output, _ = await sim.run("p", "env")
    found = dict(line.split("=", 1) for line in output.decode().splitlines())
    wanted = {"PLAIN": "x", "BOTH": "x-$(MISSING)-$(PLAIN)", "KEY": "1", "PASSWORD": "s3cret", "NODE": "n1", "APP": "p",
              "CPU": "1500", "ALL_a": "1", "ALL_b": "2", "HOSTNAME": "p"}  # fmt: skip
    assert {name: found.get(name) for name in wanted} == wanted
    assert "GONE" not in found
    files = "cat /etc/conf/b /etc/one /etc/sec/deep/pw /etc/info/labels; ls /etc/conf"
    assert await sim.run("p", "sh", "-c", files) == (0, b'21s3cretapp="p"a\nb\n', b"")


async def test_the_service_account_token_is_a_real_one(sim: Cluster) -> None:
    await sim.put("p")
    _, token, _ = await sim.run("p", "cat", f"{ACCOUNT}/token")
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token.decode()}}
    answer = await sim.client.create(GVR("authentication.k8s.io", "v1", "tokenreviews"), review, "")
    assert answer["status"]["user"]["username"] == "system:serviceaccount:default:default"
    assert (await sim.run("p", "cat", f"{ACCOUNT}/namespace"))[1] == b"default"


async def test_configured_replies_are_given_to_the_pods_they_are_for(sim: Cluster) -> None:
    await sim.put("p")
    await sim.put("q")
    sim.answers.set("ping", Command(selector="app=p", pattern="^redis-cli", stdout="PONG\n", code=2))
    assert await sim.run("p", "redis-cli", "ping") == (2, b"PONG\n", b"")
    assert (await sim.run("q", "redis-cli", "ping"))[0] == 127
    with pytest.raises(ValueError, match="not a regular expression"):
        sim.answers.set("bad", Command(pattern="("))


@pytest.mark.parametrize(
    ("pod", "query", "text"),
    [
        ("two", "command=ls&stdout=true", "a container name must be specified for pod two, choose one of: [a b]"),
        ("two", "command=ls&stdout=true&container=x", "container x is not valid for pod two"),
        ("two", "stdout=true&container=a", "you must specify at least one command for the container"),
        ("two", "command=ls&container=a", "you must specify at least 1 of stdin, stdout, stderr"),
        ("two", "command=ls&stdout=true&container=a", "Upgrade request required"),
        ("nowhere", "command=ls&stdout=true", "pod nowhere does not have a host assigned"),
        (
            "done",
            "command=ls&stdout=true",
            "cannot exec into a container in a completed pod; current phase is Succeeded",
        ),
    ],
)
async def test_bad_connections_are_refused_before_anything_is_begun(
    sim: Cluster, pod: str, query: str, text: str
) -> None:
    await sim.put("two", containers=[{"name": "a", "image": "nginx"}, {"name": "b", "image": "nginx"}])
    await sim.put("nowhere", running=False, node="")
    done = await sim.put("done")
    await sim.set_state(done, {"terminated": {"exitCode": 0}}, phase="Succeeded")
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls_of(sim.server))) as session,
        session.post(f"{sim.server.url}{BASE}/pods/{pod}/exec?{query}") as response,
    ):
        assert response.status == 400
        assert (await response.json())["message"] == text


async def test_a_container_that_does_not_run_is_not_found(sim: Cluster) -> None:
    pod = await sim.put("p")
    await sim.set_state(pod, {"waiting": {"reason": "CrashLoopBackOff"}})
    headers = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1"}
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls_of(sim.server))) as session,
        session.post(f"{sim.server.url}{BASE}/pods/p/exec?command=ls&stdout=true", headers=headers) as response,
    ):
        assert (response.status, await response.text()) == (500, 'container not found ("c")')


async def test_a_lost_node_cannot_be_reached(sim: Cluster) -> None:
    await sim.put("p")
    unknown = {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
    node = await sim.client.patch(NODES, "n1", "", unknown, type="merge", subresource="status")
    await sim.context.until_seen(sim.load.nodes, [node])
    with pytest.raises(ApiError) as refused:
        await sim.log("p")
    where = 'Get "https://172.18.0.2:10250/containerLogs/default/p/c"'
    assert refused.value.message == f"{where}: dial tcp 172.18.0.2:10250: connect: no route to host"
    with pytest.raises(ServiceUnavailable, match="error trying to reach service"):
        await sim.raw(f"{BASE}/pods/p/proxy/")


async def test_a_client_that_leaves_ends_its_command(sim: Cluster) -> None:
    await sim.put("p")
    asleep = sim.asleep()
    command = await execute(sim.https, "default", "p", ["sleep", "1000"])
    await eventually(lambda: sim.asleep() == asleep + 1)
    await command.close()
    await eventually(lambda: sim.asleep() == asleep)


# --- attach


async def test_attaching_sends_stdin_back(sim: Cluster) -> None:
    await sim.put(
        "p", containers=[{"name": "c", "image": "busybox", "command": ["cat"], "stdin": True, "stdinOnce": True}]
    )
    ended: list[tuple[str, str, int]] = []

    async def note(pod: Obj, container: str, code: int) -> None:
        ended.append((pod["metadata"]["name"], container, code))

    sim.connector.access.ended = note
    command = await attach(sim.https, "default", "p", stdin=True)
    await command.write(b"hello")
    await command.close_stdin()
    assert await finished(command) == (0, b"hello", b"")
    assert ended == [("p", "c", 0)]


async def test_attaching_shows_what_the_container_writes_until_it_ends(sim: Cluster) -> None:
    pod = await sim.put("p")
    asleep = sim.asleep()
    command = await attach(sim.https, "default", "p")
    output = command.output()
    await eventually(lambda: sim.asleep() > asleep)
    await sim.clock.advance(5)
    channel, data = await anext(output)
    assert channel == STDOUT
    assert data.endswith(b"p/c line 13\n")
    await sim.set_state(pod, {"terminated": {"exitCode": 0, "finishedAt": rfc3339(sim.clock.now())}})
    assert [piece async for piece in output] == []


async def test_a_shell_at_a_terminal_can_be_attached_to(sim: Cluster) -> None:
    await sim.put("p", containers=[{"name": "c", "image": "busybox", "command": ["sh"], "stdin": True, "tty": True}])
    command = await attach(sim.https, "default", "p", stdin=True, tty=True)
    await command.write(b"hostname\r\x04")
    code, output, _ = await finished(command)
    assert code == 0
    assert b"\r\np\r\n/ # " in output


# --- SPDY


class Spdy:
    """A client that upgrades to SPDY/3.1 by hand."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes) -> None:
        self.reader = reader
        self.writer = writer
        self.head = head
        self._headers = HeaderWriter()

    def open(self, number: int, **headers: str) -> None:
        block = self._headers.write(headers)
        self.writer.write(control_frame(SYN_STREAM, 0, struct.pack(">IIH", number, 0, 0) + block))

    async def rest(self) -> dict[int, bytes]:
        """What came on each stream until the server closed the connection."""
        said: dict[int, bytes] = {}
        while True:
            try:
                first, second = struct.unpack(">II", await self.reader.readexactly(8))
            except asyncio.IncompleteReadError:
                return said
            payload = await self.reader.readexactly(second & 0xFFFFFF)
            if not first & 0x80000000:
                said[first] = said.get(first, b"") + payload


@asynccontextmanager
async def spdy(server: ApiServer, path: str, protocol: str) -> AsyncIterator[Spdy]:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=tls_of(server))
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
    writer.write(f"{head}X-Stream-Protocol-Version: {protocol}\r\n\r\n".encode())
    try:
        async with asyncio.timeout(30):
            yield Spdy(reader, writer, await reader.readuntil(b"\r\n\r\n"))
    finally:
        writer.close()


async def test_old_clients_exec_over_spdy(sim: Cluster) -> None:
    await sim.put("p")
    path = f"{BASE}/pods/p/exec?command=cat&stdin=true&stdout=true&stderr=true"
    async with spdy(sim.server, path, "v4.channel.k8s.io") as client:
        assert client.head.startswith(b"HTTP/1.1 101 ")
        assert b"X-Stream-Protocol-Version: v4.channel.k8s.io" in client.head
        for number, kind in ((1, "error"), (3, "stdin"), (5, "stdout"), (7, "stderr")):
            client.open(number, streamType=kind)
        client.writer.write(data_frame(3, 0, b"old ") + data_frame(3, FIN, b"friend"))
        said = await client.rest()
    assert said[5] == b"old friend"
    assert orjson.loads(said[1]) == {"metadata": {}, "status": "Success"}


async def test_an_unknown_spdy_protocol_is_refused(sim: Cluster) -> None:
    await sim.put("p")
    async with spdy(sim.server, f"{BASE}/pods/p/exec?command=ls&stdout=true", "v9.channel.k8s.io") as client:
        assert client.head.startswith(b"HTTP/1.1 403 ")


async def test_ports_are_forwarded_over_spdy_in_pairs_of_streams(sim: Cluster) -> None:
    await sim.put("p")
    async with spdy(sim.server, f"{BASE}/pods/p/portforward", "portforward.k8s.io") as client:
        for request in (0, 1):
            client.open(1 + 4 * request, streamType="error", port="80", requestID=str(request))
            client.open(3 + 4 * request, streamType="data", port="80", requestID=str(request))
            requested = b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n"
            client.writer.write(data_frame(3 + 4 * request, 0, requested))
        client.writer.write_eof() if client.writer.can_write_eof() else None
        got = b""
        while got.count(b"ok from p") < 2:
            got += await client.reader.read(65536)


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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", ("", "a", "")),
        ("a:80", ("", "a", "80")),
        ("https:a:", ("https", "a", "")),
        ("http:a:x", ("http", "a", "x")),
    ],
)
def test_names_may_carry_a_scheme_and_a_port(text: str, expected: tuple[str, str, str]) -> None:
    assert parse_name(text, "service") == expected


def test_names_with_other_schemes_are_refused() -> None:
    with pytest.raises(BadRequest, match='invalid service request "ftp:a:21"'):
        parse_name("ftp:a:21", "service")


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("/a", "/proxy/a"),
        ("b/c", "b/c"),
        ("http://pod:80/a?b=c", "/proxy/a?b=c"),
        ("https://elsewhere/a", "https://elsewhere/a"),
    ],
)
def test_redirects_stay_behind_the_proxy(location: str, expected: str) -> None:
    assert inside(location, "/proxy", "pod") == expected


# --- the kubelet's own port


@asynccontextmanager
async def kubelets(sim: Cluster) -> AsyncIterator[KubeletServer]:
    server = KubeletServer(sim.context, sim.load, host="127.0.0.1", advertise="127.0.0.1")
    await server.start()
    try:
        await eventually(lambda: server.ports.get("n1"))
        yield server
    finally:
        await server.stop()


def kubelet_tls(sim: Cluster, *, certificate: bool) -> ssl.SSLContext:
    context = tls_of(sim.server) if certificate else ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def test_a_node_says_where_its_kubelet_listens(sim: Cluster) -> None:
    async with kubelets(sim) as server:

        def announced() -> bool:
            status = (sim.load.nodes.list()[0].get("status")) or {}
            return bool(status.get("daemonEndpoints") == {"kubeletEndpoint": {"Port": server.ports["n1"]}})

        await eventually(announced)
        assert sim.load.nodes.list()[0]["status"]["addresses"] == [{"type": "InternalIP", "address": "127.0.0.1"}]
        await sim.client.delete(NODES, "n1")
        await eventually(lambda: not server.ports)


async def test_the_kubelet_serves_who_may_and_nobody_else(sim: Cluster) -> None:
    await sim.put("p")
    async with kubelets(sim) as server:
        base = f"https://127.0.0.1:{server.ports['n1']}"
        connector = aiohttp.TCPConnector(ssl=kubelet_tls(sim, certificate=True))
        async with aiohttp.ClientSession(connector=connector) as session:
            async with session.get(f"{base}/containerLogs/default/p/c?tailLines=1") as response:
                assert (await response.text()).endswith("line 12\n")
            async with session.get(f"{base}/containerLogs/default/other/c") as response:
                assert response.status == 404
            query = "command=echo&command=hi&output=1&error=1"
            url = f"{base}/exec/default/p/c?{query}"
            async with session.ws_connect(url, protocols=("v4.channel.k8s.io",)) as socket:
                messages = [message.data async for message in socket]
            assert b"\1hi\n" in messages
        anonymous = aiohttp.TCPConnector(ssl=kubelet_tls(sim, certificate=False))
        async with aiohttp.ClientSession(connector=anonymous) as session:
            async with session.get(f"{base}/pods") as response:
                assert response.status == 401
            _, token, _ = await sim.run("p", "cat", f"{ACCOUNT}/token")
            headers = {"Authorization": f"Bearer {token.decode()}"}
            async with session.get(f"{base}/metrics/resource", headers=headers) as response:
                text = "Forbidden (user=system:serviceaccount:default:default, verb=get, resource=nodes, "
                assert (response.status, await response.text()) == (403, f"{text}subresource(s)=[metrics])")
