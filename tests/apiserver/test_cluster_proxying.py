"""clusters/NAME/proxy on the wire: what reaches the member, what comes back, and what is said when nothing does."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from yarl import URL

from karmada.api.cluster import Cluster
from karmada.kube.client.client import Client
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import SECRETS
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig
from tests.support.callers import Caller, user_certificate
from tests.support.cases import cases
from tests.support.eventually import LIMIT
from tests.support.fake_member import FakeMember, connect_proxy, fake_member, register, socks_proxy
from tests.support.wire import Http

PROXY = "/apis/cluster.karmada.io/v1alpha1/clusters/{}/proxy"
M1 = PROXY.format("m1")
RBAC = "rbac.authorization.k8s.io"
UPGRADE = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1"}


@pytest.fixture
async def member(client: Client) -> AsyncIterator[FakeMember]:
    """Registered as m1."""
    async with fake_member() as member:
        await register(client, "m1", member.url)
        yield member


# --- what reaches the member


@cases(
    ("/api/v1/nodes?limit=5", "/api/v1/nodes?limit=5"),
    ("/", "/"),
    ("/a/", "/a/"),
    ("/a//b/./c", "/a/b/c"),
    ("/a/%2e%2e/../../b", "/b"),
    ("/a/..%2F%2e%2e%2fb%2Fc", "/b/c"),
    ("/a%2Fb?path=/x&labelSelector=a%3Db%2Cc", "/a%2Fb?path=/x&labelSelector=a%3Db%2Cc"),
)
async def test_path_and_query_reach_the_member_as_they_are(
    outer: str, inner: str, http: Http, member: FakeMember
) -> None:
    answer = await raw_get(http, f"{M1}{outer}")
    assert answer.status == 200
    assert member.requests == [("GET", inner)]


async def raw_get(http: Http, path: str) -> aiohttp.ClientResponse:
    """Without a client that tidies the path up."""
    url = URL(http._server.url + path, encoded=True)
    async with http._session.get(url, ssl=http._tls, allow_redirects=False) as answer:
        await answer.read()
        return answer


async def test_a_path_of_the_endpoint_stands_before_it(http: Http, client: Client, member: FakeMember) -> None:
    await register(client, "m2", f"{member.url}/k8s/clusters/c-1")
    await raw_get(http, f"{PROXY.format('m2')}/../../api/v1/pods")
    await raw_get(http, f"{PROXY.format('m2')}/..%2F..%2Fapi/v1/pods")
    assert member.requests == [("GET", "/k8s/clusters/c-1/api/v1/pods")] * 2


@cases("POST", "PUT", "PATCH", "DELETE")
async def test_methods_and_bodies_reach_the_member(method: str, http: Http, member: FakeMember) -> None:
    answer = await http(method, f"{M1}/api/v1/x", b'{"a":1}', content_type="application/anything")
    assert answer.code == 200
    assert member.requests == [(method, "/api/v1/x")]
    assert member.bodies == [b'{"a":1}']
    assert member.headers[0]["Content-Type"] == "application/anything"


async def test_a_body_larger_than_any_object_passes(http: Http, member: FakeMember) -> None:
    await http("POST", f"{M1}/upload", b"x" * (8 << 20))
    assert [len(body) for body in member.bodies] == [8 << 20]


async def test_the_member_gets_the_user_and_none_of_its_credentials(
    server: ApiServer, client: Client, member: FakeMember
) -> None:
    await grant(client, "jane", "clusters/proxy")
    async with Caller(server, **user_certificate(server, "jane", "crew", "system:masters-not")) as jane:
        answer = await jane("GET", f"{M1}/api", headers={"Authorization": "Bearer stolen"}, anonymous=False)
        assert answer.code == 200, answer.body
    headers = member.headers[0]
    assert headers["Authorization"] == "bearer sesame"
    assert headers["Impersonate-User"] == "jane"
    assert headers.getall("Impersonate-Group") == ["crew", "system:masters-not"]
    assert not [name for name in headers if name.startswith(("X-Remote", "Impersonate-Extra", "Impersonate-Uid"))]
    assert headers["Host"] == member.url.removeprefix("http://")
    assert headers["X-Forwarded-For"] == "127.0.0.1"


async def grant(client: Client, user: str, *resources: str, names: tuple[str, ...] = ()) -> None:
    rule: dict[str, Any] = {"apiGroups": ["cluster.karmada.io"], "resources": list(resources), "verbs": ["*"]}
    if names:
        rule["resourceNames"] = list(names)
    metadata = {"name": f"{user}-proxy"}
    await client.create(GVR(RBAC, "v1", "clusterroles"), {"metadata": metadata, "rules": [rule]})
    await client.create(
        GVR(RBAC, "v1", "clusterrolebindings"),
        {
            "metadata": metadata,
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": metadata["name"]},
            "subjects": [{"apiGroup": RBAC, "kind": "User", "name": user}],
        },
    )


async def test_a_rotated_token_counts_from_the_next_request_on(http: Http, client: Client, member: FakeMember) -> None:
    await http("GET", f"{M1}/api")
    data = {"token": base64.b64encode(b"open").decode()}
    await client.patch(SECRETS, "m1", "default", {"data": data})
    await http("GET", f"{M1}/api")
    assert [headers["Authorization"] for headers in member.headers] == ["bearer sesame", "bearer open"]


async def test_callers_in_the_process_get_through_as_well(client: Client, member: FakeMember) -> None:
    assert await client.raw("GET", f"{M1}/api/v1/pods", query={"limit": "5"}) == {"path": "/api/v1/pods?limit=5"}
    await client.raw("POST", f"{M1}/api/v1/pods", body={"kind": "Pod"})
    assert member.bodies[-1] == b'{"kind":"Pod"}'
    assert member.headers[-1]["Impersonate-User"] == "system:tests"


# --- what comes back


async def test_answers_come_back_untouched(http: Http, member: FakeMember) -> None:
    async def teapot(_request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=418, reason="teapot", text="short", headers={"X-Own": "yes", "Location": "/x"})

    member.reply = teapot
    answer = await http("GET", f"{M1}/brew")
    assert (answer.code, answer.body, answer.headers["X-Own"]) == (418, b"short", "yes")


async def test_answers_are_streamed_as_they_come(http: Http, member: FakeMember) -> None:
    more = asyncio.Event()

    async def slowly(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"first\n")
        await more.wait()
        await response.write(b"second\n")
        return response

    member.reply = slowly
    async with http.stream(f"{M1}/watch") as response:
        assert await response.content.readline() == b"first\n"
        more.set()
        assert await response.content.readline() == b"second\n"


async def test_a_client_that_goes_ends_the_request_to_the_member(http: Http, member: FakeMember) -> None:
    gone = asyncio.Event()

    async def forever(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"first\n")
        try:
            await asyncio.Event().wait()  # the server cancels it when its client is gone
        finally:
            gone.set()
        return response

    member.reply = forever
    async with http.stream(f"{M1}/watch") as response:
        await response.content.readline()
    await asyncio.wait_for(gone.wait(), LIMIT)


async def test_the_proxy_itself_is_a_folder(http: Http, member: FakeMember) -> None:
    answer = await http("GET", f"{M1}?a=b")
    assert answer.code == 301
    assert answer.headers["Location"] == f"{M1}/?a=b"
    assert (await http("POST", M1)).code == 200
    assert member.requests == [("POST", "/")]


# --- what is said when nothing does


@cases(
    ("m9", {}, 404, 'clusters.cluster.karmada.io "m9" not found'),
    ("m1", {"apiEndpoint": None}, 500, "API endpoint of cluster m1 should not be empty"),
    ("m1", {"impersonatorSecretRef": None}, 500, "the impersonatorSecretRef of cluster m1 is nil"),
    (
        "m1",
        {"impersonatorSecretRef": {"namespace": "default", "name": "none"}},
        404,
        'secrets "none" not found',
    ),
    (
        "m1",
        {"impersonatorSecretRef": {"namespace": "default", "name": "empty"}},
        500,
        "failed to get impresonateToken for cluster m1: the impresonate token of cluster m1 is empty",
    ),
    ("m1", {"secretRef": {"namespace": "default", "name": "none"}}, 404, 'secrets "none" not found'),
    ("m1", {"apiEndpoint": "http://127.0.0.1:1"}, 500, "dial tcp 127.0.0.1:1: connect: connection refused"),
    (
        "m1",
        {"secretRef": {"namespace": "default", "name": "bad-bundle"}},
        500,
        "unable to load root certificates: unable to parse bytes as PEM block",
    ),
)
async def test_a_member_that_cannot_be_reached(
    name: str, spec: dict[str, Any], code: int, why: str, http: Http, client: Client, member: FakeMember
) -> None:
    for secret, data in (("empty", {}), ("bad-bundle", {"caBundle": base64.b64encode(b"nonsense").decode()})):
        await client.create(SECRETS, {"metadata": {"namespace": "default", "name": secret}, "data": data})
    await client.patch(Cluster.gvr, "m1", "", {"spec": spec})
    answer = await http("GET", f"{PROXY.format(name)}/api")
    assert (answer.code, answer.json()["message"]) == (code, why)
    assert answer.json().get("reason", "") == ("NotFound" if code == 404 else "")


async def test_a_certificate_of_another_authority_is_not_trusted(http: Http, client: Client, tmp_path: Path) -> None:
    other = ApiServer(ServerConfig(data_dir=tmp_path / "other", storage="memory://", port=0))
    await other.start()
    try:
        await register(client, "m1", other.url)
        answer = await http("GET", f"{M1}/version")
        assert answer.code == 500
        assert answer.json()["message"] == (
            "tls: failed to verify certificate: x509: certificate signed by unknown authority"
        )
        await client.patch(Cluster.gvr, "m1", "", {"spec": {"insecureSkipTLSVerification": True}})
        assert (await http("GET", f"{M1}/version")).code == 401, "the token is not the other server's"
    finally:
        await other.stop()


@cases("dryRun=All", "dryRun=", "a=b&dryRun=x")
async def test_there_is_no_dry_run(query: str, http: Http, member: FakeMember) -> None:
    answer = await http("POST", f"{M1}/api?{query}")
    assert (answer.code, answer.json()["message"]) == (400, "dryRun is not supported")
    assert member.requests == []


# --- who may


@cases(("GET", "get"), ("POST", "create"), ("PUT", "update"), ("PATCH", "patch"), ("DELETE", "delete"))
async def test_the_method_is_the_verb_under_review(
    method: str, verb: str, server: ApiServer, member: FakeMember
) -> None:
    async with Caller(server, **user_certificate(server, "joe")) as joe:
        answer = await joe(method, f"{M1}/api/v1/pods?watch=true")
    assert answer.code == 403
    assert answer.json()["message"] == (
        f'clusters.cluster.karmada.io "m1" is forbidden: User "joe" cannot {verb} resource "clusters/proxy" in API '
        'group "cluster.karmada.io" at the cluster scope'
    )
    assert member.requests == []


async def test_the_right_to_one_cluster_is_none_to_another_or_to_all(
    server: ApiServer, client: Client, member: FakeMember
) -> None:
    await register(client, "m2", member.url)
    await grant(client, "joe", "clusters/proxy", names=("m1",))
    async with Caller(server, **user_certificate(server, "joe")) as joe:
        codes = [(await joe("GET", f"{PROXY.format(name)}/api")).code for name in ("m1", "m2", "*")]
    assert codes == [200, 403, 403]


# --- upgrades


async def echo(request: web.BaseRequest) -> web.StreamResponse:
    """Takes the connection over and echoes everything, until stopped."""
    transport = request.transport
    assert transport is not None
    transport.write(
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Own: yes\r\n\r\n"
    )
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    transport.set_protocol(protocol)
    protocol.connection_made(transport)
    while (line := await reader.readline()) not in (b"", b"stop\n"):
        transport.write(line.upper())
    transport.close()
    return web.Response()


async def upgraded(
    server: ApiServer, http: Http, path: str
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, bytes]:
    host, port = server.url.removeprefix("https://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port), ssl=http._tls)
    head = "\r\n".join([f"POST {path} HTTP/1.1", f"Host: {host}", *(f"{k}: {v}" for k, v in UPGRADE.items()), "", ""])
    writer.write(head.encode())
    return reader, writer, await reader.readuntil(b"\r\n\r\n")


async def test_an_upgrade_becomes_a_pipe(server: ApiServer, http: Http, member: FakeMember) -> None:
    member.reply = echo
    reader, writer, head = await upgraded(server, http, f"{M1}/api/v1/namespaces/a/pods/b/exec?command=x")
    assert head.startswith(b"HTTP/1.1 101 ")
    assert b"X-Own: yes" in head
    writer.write(b"hello\n")
    assert await reader.readline() == b"HELLO\n"
    writer.write(b"stop\n")
    assert await reader.read() == b""
    writer.close()


async def test_a_refused_upgrade_comes_back_as_it_is(server: ApiServer, http: Http, member: FakeMember) -> None:
    async def refuse(_request: web.BaseRequest) -> web.StreamResponse:
        return web.json_response({"kind": "Status", "message": "no"}, status=403)

    member.reply = refuse
    reader, writer, head = await upgraded(server, http, f"{M1}/exec")
    assert head.startswith(b"HTTP/1.1 403 ")
    assert b'"message": "no"' in await reader.read(200)
    writer.close()


# --- proxies on the way


async def test_a_socks_proxy_is_gone_through(http: Http, client: Client, member: FakeMember) -> None:
    async with socks_proxy("me", "s:cret") as proxy:
        way = proxy.url.replace("://", "://me:s%3Acret@")
        await client.patch(Cluster.gvr, "m1", "", {"spec": {"proxyURL": way}})
        assert (await http("GET", f"{M1}/api")).code == 200
        assert proxy.heads == [member.url.removeprefix("http://")]
        await client.patch(Cluster.gvr, "m1", "", {"spec": {"proxyURL": proxy.url.replace("://", "://me:wrong@")}})
        answer = await http("GET", f"{M1}/api")
        assert answer.code == 500
        assert "authentication failure" in answer.json()["message"]
        proxy.refuse = True
        await client.patch(Cluster.gvr, "m1", "", {"spec": {"proxyURL": f"{way}/"}})
        assert "not allowed by ruleset" in (await http("GET", f"{M1}/api")).json()["message"]


async def test_a_connect_proxy_is_gone_through_with_its_headers(http: Http, client: Client, tmp_path: Path) -> None:
    other = ApiServer(ServerConfig(data_dir=tmp_path / "other", storage="memory://", port=0))
    await other.start()
    try:
        async with connect_proxy() as proxy:
            await register(
                client,
                "m1",
                other.url,
                insecureSkipTLSVerification=True,
                proxyURL=proxy.url.replace("://", "://me:secret@"),
                proxyHeader={"X-Tenant": "a, b", "X-Key": "k"},
            )
            assert (await http("GET", f"{M1}/version")).code == 401, "it came through, with a token nobody knows"
            [head] = proxy.heads
            assert head.startswith(f"CONNECT {other.url.removeprefix('https://')} HTTP/1.1")
            for line in ("X-Tenant: a", "X-Tenant: b", "X-Key: k"):
                assert f"{line}\r\n" in head
            assert f"Proxy-Authorization: Basic {base64.b64encode(b'me:secret').decode()}\r\n" in head
            assert "sesame" not in head
            proxy.refuse = True
            await client.patch(Cluster.gvr, "m1", "", {"spec": {"proxyHeader": {"X-Tenant": "c"}}})
            refused = await http("GET", f"{M1}/version")
            assert refused.code == 500
            assert "Forbidden" in refused.json()["message"]
    finally:
        await other.stop()
