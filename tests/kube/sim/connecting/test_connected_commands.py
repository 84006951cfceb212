"""Commands in pods: exec and attach, over WebSocket and SPDY."""

from __future__ import annotations

import asyncio
import base64
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import orjson
import pytest

from karmada.kube.client.pod_streams import ERROR, RESIZE, STDIN, STDOUT, attach, execute
from karmada.kube.objects.errors import ApiError, ServiceUnavailable
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import CONFIG_MAPS, NODES, SECRETS
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.server.app import ApiServer
from karmada.kube.sim.kubelet import channels
from karmada.kube.sim.kubelet.answers import Command
from karmada.kube.sim.kubelet.spdy import FIN, SYN_STREAM, HeaderWriter, control_frame, data_frame
from tests.kube.sim.connecting.pods_reached import ACCOUNT, BASE, Cluster, finished, tls_of
from tests.support.cases import cases
from tests.support.eventually import LIMIT, eventually

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


@cases(
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
)
async def test_bad_connections_are_refused_before_anything_is_begun(
    pod: str, query: str, text: str, sim: Cluster
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


@asynccontextmanager
async def by_hand(server: ApiServer, query: str) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    """A command over a WebSocket."""
    async with (
        asyncio.timeout(LIMIT),
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls_of(server))) as session,
        session.ws_connect(
            f"{server.url}{BASE}/pods/p/exec?stdout=true&{query}", protocols=["v5.channel.k8s.io"], autoping=False
        ) as socket,
    ):
        yield socket


@cases(
    ("command=cat&stdin=true", bytes((STDIN,)) + b"hi", b"hi"),
    ("command=hostname&tty=true", bytes((RESIZE,)) + b'{"Width":80,"Height":24}', b"p"),
    ids=["stdin", "the size of the terminal"],
)
async def test_nothing_is_sent_before_the_client_has_shown_that_it_has_its_streams(
    query: str, first: bytes, output: bytes, sim: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The response to a ping would come behind what was sent before."""
    monkeypatch.setattr(channels, "START_SECONDS", 60)
    monkeypatch.setattr(channels, "TERMINAL_SECONDS", 60)
    await sim.put("p")
    async with by_hand(sim.server, query) as socket:
        await socket.ping(b"nothing yet")
        assert (await socket.receive()).type is aiohttp.WSMsgType.PONG
        await socket.send_bytes(first)
        sent = [await socket.receive() for _ in range(3)]
    assert [message.data[0] for message in sent] == [STDOUT, ERROR, STDOUT]
    assert sent[2].data[1:].startswith(output)


@cases("command=hostname", "command=hostname&tty=true")
async def test_a_client_that_sends_nothing_is_sent_everything(
    query: str, sim: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channels, "TERMINAL_SECONDS", 0.001)
    await sim.put("p")
    async with by_hand(sim.server, query) as socket:
        sent = [message.data async for message in socket]
    assert any(data.startswith(bytes((STDOUT,)) + b"p") for data in sent)


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
        async with asyncio.timeout(LIMIT):
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
