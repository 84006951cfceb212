"""Passing a request on to another server and its answer back, as it comes: what every proxy here is made of.

Whatever the client sent to prove itself stays here. After an upgrade (101) the two connections are one pipe: both
sides' transports get plain stream protocols and bytes are copied until either side ends. That is for requests that want
for it: to a client that did not, the connection is still HTTP, and its next request must not end up at the backend.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import aiohttp
import orjson
from aiohttp import web
from multidict import CIMultiDict

from karmada.kube.client.limits import LIST_BYTES
from karmada.kube.runtime.waiting import cancel_and_wait
from karmada.kube.server.auth.headers import without_identity
from karmada.kube.server.http.request import Request
from karmada.kube.server.http.results import RawResult
from karmada.kube.server.http.upgrade import Tail, Upgraded, pump, stream, taken_over, wants_upgrade
from karmada.kube.server.outbound.bodies import read_body

_HOP_BY_HOP = frozenset(
    {
        "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
        "transfer-encoding", "upgrade",
    }
)  # fmt: skip
_SET_BY_US = frozenset({"host", "content-length", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"})
_WEBSOCKET_TOKEN = "base64url.bearer.authorization.k8s.io."


async def pass_on(raw: web.BaseRequest, response: aiohttp.ClientResponse) -> web.StreamResponse:
    """Give the client what the backend answered, an upgrade included; `response` is closed then."""
    try:
        if response.status == 101:
            if _is_wanted(raw, response):
                return await tunnel(raw, response)
            refusal = web.Response(status=502, text="the backend changed to a protocol that was not requested\n")
            refusal.force_close()
            return refusal
        answer = await relay(raw, response)
        response.release()
        return answer
    finally:
        response.close()  # what was released before stays open for others


async def whole(response: aiohttp.ClientResponse) -> RawResult:
    """Return what the backend answered to a caller in this process; `response` is closed then."""
    async with response:
        media = response.headers.get("Content-Type", "application/json")
        return RawResult(await read_body(response, LIST_BYTES), media, response.status)


def _is_wanted(raw: web.BaseRequest, response: aiohttp.ClientResponse) -> bool:
    requested = {name.strip().lower() for name in raw.headers.get("Upgrade", "").split(",")}
    return wants_upgrade(raw.headers) and response.headers.get("Upgrade", "").strip().lower() in requested


def forwarded_headers(raw: web.BaseRequest, identity: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the headers for the backend: the client's without what proves who it is, and `identity` in its place."""
    named = {part.strip().lower() for part in raw.headers.get("Connection", "").split(",")}
    dropped = _HOP_BY_HOP | _SET_BY_US | named
    headers = [(name, value) for name, value in without_identity(raw.headers) if name.lower() not in dropped]
    headers = [pair for pair in map(_without_token, headers) if pair[1]]
    headers += identity
    headers.append(("Host", raw.headers.get("Host", "")))
    before = raw.headers.get("X-Forwarded-For", "")
    peer = raw.remote or ""
    headers.append(("X-Forwarded-For", f"{before}, {peer}" if before else peer))
    headers += [("X-Forwarded-Host", raw.headers.get("Host", "")), ("X-Forwarded-Proto", "https")]
    if wants_upgrade(raw.headers):
        headers += [("Connection", "Upgrade"), ("Upgrade", raw.headers["Upgrade"])]
    return headers


def _without_token(header: tuple[str, str]) -> tuple[str, str]:
    """WebSocket clients in browsers put their token among the subprotocols."""
    name, value = header
    if name.lower() != "sec-websocket-protocol":
        return header
    kept = [part.strip() for part in value.split(",") if not part.strip().startswith(_WEBSOCKET_TOKEN)]
    return name, ", ".join(kept)


def own_body(request: Request) -> bytes | None:
    """Return the body of a request of this process, which may be an object yet."""
    return request.body or (orjson.dumps(request.obj) if request.obj is not None else None)


def body_of(request: Request, raw: web.BaseRequest) -> Any:
    if request.body:
        return request.body
    return raw.content if raw.can_read_body and not raw.content.at_eof() else None


def _end_to_end(headers: Iterable[tuple[str, str]]) -> CIMultiDict[str]:
    return CIMultiDict((name, value) for name, value in headers if name.lower() not in _HOP_BY_HOP)


async def relay(raw: web.BaseRequest, response: aiohttp.ClientResponse) -> web.StreamResponse:
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
        raise ConnectionResetError("the backend broke off its response") from error
    await answer.write_eof()
    return answer


# Upgrades


async def tunnel(raw: web.BaseRequest, response: aiohttp.ClientResponse) -> web.StreamResponse:
    connection = response.connection
    if connection is None or connection.transport is None or connection.protocol is None:
        raise ConnectionResetError("the connection is gone")
    behind = Tail()
    connection.protocol.set_parser(behind, behind)
    from_backend, to_backend = stream(connection.transport, behind.data)
    async with taken_over(raw, _head(response)) as (from_client, to_client):
        pumps = [asyncio.create_task(pump(from_client, to_backend)), asyncio.create_task(pump(from_backend, to_client))]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await cancel_and_wait(*pumps)
            to_backend.close()
    return Upgraded(status=101)


def _head(response: aiohttp.ClientResponse) -> list[bytes]:
    lines = [b"HTTP/1.1 %d %s" % (response.status, (response.reason or "Switching Protocols").encode())]
    return lines + [name + b": " + value for name, value in response.raw_headers]
