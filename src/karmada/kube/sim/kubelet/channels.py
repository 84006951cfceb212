"""The streams of a command in a container: stdin, stdout, stderr, the error channel, and the terminal's size.

There are two transports. Over WebSocket every message begins with the number of its channel; v5 can also close a
channel, which is how stdin ends there; the base64 forms are for clients that have only text messages. Over SPDY each
is a stream of its own, identified by its headers. `Channels` hides the difference from commands.
From v4 on the error channel ends with a Status that has the exit code; before, it holds a line of text.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

import aiohttp
import orjson
from aiohttp import web

from karmada.kube.client.pod_streams import CLOSE, ERROR, RESIZE, STDERR, STDIN, STDOUT
from karmada.kube.objects.errors import BadRequest
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.waiting import cancel_and_wait
from karmada.kube.server.http.upgrade import Upgraded, taken_over, wants_upgrade
from karmada.kube.sim.kubelet.spdy import Connection, SpdyError, Stream

MAX_MESSAGE = 1 << 20
"""Clients send some 32 kB at a time; a message is in memory whole."""
WEBSOCKET_PROTOCOLS = (
    "v5.channel.k8s.io",
    "v4.channel.k8s.io",
    "v4.base64.channel.k8s.io",
    "channel.k8s.io",
    "base64.channel.k8s.io",
)
SPDY_PROTOCOLS = (
    "v5.channel.k8s.io",
    "v4.channel.k8s.io",
    "v3.channel.k8s.io",
    "v2.channel.k8s.io",
    "channel.k8s.io",
)
SPDY = "SPDY/3.1"
PROTOCOL_HEADER = "X-Stream-Protocol-Version"
STREAM_SECONDS = 30.0
TERMINAL_SECONDS = 0.3
"""How long a client with a terminal may take to send its size."""
START_SECONDS = 0.02
"""How long a command takes to start when the client sends nothing; on a real node it takes longer."""
_MOST_UNREAD = 16 * 1024 * 1024
_CHUNK = 1 << 16
_NAMES = {"stdin": STDIN, "stdout": STDOUT, "stderr": STDERR, "error": ERROR, "resize": RESIZE}


class Wanted(NamedTuple):
    """Which streams the client requests."""

    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False

    def channels(self) -> set[int]:
        stderr = self.stderr and not self.tty
        requested = ((self.stdin, STDIN), (self.stdout, STDOUT), (stderr, STDERR), (self.tty, RESIZE))
        return {ERROR} | {channel for on, channel in requested if on}


def success() -> Obj:
    return {"metadata": {}, "status": "Success"}


def failed(code: int, command: list[str]) -> Obj:
    words = " ".join(command)
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: error executing command [{words}], exit code {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


class Inbox:
    """Data that arrived and was not read yet; a writer waits while it is full."""

    def __init__(self) -> None:
        self._pieces: asyncio.Queue[bytes] = asyncio.Queue()
        self._size = 0
        self._room = asyncio.Event()
        self._ended = False

    async def put(self, data: bytes) -> None:
        while self._size > _MOST_UNREAD:
            self._room.clear()
            await self._room.wait()
        if data and not self._ended:
            self._size += len(data)
            self._pieces.put_nowait(data)

    def end(self) -> None:
        if not self._ended:
            self._ended = True
            self._pieces.put_nowait(b"")

    async def read(self) -> bytes:
        """Return the next bytes; none at the end."""
        if self._ended and self._pieces.empty():
            return b""
        data = await self._pieces.get()
        self._size -= len(data)
        self._room.set()
        return data


class Channels:
    """A command's streams. `send` puts bytes onto a channel; what comes in is put into `stdin`."""

    def __init__(self, wanted: Wanted, protocol: str, send: Callable[[int, bytes], Awaitable[None]]) -> None:
        self.wanted = wanted
        self.protocol = protocol
        self.stdin = Inbox()
        self.size: tuple[int, int] = (0, 0)
        self._resized: Callable[[int, int], None] | None = None
        self._send = send
        self._open = wanted.channels()
        if not wanted.stdin:
            self.stdin.end()

    async def write(self, channel: int, data: bytes) -> None:
        """To stdout or stderr; what the client does not want is dropped. A terminal has no stderr of its own."""
        if channel == STDERR and self.wanted.tty:
            channel = STDOUT
        if channel in self._open and data:
            await self._send(channel, data)

    async def finish(self, status: Obj) -> None:
        if self.protocol.startswith(("v4", "v5")):
            await self._send(ERROR, orjson.dumps(status))
        elif status["status"] != "Success":
            await self._send(ERROR, status["message"].encode())

    def resized(self, data: bytes) -> None:
        try:
            size = orjson.loads(data)
            self.size = (int(size["Width"]), int(size["Height"]))
        except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
            return  # an invalid size is ignored
        if self._resized is not None:
            self._resized(*self.size)

    def when_resized(self, call: Callable[[int, int], None] | None) -> None:
        """`call` gets width and height of the client's terminal, now if they are known, and when they change."""
        self._resized = call
        if call is not None and self.size != (0, 0):
            call(*self.size)


