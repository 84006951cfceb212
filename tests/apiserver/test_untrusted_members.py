"""What a member, or somebody who may write its settings, can do to the proxy: no harm, and none to other members."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from typing import Any

import pytest
import yaml
from aiohttp import web

from karmada.apiserver import cluster_resource
from karmada.apiserver.members import Members
from karmada.kube.client.client import Client
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvrs import SECRETS
from karmada.kube.server.app import ApiServer
from karmada.kube.server.outbound.https import Outbound
from tests.support.eventually import LIMIT
from tests.support.fake_member import FakeMember, fake_member, register
from tests.support.reader import FakeReader
from tests.support.wire import Http

CLUSTERS = "/apis/cluster.karmada.io/v1alpha1/clusters"
M1, ALL = f"{CLUSTERS}/m1/proxy", f"{CLUSTERS}/*/proxy"
PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture
async def member() -> AsyncIterator[FakeMember]:
    async with fake_member() as member:
        yield member


# unrequested upgrades


class Turncoat:
    """Answers every request with 101 and listens to what comes then."""

    def __init__(self) -> None:
        self.received = b""
        self.ended = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: other\r\nConnection: Upgrade\r\n\r\nhello")
        self.received = await reader.read()
        self.ended.set()
        writer.close()


@pytest.mark.parametrize("requested", ["", "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"])
async def test_a_protocol_that_nobody_requested_ends_the_connection(
    server: ApiServer, client: Client, http: Http, requested: str
) -> None:
    turncoat = Turncoat()
    listening = await asyncio.start_server(turncoat.serve, "127.0.0.1", 0)
    await register(client, "m1", f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}")
    host, port = server.url.removeprefix("https://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port), ssl=http._tls)
    writer.write(f"GET {M1}/x HTTP/1.1\r\nHost: {host}\r\n{requested}\r\n".encode())
    writer.write(f"GET /api HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer my-own\r\n\r\n".encode())
    answer = await asyncio.wait_for(reader.read(), LIMIT)
    assert answer.startswith(b"HTTP/1.1 502 ")
    assert b"hello" not in answer
    assert answer.count(b"HTTP/1.1") == 1
    await asyncio.wait_for(turncoat.ended.wait(), LIMIT)
    assert turncoat.received == b""
    writer.close()
    listening.close()


# settings that break


def listing(*names: str, **metadata: Any) -> Any:
    async def reply(_request: web.BaseRequest) -> web.StreamResponse:
        items = [{"metadata": {"name": name}} for name in names]
        return web.json_response({"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": items})

    return reply


async def test_one_broken_cluster_does_not_break_all(http: Http, client: Client, member: FakeMember) -> None:
    member.reply = listing("a")
    await register(client, "m0", member.url, token="two\nlines")
    await register(client, "m1", member.url)
    answer = await http("GET", f"{ALL}{PODS}")
    assert answer.code == 200
    assert [item["metadata"]["name"] for item in answer.json()["items"]] == ["a"]
    broken = await http("GET", f"{CLUSTERS}/m0/proxy{PODS}")
    assert broken.code == 500
    assert "lines" not in broken.json()["message"]
    assert "unexpected" not in broken.json()["message"], "the message says whose fault it is"


SECRET = {"data": {"token": base64.b64encode(b"t").decode()}}
REF = {"namespace": "a", "name": "b"}


@pytest.mark.parametrize("endpoint", ["https://[bad", "https://host:port", "ftp://host", "https://"])
async def test_an_address_that_is_none_is_a_plain_error(endpoint: str) -> None:
    async def secret(_namespace: str, _name: str) -> Any:
        return SECRET

    outbound, clusters = Outbound(), FakeReader()
    spec = {"apiEndpoint": endpoint, "impersonatorSecretRef": REF}
    clusters.hold(cluster_resource.CLUSTERS, {"metadata": {"name": "m1"}, "spec": spec})
    members = Members(clusters, secret, outbound)
    with pytest.raises(ApiError, match="the address of cluster m1") as caught:
        await members.get("m1")
    assert caught.value.http_code == 500
    await outbound.close()


# lists


async def test_what_only_one_cluster_can_go_on_from_is_not_passed_on(
    http: Http, client: Client, member: FakeMember
) -> None:
    member.reply = listing("a", "b", **{"continue": "here", "remainingItemCount": 5, "resourceVersion": "7"})
    await register(client, "m1", member.url)
    answer = await http("GET", f"{ALL}{PODS}?limit=1&continue=x&fieldSelector=a%3Db")
    assert answer.json()["metadata"] == {}
    assert member.requests == [("GET", f"{PODS}?fieldSelector=a%3Db")]


@pytest.mark.parametrize("payload", [{"items": 5}, {"items": [], "metadata": "x"}, [], "x"])
async def test_what_is_no_list_is_left_out(http: Http, client: Client, member: FakeMember, payload: Any) -> None:
    async def reply(_request: web.BaseRequest) -> web.StreamResponse:
        return web.json_response(payload)

    member.reply = reply
    await register(client, "m1", member.url)
    assert (await http("GET", f"{ALL}{PODS}")).code == 404


async def endless(request: web.BaseRequest) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(bytes(1 << 20))


async def test_a_member_that_never_ends_is_left_out(
    http: Http, client: Client, member: FakeMember, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("karmada.apiserver.fan_out.LIST_BYTES", 4 << 20)
    monkeypatch.setattr("karmada.kube.server.http.relaying.LIST_BYTES", 4 << 20)
    member.reply = endless
    await register(client, "m1", member.url)
    assert (await http("GET", f"{ALL}{PODS}")).code == 404
    with pytest.raises(ApiError, match="the response is larger than 4 MB"):
        await client.raw("GET", f"{M1}{PODS}")


# kubeconfigs


async def test_a_cluster_is_reached_by_its_kubeconfig(http: Http, client: Client, member: FakeMember) -> None:
    document = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        "clusters": [{"name": "c", "cluster": {"server": member.url}}],
        "users": [{"name": "c", "user": {"token": "the controllers' own"}}],
    }
    data = {"kubeconfig": base64.b64encode(yaml.safe_dump(document).encode()).decode()}
    metadata = {"namespace": "default", "name": "whole"}
    await client.create(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})
    await register(client, "m1", "", secretRef=metadata)
    answer = await http("GET", f"{M1}{PODS}")
    assert answer.code == 200
    assert member.requests == [("GET", PODS)]
    assert member.headers[0]["Authorization"] == "bearer sesame"
