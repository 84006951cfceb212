"""Requests that another server answers: passed on with the caller's identity, answers streamed back as they come.

Whatever the client sent to prove itself stays here; the backend gets the user's name in X-Remote-* headers and believes
them because this side shows the front-proxy certificate. After an upgrade (101) the two connections are one pipe:
both sides' transports get plain stream protocols and bytes are copied until either side ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, urlencode

import aiohttp
import orjson
from aiohttp import web
from multidict import CIMultiDict

from karmada.kube.runtime.waiting import cancel_and_wait
from karmada.kube.server.aggregation.remote_watch import remote_watch
from karmada.kube.server.auth.frontproxy import remote_headers
from karmada.kube.server.auth.headers import without_identity
from karmada.kube.server.outbound import Outbound, Target, why
from karmada.kube.server.request import Request
from karmada.kube.server.results import RawResult, Result

TEXT = "text/plain; charset=utf-8"
IN_PROCESS_SECONDS = 60.0
_HOP_BY_HOP = frozenset(
    {
        "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
        "transfer-encoding", "upgrade",
    }
)  # fmt: skip
_SET_BY_US = frozenset({"host", "content-length", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"})
_WEBSOCKET_TOKEN = "base64url.bearer.authorization.k8s.io."
_CHUNK = 1 << 16


def unavailable(text: str) -> RawResult:
    return RawResult(f"{text}\n".encode(), TEXT, 503)


def _wants_upgrade(headers: Any) -> bool:
    return bool(headers.get("Upgrade")) and "upgrade" in headers.get("Connection", "").lower()


def _forwarded(raw: web.BaseRequest, request: Request, upgrade: bool) -> list[tuple[str, str]]:
    """The headers for the backend."""
    named = {part.strip().lower() for part in raw.headers.get("Connection", "").split(",")}
    dropped = _HOP_BY_HOP | _SET_BY_US | named
    headers = [(name, value) for name, value in without_identity(raw.headers) if name.lower() not in dropped]
    headers = [pair for pair in map(_without_token, headers) if pair[1]]
    headers += remote_headers(request.user)
    headers.append(("Host", raw.headers.get("Host", "")))
    before = raw.headers.get("X-Forwarded-For", "")
    peer = raw.remote or ""
    headers.append(("X-Forwarded-For", f"{before}, {peer}" if before else peer))
    headers += [("X-Forwarded-Host", raw.headers.get("Host", "")), ("X-Forwarded-Proto", "https")]
    if upgrade:
        headers += [("Connection", "Upgrade"), ("Upgrade", raw.headers["Upgrade"])]
    return headers


def _without_token(header: tuple[str, str]) -> tuple[str, str]:
    """WebSocket clients in browsers put their token among the subprotocols."""
    name, value = header
    if name.lower() != "sec-websocket-protocol":
        return header
    kept = [part.strip() for part in value.split(",") if not part.strip().startswith(_WEBSOCKET_TOKEN)]
    return name, ", ".join(kept)


class Proxy:
    def __init__(self, outbound: Outbound) -> None:
        self._outbound = outbound

    # HTTP

    async def forward(self, request: Request, target: Target, raw: web.BaseRequest) -> web.StreamResponse:
        upgrade = _wants_upgrade(raw.headers)
        call = self._outbound.request(
            raw.method,
            target,
            raw.raw_path,
            headers=_forwarded(raw, request, upgrade),
            data=_body(request, raw),
        )
        try:
            response = await call
        except (aiohttp.ClientError, OSError) as error:
            return web.Response(text=f"{why(error, target)}\n", status=503, content_type="text/plain", charset="utf-8")
        try:
            if response.status == 101:
                return await _tunnel(raw, response)
            answer = await _relay(raw, response)
            response.release()
            return answer
        finally:
            response.close()  # what was released before stays open for others

    # In-process

    async def call(self, request: Request, target: Target) -> Result:
        watching = request.info.verb == "watch"
        path = quote(request.info.path)
        if request.query:
            path += "?" + urlencode(request.query.items())
        call = self._outbound.request(
            request.method,
            target,
            path,
            headers=[*((n, v) for n, v in request.headers.items() if v), *remote_headers(request.user)],
            data=request.body or (orjson.dumps(request.obj) if request.obj is not None else None),
            seconds=None if watching else IN_PROCESS_SECONDS,
        )
        try:
            response = await call
            if watching and response.status == 200:
                return remote_watch(request.info, response)
            async with response:
                media = response.headers.get("Content-Type", "application/json")
                return RawResult(await response.read(), media, response.status)
        except (aiohttp.ClientError, OSError) as error:
            return unavailable(why(error, target))


def _body(request: Request, raw: web.BaseRequest) -> Any:
    if request.body:
        return request.body
    return raw.content if raw.can_read_body and not raw.content.at_eof() else None


def _end_to_end(headers: Iterable[tuple[str, str]]) -> CIMultiDict[str]:
    return CIMultiDict((name, value) for name, value in headers if name.lower() not in _HOP_BY_HOP)


async def _relay(raw: web.BaseRequest, response: aiohttp.ClientResponse) -> web.StreamResponse:
    answer = web.StreamResponse(
        status=response.status, reason=response.reason, headers=_end_to_end(response.headers.items())
    )
    if "Content-Length" not in answer.headers and raw.method != "HEAD" and response.status not in (204, 304):
        answer.enable_chunked_encoding()
    writer = await answer.prepare(raw)
    assert writer is not None
    writer.send_headers()
    try:
        async for piece in response.content.iter_any():
            await answer.write(piece)
    except (aiohttp.ClientError, TimeoutError) as error:
        if raw.transport is not None:
            raw.transport.abort()  # the client must not take half an answer for a whole one
        raise ConnectionResetError("the backend broke off its answer") from error
    await answer.write_eof()
    return answer


# Upgrades


class _Tail:
    """What came behind the head of an upgrade before the pipe was laid; stands in for a parser."""

    def __init__(self) -> None:
        self.data = b""

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        self.data += data
        return False, b""

    def feed_eof(self) -> None:
        """The pipe sees the end itself."""

    def set_exception(self, error: BaseException, cause: BaseException | None = None) -> None:
        """The pipe sees the fault itself."""


class _Upgraded(web.StreamResponse):
    """For a connection on which everything has been said."""

    async def prepare(self, request: web.BaseRequest) -> None:  # noqa: ARG002
        return None

    async def write_eof(self, data: bytes = b"") -> None:  # noqa: ARG002
        return None

    @property
    def keep_alive(self) -> bool:
        return False


def _stream(transport: Any, tail: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Take over a transport: from now on its bytes come and go as a plain stream."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_CHUNK)
    protocol = asyncio.StreamReaderProtocol(reader)
    transport.set_protocol(protocol)
    protocol.connection_made(transport)
    if tail:
        reader.feed_data(tail)
    transport.resume_reading()
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


async def _tunnel(raw: web.BaseRequest, response: aiohttp.ClientResponse) -> web.StreamResponse:
    client, connection = raw.transport, response.connection
    if client is None or connection is None or connection.transport is None or connection.protocol is None:
        raise ConnectionResetError("the connection is gone")
    front: Any = raw.protocol
    ahead, behind = _Tail(), _Tail()
    front.set_parser(ahead)
    connection.protocol.set_parser(behind, behind)
    from_backend, to_backend = _stream(connection.transport, behind.data)
    from_client, to_client = _stream(client, ahead.data)
    to_client.write(_head(response))
    pumps = [asyncio.create_task(_pump(from_client, to_backend)), asyncio.create_task(_pump(from_backend, to_client))]
    try:
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await cancel_and_wait(*pumps)
        to_backend.close()
        client.set_protocol(front)
        client.close()
    return _Upgraded(status=101)


def _head(response: aiohttp.ClientResponse) -> bytes:
    lines = [b"HTTP/1.1 %d %s" % (response.status, (response.reason or "Switching Protocols").encode())]
    lines += [name + b": " + value for name, value in response.raw_headers]
    return b"\r\n".join(lines) + b"\r\n\r\n"


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(_CHUNK):
            sink.write(data)
            await sink.drain()
    except OSError:
        return  # either side is gone, which ends the pipe