Work = Callable[[Channels], Awaitable[Obj]]
"""Runs a command over its channels and returns how it ended."""


async def serve(raw: web.BaseRequest, wanted: Wanted, work: Work) -> web.StreamResponse:
    """Negotiate the transport, run the command over it, send its exit status. A disconnect ends the command."""
    if raw.headers.get("Upgrade", "").lower() == "websocket":
        return await _over_websocket(raw, wanted, work)
    return await _over_spdy(raw, wanted, work)


def check_upgrade(headers: Mapping[str, str]) -> None:
    """Before anything starts: BadRequest if no transport can be negotiated."""
    if not wants_upgrade(headers):
        raise BadRequest("Upgrade request required")
    upgrade = headers.get("Upgrade", "")
    if upgrade.lower() == "websocket":
        if offered(headers) and chosen(offered(headers), WEBSOCKET_PROTOCOLS) is None:
            raise BadRequest(f"unable to upgrade: none of {offered(headers)} is among {list(WEBSOCKET_PROTOCOLS)}")
    elif upgrade != SPDY:
        raise BadRequest(f"unable to upgrade: unknown protocol {upgrade}")


def offered(headers: Mapping[str, str]) -> list[str]:
    """Return the subprotocols that a WebSocket client speaks, best first; tokens travel among them, too."""
    parts = [part.strip() for part in headers.get("Sec-WebSocket-Protocol", "").split(",")]
    return [part for part in parts if part and not part.startswith("base64url.bearer.authorization.")]


def chosen(wanted: list[str], known: tuple[str, ...]) -> str | None:
    return next((protocol for protocol in wanted if protocol in known), None)


