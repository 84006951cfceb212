"""SPDY/3.1, the server's side of it, as far as Kubernetes uses it: many streams of bytes over one connection.

The client opens streams; each has headers that say what it is for, carries bytes both ways and is closed by either side
on its own. Headers are compressed with a dictionary that both sides know, in one zlib stream per direction for the
whole connection, so every header block must be read, wanted or not. There is no flow control, since Kubernetes' clients
have none: a stream whose bytes are not read blocks the connection.
"""

from __future__ import annotations

import asyncio
import struct
import zlib
from collections.abc import Awaitable, Callable

SYN_STREAM, SYN_REPLY, RST_STREAM, PING, GOAWAY, HEADERS = 1, 2, 3, 6, 7, 8
FIN = 0x01
_VERSION = 3
_CONTROL = 0x80000000
_CANCEL = 5
_MOST_HEADERS = 64 * 1024
_MOST_FRAME = 1024 * 1024
_MOST_STREAMS = 1000
_QUEUED = 64
_PIECE = 64 * 1024
_WORDS = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow"
    " authorization cache-control connection content-base content-encoding content-language content-length"
    " content-location content-md5 content-range content-type date etag expect expires from host if-match"
    " if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma"
    " proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade"
    " user-agent vary via warning www-authenticate method get status 200_OK version HTTP/1.1 url public set-cookie"
    " keep-alive origin"
)
_TEXT = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 Non-Authoritative "
    "Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found500 "
    "Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct "
    "Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,"
    "image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8"
    "charset=iso-8859-1,utf-,*,enq=0."
)


def _dictionary() -> bytes:
    """Return common header names and values (_ is a space), each behind its length, then frequent text."""
    words = [word.replace("_", " ").encode() for word in _WORDS.split()]
    return b"".join(struct.pack(">I", len(word)) + word for word in words) + _TEXT.encode()


DICTIONARY = _dictionary()


class SpdyError(Exception):
    """The peer violates SPDY/3.1."""


class HeaderReader:
    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(zdict=DICTIONARY)

    def read(self, block: bytes) -> dict[str, str]:
        try:
            plain = self._zlib.decompress(block, _MOST_HEADERS)
            if self._zlib.unconsumed_tail:
                raise SpdyError("headers are too long")
            return _parsed(plain)
        except (zlib.error, struct.error, UnicodeDecodeError) as error:
            raise SpdyError(f"headers cannot be read: {error}") from error


def _parsed(plain: bytes) -> dict[str, str]:
    (count,) = struct.unpack_from(">I", plain)
    at = 4
    texts = []
    for _ in range(2 * count):
        (length,) = struct.unpack_from(">I", plain, at)
        at += 4
        if at + length > len(plain):
            raise SpdyError("headers are cut off")
        texts.append(plain[at : at + length].decode())
        at += length
    return {name.lower(): value for name, value in zip(texts[::2], texts[1::2], strict=True)}


class HeaderWriter:
    def __init__(self) -> None:
        self._zlib = zlib.compressobj(zdict=DICTIONARY)

    def write(self, headers: dict[str, str]) -> bytes:
        plain = struct.pack(">I", len(headers))
        for text in (text.encode() for pair in headers.items() for text in pair):
            plain += struct.pack(">I", len(text)) + text
        return self._zlib.compress(plain) + self._zlib.flush(zlib.Z_SYNC_FLUSH)


def control_frame(kind: int, flags: int, payload: bytes) -> bytes:
    return struct.pack(">HHI", 0x8000 | _VERSION, kind, flags << 24 | len(payload)) + payload


def data_frame(stream: int, flags: int, data: bytes) -> bytes:
    return struct.pack(">II", stream, flags << 24 | len(data)) + data


