"""Port-forwarding: bytes between a client and the ports of a pod, over the three protocols that clients use.

kubectl uses SPDY, on the connection itself or (since 1.31) inside a WebSocket: for every TCP connection it opens a pair
of streams, one for data and one for errors, with the same request number in their headers. Others use WebSocket
channels, two per port, whose first message in either direction is the port's number.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable, Mapping

import aiohttp
from aiohttp import web

from karmada.kube.objects.errors import BadRequest
from karmada.kube.runtime.waiting import cancel_and_wait
from karmada.kube.server.http.request import Query
from karmada.kube.server.http.upgrade import Upgraded, wants_upgrade
from karmada.kube.sim.kubelet.channels import (
    MAX_MESSAGE,
    SPDY,
    Inbox,
    chosen,
    listen,
    offered,
    sender,
    spdy_connection,
    unframed,
    until_disconnected,
)
from karmada.kube.sim.kubelet.spdy import Connection, Stream
from karmada.kube.sim.kubelet.web import Read, Write

PROTOCOL = "portforward.k8s.io"
TUNNELLED = f"{SPDY}+{PROTOCOL}"
CHANNELS = ("v4.channel.k8s.io", "v4.base64.channel.k8s.io", "channel.k8s.io", "base64.channel.k8s.io")

ServePort = Callable[[int, Read, Write], Awaitable[str]]
"""(port, read, write): serve a connection to a port until either side closes; returns the error, or nothing."""


def check_request(headers: Mapping[str, str], query: Query) -> None:
    """BadRequest if no protocol can be negotiated."""
    if not wants_upgrade(headers):
        raise BadRequest("Upgrade request required")
    upgrade = headers.get("Upgrade", "")
    if upgrade.lower() == "websocket":
        if chosen(offered(headers), (TUNNELLED, *CHANNELS)) in (None, *CHANNELS):
            ports_of(query)
    elif upgrade != SPDY:
        raise BadRequest(f"unable to upgrade: unknown protocol {upgrade}")


def ports_of(query: Query) -> list[int]:
    texts = [text for value in query.all("ports") + query.all("port") for text in value.split(",")]
    ports = [int(text) for text in texts if text.isdigit() and 0 < int(text) < 65536]
    if not ports or len(ports) != len(texts):
        raise BadRequest('query parameter "port" is required' if not texts else f"unable to parse ports {texts}")
    return ports


async def serve(raw: web.BaseRequest, query: Query, serve_port: ServePort) -> web.StreamResponse:
    if raw.headers.get("Upgrade", "").lower() != "websocket":
        async with spdy_connection(raw, PROTOCOL) as connection:
            await until_disconnected(listen(connection), _pairs(connection, serve_port))
        return Upgraded(status=101)
    protocol = chosen(offered(raw.headers), (TUNNELLED, *CHANNELS)) or ""
    protocols = (protocol,) if protocol else ()
    socket = web.WebSocketResponse(protocols=protocols, max_msg_size=MAX_MESSAGE, compress=False)
    await socket.prepare(raw)
    if protocol == TUNNELLED:
        connection = Connection(lambda: _next(socket), socket.send_bytes)
        await until_disconnected(listen(connection), _pairs(connection, serve_port))
    else:
        await _channels(socket, ports_of(query), "base64" in protocol, serve_port)
    await socket.close()
    return socket


# SPDY


async def _next(socket: web.WebSocketResponse) -> bytes:
    async for message in socket:
        if message.type == aiohttp.WSMsgType.BINARY and message.data:
            return bytes(message.data)
    return b""


async def _pairs(connection: Connection, serve_port: ServePort) -> None:
    """Hold a conversation for every pair of streams, until the client leaves."""
    waiting: dict[str, Stream] = {}
    talking: set[asyncio.Task[None]] = set()
    try:
        while (stream := await connection.accept()) is not None:
            key = _request_of(stream)
            other = waiting.pop(key, None)
            if other is None:
                waiting[key] = stream
                continue
            data, error = (stream, other) if stream.headers.get("streamtype") == "data" else (other, stream)
            task = asyncio.create_task(_serve_pair(connection, data, error, serve_port))
            talking.add(task)
            task.add_done_callback(talking.discard)
    finally:
        await cancel_and_wait(*talking)


def _request_of(stream: Stream) -> str:
    """Return what ties a pair together; some clients open the error stream first and the other right behind."""
    request = stream.headers.get("requestid")
    if request is not None:
        return request
    return f"#{stream.number - 2 if stream.headers.get('streamtype') == 'data' else stream.number}"


async def _serve_pair(connection: Connection, data: Stream, error: Stream, serve_port: ServePort) -> None:
    port = data.headers.get("port", "")
    try:
        wrong = await serve_port(int(port), data.read, data.write) if port.isdigit() else f"unable to parse port {port}"
        if wrong:
            await error.write(f"error forwarding port {port} to pod: {wrong}".encode())
        await data.close()
        await error.close()
    except OSError:
        return  # the client is gone, which ends everything
    finally:
        connection.forget(data)
        connection.forget(error)


# channels


async def _channels(socket: web.WebSocketResponse, ports: list[int], text: bool, serve_port: ServePort) -> None:
    inboxes = [Inbox() for _ in ports]

    send = sender(socket, text=text)

    async def talk(index: int, port: int) -> None:
        for channel in (2 * index, 2 * index + 1):
            await send(channel, struct.pack("<H", port))
        wrong = await serve_port(port, inboxes[index].read, lambda data: send(2 * index, data))
        if wrong:
            await send(2 * index + 1, wrong.encode())

    async def receive() -> None:
        async for message in socket:
            if message.type not in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY) or not message.data:
                continue
            channel, data = unframed(message.data)
            if channel % 2 == 0 and 0 <= channel // 2 < len(inboxes):
                await inboxes[channel // 2].put(data)

    async def all_talks() -> None:
        await asyncio.gather(*(talk(index, port) for index, port in enumerate(ports)))

    await until_disconnected(receive(), all_talks())