async def until_disconnected(listen: Awaitable[None], work: Awaitable[None]) -> bool:
    """Run `work` until `listen` ends; return whether it completed before the client disconnected."""
    listening, working = asyncio.ensure_future(listen), asyncio.ensure_future(work)
    try:
        await asyncio.wait({listening, working}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
            return True
        return False
    finally:
        await cancel_and_wait(listening, working)


# WebSocket


def sender(socket: web.WebSocketResponse, *, text: bool) -> Callable[[int, bytes], Awaitable[None]]:
    """Send a message on a channel, unless the client is gone; `text`: in one of the base64 forms."""

    async def send(channel: int, data: bytes) -> None:
        if socket.closed:
            return
        if text:
            await socket.send_str(f"{channel}{base64.b64encode(data).decode()}")
        else:
            await socket.send_bytes(bytes((channel,)) + data)

    return send


async def _over_websocket(raw: web.BaseRequest, wanted: Wanted, work: Work) -> web.StreamResponse:
    protocol = chosen(offered(raw.headers), WEBSOCKET_PROTOCOLS) or ""
    protocols = (protocol,) if protocol else ()
    socket = web.WebSocketResponse(protocols=protocols, max_msg_size=MAX_MESSAGE, compress=False)
    await socket.prepare(raw)
    send = sender(socket, text="base64" in protocol)
    channels, reading = Channels(wanted, protocol, send), asyncio.Event()

    async def run() -> None:
        await _until_client_reads(wanted, reading)
        for channel in sorted(wanted.channels() - {STDIN, RESIZE}):
            await send(channel, b"")
        await channels.finish(await work(channels))

    finished = await until_disconnected(_listen(socket, channels, reading), run())
    await socket.close(code=1000 if finished else 1001)
    return socket


async def _until_client_reads(wanted: Wanted, reading: asyncio.Event) -> None:
    """Wait for kubectl 1.32, which drops what arrives before it has its streams (kubernetes#131203).

    Its first message shows that it has them: the size of its terminal, or stdin. If it has neither only time helps.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(TERMINAL_SECONDS if wanted.tty else START_SECONDS):
            await reading.wait()


async def _listen(socket: web.WebSocketResponse, channels: Channels, reading: asyncio.Event) -> None:
    async for message in socket:
        if message.type not in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY) or not message.data:
            continue
        reading.set()
        channel, data = unframed(message.data)
        if channel == STDIN and channels.wanted.stdin:
            await channels.stdin.put(data)
        elif channel == CLOSE and data[:1] == bytes((STDIN,)) and channels.protocol.startswith("v5"):
            channels.stdin.end()
        elif channel == RESIZE:
            channels.resized(data)
    channels.stdin.end()


def unframed(message: str | bytes) -> tuple[int, bytes]:
    """Return the channel of a message and what is in it; of text messages the base64 form."""
    if isinstance(message, bytes):
        return message[0], message[1:]
    try:
        return int(message[0]), base64.b64decode(message[1:], validate=True)
    except (ValueError, binascii.Error):
        return -1, b""


# SPDY


@asynccontextmanager
async def spdy_connection(raw: web.BaseRequest, protocol: str) -> AsyncIterator[Connection]:
    """Yield the request's connection, switched over to SPDY."""
    head = [b"HTTP/1.1 101 Switching Protocols", b"Connection: Upgrade", f"Upgrade: {SPDY}".encode()]
    if protocol:
        head.append(f"{PROTOCOL_HEADER}: {protocol}".encode())
    async with taken_over(raw, head) as (reader, writer):

        async def transmit(data: bytes) -> None:
            writer.write(data)
            await writer.drain()

        yield Connection(lambda: reader.read(_CHUNK), transmit)


async def listen(connection: Connection) -> None:
    """Receive frames until the client disconnects or violates the protocol."""
    try:
        await connection.run()
    except (SpdyError, OSError):
        return


async def _over_spdy(raw: web.BaseRequest, wanted: Wanted, work: Work) -> web.StreamResponse:
    offered = [part.strip() for value in raw.headers.getall(PROTOCOL_HEADER, []) for part in value.split(",")]
    protocol = chosen(offered, SPDY_PROTOCOLS)
    if offered and protocol is None:
        return web.Response(status=403, text="unable to negotiate a protocol")
    protocol = protocol or "channel.k8s.io"

    async def run(connection: Connection) -> None:
        streams = await _streams(connection, wanted, protocol)
        if streams is None:
            return

        async def send(channel: int, data: bytes) -> None:
            if channel in streams:
                await streams[channel].write(data)

        channels = Channels(wanted, protocol, send)
        feeding = [asyncio.ensure_future(_feed(streams, channels)), asyncio.ensure_future(_resize(streams, channels))]
        try:
            await channels.finish(await work(channels))
        finally:
            await cancel_and_wait(*feeding)
        for stream in streams.values():
            await stream.close()

    async with spdy_connection(raw, protocol) as connection:
        await until_disconnected(listen(connection), run(connection))
    return Upgraded(status=101)


async def _streams(connection: Connection, wanted: Wanted, protocol: str) -> dict[int, Stream] | None:
    """Return the streams the client opens for this command; None if it never does."""
    missing = wanted.channels()
    if not protocol.startswith(("v3", "v4", "v5")):
        missing.discard(RESIZE)
    streams: dict[int, Stream] = {}
    try:
        async with asyncio.timeout(STREAM_SECONDS):
            while missing:
                stream = await connection.accept()
                if stream is None:
                    return None
                channel = _NAMES.get(stream.headers.get("streamtype", ""), -1)
                streams[channel] = stream
                missing.discard(channel)
    except TimeoutError:
        return None
    return streams


async def _feed(streams: dict[int, Stream], channels: Channels) -> None:
    if STDIN in streams:
        while data := await streams[STDIN].read():
            await channels.stdin.put(data)
        channels.stdin.end()


async def _resize(streams: dict[int, Stream], channels: Channels) -> None:
    if RESIZE in streams:
        while data := await streams[RESIZE].read():
            channels.resized(data)
