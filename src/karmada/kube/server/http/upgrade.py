"""Connections that stop being HTTP: after a 101 the request's transport becomes a plain stream of bytes.

The HTTP front's protocol is put aside while the stream lasts and gets the transport back for its end, so that the
front closes the connection as it closes every other.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

_CHUNK = 1 << 16


class Tail:
    """The data behind the head of an upgrade that came before the stream was made; stands in for a parser."""

    def __init__(self) -> None:
        self.data = b""

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        self.data += data
        return False, b""

    def feed_eof(self) -> None:
        """Do nothing: the stream sees the end itself."""

    def set_exception(self, error: BaseException, cause: BaseException | None = None) -> None:
        """Do nothing: the stream sees the fault itself."""


class Upgraded(web.StreamResponse):
    """For a connection on which everything has been said."""

    async def prepare(self, request: web.BaseRequest) -> None:  # noqa: ARG002
        return None

    async def write_eof(self, data: bytes = b"") -> None:  # noqa: ARG002
        return None

    @property
    def keep_alive(self) -> bool:
        return False


def stream(transport: Any, tail: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
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


def wants_upgrade(headers: Any) -> bool:
    return bool(headers.get("Upgrade")) and "upgrade" in headers.get("Connection", "").lower()


@asynccontextmanager
async def taken_over(
    raw: web.BaseRequest, head: Iterable[bytes]
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Yield the client's connection as a stream, once the lines of `head` are sent; closed at the end of the block."""
    transport = raw.transport
    if transport is None:
        raise ConnectionResetError("the connection is gone")
    front: Any = raw.protocol
    tail = Tail()
    front.set_parser(tail)
    reader, writer = stream(transport, tail.data)
    try:
        writer.write(b"\r\n".join(head) + b"\r\n\r\n")
        yield reader, writer
    finally:
        transport.set_protocol(front)
        transport.close()


async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    """Copy until the source ends or either side is gone."""
    try:
        while data := await source.read(_CHUNK):
            sink.write(data)
            await sink.drain()
    except OSError:
        return
