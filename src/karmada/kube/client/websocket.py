"""A WebSocket on a connection that a server has upgraded: frames by wsproto, the handshake and the rest here.

Messages are limited in size. A ping is sent every half a minute, so that nothing on the way takes the connection for an
idle one, and one whose other side stays silent until the next ping is broken.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import os
from collections.abc import Callable, Mapping, Sequence

from wsproto.connection import Connection as Frames
from wsproto.connection import ConnectionState, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Message, Ping
from wsproto.utilities import LocalProtocolError

from karmada.kube.client.http1 import BrokenAnswer, Connection, Response
from karmada.kube.client.limits import OBJECT_BYTES, readable
from karmada.kube.client.transport import ConnectionFailed

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_PING_SECONDS = 30.0
_CLOSE_SECONDS = 10.0


class Handshake:
    """The headers of a request for a WebSocket with one of the subprotocols, and the check of the response."""

    def __init__(self, protocols: Sequence[str]) -> None:
        self._key = base64.b64encode(os.urandom(16)).decode()
        self._protocols = protocols
        self.headers = (
            ("Connection", "Upgrade"),
            ("Upgrade", "websocket"),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", self._key),
            *((("Sec-WebSocket-Protocol", ", ".join(protocols)),) if protocols else ()),
        )

    def agreed(self, response: Response) -> str:
        """Return the subprotocol of a response with code 101; BrokenAnswer when it does not open a WebSocket."""
        headers: Mapping[str, str] = response.headers
        accepted = base64.b64encode(hashlib.sha1(self._key.encode() + _GUID).digest()).decode()
        if headers.get("Upgrade", "").lower() != "websocket" or headers.get("Sec-WebSocket-Accept") != accepted:
            raise BrokenAnswer("the server switched to something else than a WebSocket")
        protocol = headers.get("Sec-WebSocket-Protocol", "")
        if protocol and protocol not in self._protocols:
            raise BrokenAnswer("the server chose a subprotocol that was not offered")
        return protocol


class WebSocket:
    """The client's side; `on_closed` is called with the connection when that has been closed."""

    def __init__(self, connection: Connection, protocol: str, on_closed: Callable[[Connection], None]) -> None:
        self.protocol = protocol
        self._connection = connection
        self._on_closed = on_closed
        self._frames = Frames(ConnectionType.CLIENT)
        self._message = bytearray()
        self._ended = False
        self._reading = asyncio.Lock()
        self._received_at_ping = -1
        self._timer = asyncio.get_running_loop().call_later(_PING_SECONDS, self._ping)

    async def send(self, message: bytes) -> None:
        try:
            await self._connection.write(self._frames.send(BytesMessage(message)))
        except (OSError, LocalProtocolError) as error:
            raise ConnectionFailed(f"the socket broke: {error}") from error

    async def receive(self) -> bytes | None:
        """Return the next message; None when the other side has closed."""
        async with self._reading:
            try:
                return await self._next()
            except (OSError, ValueError) as error:
                raise ConnectionFailed(f"the socket broke: {error}") from error

    async def close(self) -> None:
        """Say so to the other side, and wait for a moment until it has got all of what was sent."""
        with contextlib.suppress(OSError, LocalProtocolError, ValueError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._connection.write(self._frames.send(CloseConnection(1000)))
                async with self._reading:
                    while await self._next() is not None:
                        pass
        self._end()

    async def _next(self) -> bytes | None:
        while not self._ended:
            for event in self._frames.events():
                if isinstance(event, Message):
                    self._take(event.data)
                    if event.message_finished:
                        message, self._message = bytes(self._message), bytearray()
                        return message
                elif isinstance(event, Ping):
                    await self._connection.write(self._frames.send(event.response()))
                elif isinstance(event, CloseConnection):
                    await self._closed(event)
                    return None
            data = await self._connection.read()
            if not data:
                self._end()
                return None
            self._frames.receive_data(data)
        return None

    def _take(self, piece: str | bytes | bytearray) -> None:
        """Put a piece of a message to those before; ValueError when it becomes too large."""
        data = piece.encode() if isinstance(piece, str) else piece
        if len(self._message) + len(data) > OBJECT_BYTES:
            self._end()
            raise ValueError(f"a message is larger than {readable(OBJECT_BYTES)}")
        self._message += data

    async def _closed(self, event: CloseConnection) -> None:
        """Return the error for a connection that the other side closed, or whose data is not understood."""
        state = self._frames.state
        if state is ConnectionState.OPEN:
            self._end()
            raise ValueError(event.reason or "what came is no WebSocket frame")
        if state is ConnectionState.REMOTE_CLOSING:
            with contextlib.suppress(OSError):
                await self._connection.write(self._frames.send(event.response()))
        self._end()

    def _ping(self) -> None:
        """Send one, unless nothing has come since the last."""
        connection = self._connection
        if connection.received == self._received_at_ping and not connection.is_paused:
            connection.fail(TimeoutError("the other side went silent"))
            return
        self._received_at_ping = connection.received
        with contextlib.suppress(OSError, LocalProtocolError):
            connection.write_soon(self._frames.send(Ping()))
        self._timer = asyncio.get_running_loop().call_later(_PING_SECONDS, self._ping)

    def _end(self) -> None:
        if not self._ended:
            self._ended = True
            self._timer.cancel()
            self._connection.close(at_once=self._frames.state is not ConnectionState.CLOSED)
            self._on_closed(self._connection)
