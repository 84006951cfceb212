"""Clients that do not read what they asked for: what they hold in memory, and how they end."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from karmada.kube.runtime.aside import ASIDE
from karmada.kube.runtime.time_slice import OWNER
from karmada.kube.server.app import ApiServer
from karmada.kube.server.http import front
from karmada.kube.server.http.pieces import PIECE, Bytes
from karmada.kube.server.http.responses import LEAST_HELD
from tests.integration.samples import BINDINGS, CONFIGMAPS, configmap, editors, ok
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.wire import Http

LARGE = 900_000
MANY = 14
FEW = 5 << 20
"""A few pieces, and what the system takes into its own buffers (4 MiB at most)."""


@pytest.fixture
async def large(http: Http) -> None:
    for number in range(MANY):
        ok(await http("POST", CONFIGMAPS, configmap(f"large-{number}", data={"text": "x" * LARGE})), 201)


@asynccontextmanager
async def unread(http: Http, server: ApiServer, path: str, *headers: str) -> AsyncIterator[asyncio.StreamReader]:
    """A request whose response nobody reads."""
    host, port = server.config.host, server.port
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    held.setblocking(False)
    await asyncio.get_running_loop().sock_connect(held, (host, port))
    reader, writer = await asyncio.open_connection(sock=held, ssl=http._tls, server_hostname=host, limit=4096)
    writer.write("\r\n".join([f"GET {path} HTTP/1.1", f"Host: {host}", *headers, "", ""]).encode())
    try:
        yield reader
    finally:
        writer.transport.abort()


def handed_over(server: ApiServer) -> list[int]:
    """The bytes of each response under way that were given to its connection."""
    assert server.http._server is not None
    found = []
    for connection in server.http._server.connections:
        request = connection._current_request
        if request is not None and request._payload_writer is not None:
            found.append(request._payload_writer.output_size)
    return found


@cases(
    (f"{CONFIGMAPS}?watch=1", "application/json"),
    (f"{CONFIGMAPS}?watch=1", "application/vnd.kubernetes.protobuf"),
    (f"{CONFIGMAPS}?watch=1&includeObject=Object", "application/json;as=Table;g=meta.k8s.io;v=v1"),
    (CONFIGMAPS, "application/json"),
    (CONFIGMAPS, "application/yaml"),
    (f"{CONFIGMAPS}?includeObject=Object", "application/json;as=Table;g=meta.k8s.io;v=v1"),
)
@pytest.mark.usefixtures("large")
async def test_who_does_not_read_holds_a_few_pieces(path: str, accept: str, http: Http, server: ApiServer) -> None:
    async with unread(http, server, path, f"Accept: {accept}"):
        await eventually(lambda: any(handed_over(server)))
        before = None
        while before != (before := handed_over(server)):
            await http("GET", "/readyz")
        assert sum(before) < FEW


@pytest.mark.usefixtures("large")
async def test_who_reads_nothing_for_long_is_cut(
    http: Http, server: ApiServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(front, "UNREAD_SECONDS", 0.01)
    async with unread(http, server, f"{CONFIGMAPS}?watch=1"):
        await eventually(lambda: server.http.unread == 1)
    assert f"a client at 127.0.0.1 that does not read is cut off: GET {CONFIGMAPS}" in caplog.text
    assert b"apiserver_unread_connections_cut 1" in (await http("GET", "/metrics")).body


@pytest.mark.usefixtures("large")
async def test_what_large_responses_of_a_user_hold_is_limited(http: Http, server: ApiServer) -> None:
    ok(await http("POST", BINDINGS, editors("ann", "ben")), 201)
    sending = server.http.responses.sending
    sending._most = 3 * LEAST_HELD
    ann, ben = ({"Impersonate-User": name, "Accept-Encoding": "identity"} for name in ("ann", "ben"))
    async with AsyncExitStack() as responses:
        for _ in range(3):
            await responses.enter_async_context(unread(http, server, CONFIGMAPS, "Impersonate-User: ann"))
        await eventually(lambda: sending.of("ann") == 3 * LEAST_HELD)
        refused = await http("GET", CONFIGMAPS, headers=ann)
        assert refused.code == 429
        assert "bytes of large responses on their way" in refused.json()["message"]
        assert (await http("GET", f"{CONFIGMAPS}?limit=0&labelSelector=none", headers=ann)).code == 200
        assert len((await http("GET", CONFIGMAPS, headers=ben)).json()["items"]) > MANY
    await eventually(lambda: not sending.total)
    assert len((await http("GET", CONFIGMAPS, headers=ann)).json()["items"]) > MANY


@pytest.mark.usefixtures("large")
async def test_memory_is_given_back_after_large_responses(
    http: Http, server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[str] = []
    monkeypatch.setattr(server.http.responses._memory, "soon", lambda: given.append("soon"))
    await http("GET", f"{CONFIGMAPS}?labelSelector=none")
    assert not given
    await http("GET", CONFIGMAPS)
    await eventually(lambda: len(given) == 1)
    async with unread(http, server, f"{CONFIGMAPS}?watch=1"):
        await eventually(lambda: sum(handed_over(server)) > LARGE)
    await eventually(lambda: len(given) == 2)


async def test_the_head_of_a_large_page_comes_without_its_body(http: Http, server: ApiServer) -> None:
    host, port = server.config.host, server.port
    reader, writer = await asyncio.open_connection(host, port, ssl=http._tls, server_hostname=host)
    for method, target in (("HEAD", "/openapi/v2"), ("GET", "/readyz")):
        writer.write(f"{method} {target} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        async with asyncio.timeout(60):
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
    writer.transport.abort()


async def test_a_large_page_is_sent_in_pieces(http: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    write = web.StreamResponse.write

    async def noted(response: web.StreamResponse, piece: Bytes) -> None:
        sizes.append(len(piece))
        await write(response, piece)

    monkeypatch.setattr(web.StreamResponse, "write", noted)
    whole = await http("GET", "/openapi/v2", headers={"Accept-Encoding": "identity"})
    assert int(whole.headers["Content-Length"]) == len(whole.body) == sum(sizes)
    assert max(sizes) <= PIECE


@cases(
    (CONFIGMAPS, "application/yaml"),
    (CONFIGMAPS, "application/vnd.kubernetes.protobuf"),
    (f"{CONFIGMAPS}?watch=1", "application/vnd.kubernetes.protobuf"),
    (f"{CONFIGMAPS}/large-0", "application/yaml"),
    (f"{CONFIGMAPS}/large-0", "application/vnd.kubernetes.protobuf"),
)
@pytest.mark.usefixtures("large")
async def test_a_large_object_is_encoded_aside(
    path: str, media: str, http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    owners: list[str] = []
    run = ASIDE.run

    async def noted(work: Callable[..., Any], *arguments: object) -> Any:
        owners.append(OWNER.get())
        return await run(work, *arguments)

    monkeypatch.setattr(ASIDE, "run", noted)
    async with http.stream(path, {"Accept": media}) as response:
        await response.content.readany()
        await eventually(lambda: owners)
    assert set(owners) == {"system:admin"}
