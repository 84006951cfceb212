"""Ways through proxies, and what a proxy can do to its users: nothing but fail."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import web

from karmada.kube.client.config import Material, RestConfig
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.proxies import proxy_for
from karmada.kube.client.transport import Call, ConnectionFailed
from tests.kube.client.test_http1 import listening, saying
from tests.kube.client.test_http_transport import server_context
from tests.support.cases import cases
from tests.support.certificates import Authority
from tests.support.fake_member import connect_proxy, socks_proxy

Serve = Callable[..., Awaitable[str]]
Open = Callable[..., HttpTransport]
GET = Call("GET", "/version")


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def tls(authority: Authority, tmp_path: Path) -> ssl.SSLContext:
    return server_context(authority, tmp_path, "127.0.0.1")


async def version(request: web.Request) -> web.StreamResponse:
    """A page, a watch of one event, and a socket that echoes."""
    if "Upgrade" in request.headers:
        socket = web.WebSocketResponse(protocols=("v4.channel.k8s.io",))
        await socket.prepare(request)
        async for message in socket:
            await socket.send_bytes(message.data)
        return socket
    if request.query.get("watch"):
        return web.Response(body=b'{"type":"ADDED","object":{}}\n')
    return web.json_response({"path": request.path})


async def use(transport: HttpTransport) -> None:
    """Everything that a transport can do goes the same way."""
    assert await transport.call(GET) == {"path": "/version"}
    assert await transport.call(GET) == {"path": "/version"}
    assert [event.type async for event in transport.watch(Call("GET", "/x", {"watch": "true"}))] == ["ADDED"]
    socket = await transport.connect("/x", (), ("v4.channel.k8s.io",))
    await socket.send(b"there and back")
    assert await socket.receive() == b"there and back"
    await socket.close()


async def test_an_http_proxy_gets_requests_to_http_servers(serve: Serve, connect: Open) -> None:
    seen: list[tuple[str, str]] = []

    async def proxy(request: web.Request) -> web.Response:
        seen.append((str(request.url), request.headers["Proxy-Authorization"]))
        return web.json_response({})

    way = (await serve(proxy)).replace("://", "://me:s%3Acret@")
    await connect("http://cluster.internal:8080", proxy_url=way).call(GET)
    assert seen == [("http://cluster.internal:8080/version", "Basic bWU6czpjcmV0")]


async def test_an_http_proxy_opens_tunnels_to_https_servers(
    serve: Serve, connect: Open, authority: Authority, tls: ssl.SSLContext
) -> None:
    server = await serve(version, tls)
    async with connect_proxy() as proxy:
        way = proxy.url.replace("://", "://me:secret@")
        options = {"ca": Material(authority.pem), "proxy_headers": (("X-Team", "a"),), "token": "hidden"}
        await use(connect(server, proxy_url=way, **options))
        assert len(proxy.heads) == 1, "it is kept, and becomes the socket in the end"
        assert proxy.heads[0].startswith(f"CONNECT {server.removeprefix('https://').rstrip('/')} HTTP/1.1\r\n")
        assert "X-Team: a\r\n" in proxy.heads[0]
        assert "Proxy-Authorization: Basic bWU6c2VjcmV0\r\n" in proxy.heads[0]
        assert "hidden" not in proxy.heads[0]


async def test_a_tunnel_does_not_prove_who_is_at_its_end(serve: Serve, connect: Open, tls: ssl.SSLContext) -> None:
    server = await serve(version, tls)
    async with connect_proxy() as proxy:
        transport = connect(server, proxy_url=proxy.url, ca=Material(Authority().pem))
        with pytest.raises(ConnectionFailed, match="CERTIFICATE_VERIFY_FAILED"):
            await transport.call(GET)


async def test_a_proxy_may_itself_be_reached_over_tls(
    serve: Serve, connect: Open, authority: Authority, tls: ssl.SSLContext
) -> None:
    server = await serve(version, tls)
    async with connect_proxy(tls) as proxy:
        await use(connect(server, proxy_url=proxy.url, ca=Material(authority.pem)))
        assert len(proxy.heads) == 1
        with pytest.raises(ConnectionFailed, match="CERTIFICATE_VERIFY_FAILED"):
            await connect(server, proxy_url=proxy.url, ca=Material(Authority().pem)).call(GET)


@cases(False, True)
async def test_a_socks_proxy_opens_tunnels_to_both(
    secure: bool, serve: Serve, connect: Open, authority: Authority, tls: ssl.SSLContext
) -> None:
    server = await serve(version, tls if secure else None)
    async with socks_proxy("me", "s:cret") as proxy:
        way = proxy.url.replace("://", "://me:s%3Acret@")
        await use(connect(server, proxy_url=way, ca=Material(authority.pem)))
        assert proxy.heads == [server.partition("://")[2].rstrip("/")]
        with pytest.raises(ConnectionFailed, match="auth"):
            await connect(server, proxy_url=proxy.url.replace("://", "://me:wrong@")).call(GET)


ENDLESS_HEAD = b"HTTP/1.1 200 OK\r\nX: " + b"y" * 300_000


@cases(
    (b"", "closed the connection without a response"),
    (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "the proxy responded with 407"),
    (b"HTTP/1.1 302 Found\r\nLocation: http://other\r\n\r\n", "the proxy responded with 302"),
    (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", "the proxy responded with 101"),
    (b"HTTP/1.1 200 OK\r\n\r\nhello", "the proxy sent something before the server could"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "a length that makes no sense"),
    (b"HTTP/1.1 200 OK\r\n\r\n", "."),
    (b"SSH-2.0-OpenSSH\r\n\r\n", "does not speak HTTP"),
    (ENDLESS_HEAD, "the head of the response is too large"),
    (b"HTTP/1.1 100 Continue\r\n\r\n" * 1000, "without a response"),
)
async def test_what_a_proxy_responds_is_not_believed(response: bytes, error: str, connect: Open) -> None:
    async with listening(saying(response)) as here:
        transport = connect("https://cluster.internal", proxy_url=here.url)
        with pytest.raises(ConnectionFailed, match=error):
            await transport.call(GET)
        assert transport.limiter.in_flight == 0


@cases(b"", b"HTTP/1.1 200 OK\r\n\r\n", b"\x05\x00\x05\x01", b"\x05\x00\x05\x00\x00\x09", b"\x05\xff", b"\x04" * 9)
async def test_what_a_socks_proxy_responds_is_not_believed(response: bytes, connect: Open) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(response)
        await writer.drain()

    async with listening(talk) as here:
        transport = connect("http://cluster.internal", proxy_url=here.url.replace("http:", "socks5:"))
        with pytest.raises(ConnectionFailed):
            await transport.call(GET)


@cases("http", "socks5")
async def test_a_silent_proxy_is_given_up(scheme: str, connect: Open) -> None:
    async def silent(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with listening(silent) as here:
        way = here.url.replace("http:", f"{scheme}:")
        with pytest.raises(ConnectionFailed, match=r"no (connection|response) within"):
            await connect("https://cluster.internal", proxy_url=way, timeout=60, connect_timeout=0.05).call(GET)


def test_the_environment_names_a_proxy_and_excludes_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert proxy_for(RestConfig("https://x")) == ""
    monkeypatch.setenv("HTTPS_PROXY", "http://p:1")
    monkeypatch.setenv("NO_PROXY", "inside.example")
    assert proxy_for(RestConfig("https://x")) == "http://p:1"
    assert proxy_for(RestConfig("http://x")) == ""
    assert proxy_for(RestConfig("https://a.inside.example:6443")) == ""
    assert proxy_for(RestConfig("https://x", proxy_url="socks5://q")) == "socks5://q"
    with pytest.raises(ValueError, match="only http, https and socks5 proxies"):
        proxy_for(RestConfig("https://x", proxy_url="ftp://q"))