class Stream:
    def __init__(self, connection: Connection, number: int, headers: dict[str, str]) -> None:
        self._connection = connection
        self.number = number
        self.headers = headers
        self._arrived: asyncio.Queue[bytes] = asyncio.Queue(_QUEUED)
        self._ended = False
        self._closed = False

    async def read(self) -> bytes:
        """Return the next bytes; none at the end."""
        if self._ended and self._arrived.empty():
            return b""
        return await self._arrived.get()

    async def write(self, data: bytes) -> None:
        for start in range(0, len(data), _PIECE):
            if self._closed:
                return
            await self._connection.send(data_frame(self.number, 0, data[start : start + _PIECE]))

    async def close(self) -> None:
        """Close our direction: nothing more will be written."""
        if not self._closed:
            self._closed = True
            await self._connection.send(data_frame(self.number, FIN, b""))

    async def reset(self) -> None:
        """Close the stream in both directions."""
        self._closed = True
        await self._connection.send(control_frame(RST_STREAM, 0, struct.pack(">II", self.number, _CANCEL)))

    async def arrive(self, data: bytes) -> None:
        if data and not self._ended:
            await self._arrived.put(data)

    def end(self) -> None:
        """Record that the peer has closed its direction."""
        if not self._ended:
            self._ended = True
            if self._arrived.empty():
                self._arrived.put_nowait(b"")

    def abandon(self) -> None:
        self._closed = True
        self.end()


class Connection:
    """`receive` gives the next bytes from the network, none at the end; `transmit` sends some."""

    def __init__(self, receive: Callable[[], Awaitable[bytes]], transmit: Callable[[bytes], Awaitable[None]]) -> None:
        self._receive = receive
        self._transmit = transmit
        self._buffer = bytearray()
        self._reader = HeaderReader()
        self._writer = HeaderWriter()
        self._streams: dict[int, Stream] = {}
        self._opened: asyncio.Queue[Stream | None] = asyncio.Queue()
        self._sending = asyncio.Lock()

    async def accept(self) -> Stream | None:
        """Return the next stream that the client opens; None when it is gone."""
        return await self._opened.get()

    async def send(self, frame: bytes) -> None:
        async with self._sending:
            await self._transmit(frame)

    def forget(self, stream: Stream) -> None:
        """Drop a stream that is closed in both directions."""
        self._streams.pop(stream.number, None)

    async def run(self) -> None:
        """Receive frames until the connection ends. SpdyError if the peer violates the protocol."""
        try:
            while (head := await self._exactly(8)) is not None:
                first, second = struct.unpack(">II", head)
                flags, length = second >> 24, second & 0xFFFFFF
                if length > _MOST_FRAME:
                    raise SpdyError(f"a frame of {length} bytes")
                payload = await self._exactly(length)
                if payload is None:
                    return
                if not first & _CONTROL:
                    await self._data(first, flags, payload)
                elif not await self._control(first & 0xFFFF, flags, payload):
                    return
        finally:
            for stream in self._streams.values():
                stream.abandon()
            self._opened.put_nowait(None)

    async def _exactly(self, size: int) -> bytes | None:
        while len(self._buffer) < size:
            data = await self._receive()
            if not data:
                return None
            self._buffer += data
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken

    async def _data(self, number: int, flags: int, payload: bytes) -> None:
        stream = self._streams.get(number)
        if stream is None:
            return
        await stream.arrive(payload)
        if flags & FIN:
            stream.end()

    async def _control(self, kind: int, flags: int, payload: bytes) -> bool:
        """Return whether the connection goes on."""
        if kind == SYN_STREAM and len(payload) >= 10:
            await self._open(payload, flags)
        elif kind in (SYN_REPLY, HEADERS) and len(payload) >= 4:
            self._reader.read(payload[4:])
        elif kind == RST_STREAM and len(payload) >= 4:
            stream = self._streams.pop(struct.unpack_from(">I", payload)[0], None)
            if stream is not None:
                stream.abandon()
        elif kind == PING:
            await self.send(control_frame(PING, 0, payload))
        return kind != GOAWAY

    async def _open(self, payload: bytes, flags: int) -> None:
        number = struct.unpack_from(">I", payload)[0] & 0x7FFFFFFF
        stream = Stream(self, number, self._reader.read(payload[10:]))
        if number in self._streams or len(self._streams) >= _MOST_STREAMS:
            raise SpdyError("a stream was opened twice, or too many are open")
        self._streams[number] = stream
        async with self._sending:  # header blocks must leave in the order in which they were compressed
            await self._transmit(control_frame(SYN_REPLY, 0, struct.pack(">I", number) + self._writer.write({})))
        if flags & FIN:
            stream.end()
        self._opened.put_nowait(stream)
