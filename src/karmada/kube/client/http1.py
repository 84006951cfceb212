"""HTTP/1.1 over asyncio's streams: connections that are kept, requests, and bodies however they are framed.

As much of it as API servers need and no more, for programs that live for a fraction of a second and cannot spend it on
importing a library. Nothing a server sends is believed: heads and sizes are limited, and framing that makes no sense
ends the connection. A connection is used again only after its answer has been read to the end.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
import zlib
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

_HEAD_BYTES = 1 << 18
_PIECE = 1 << 16
_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9][0-9])(?: .*)?")
_HEADER = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*(.*?)[ \t]*")
_CHUNK = re.compile(rb"([0-9a-fA-F]{1,12})[ \t]*(?:;.*)?\r\n")
_SENDABLE = re.compile(r"[^\r\n\0]*")


class BrokenAnswer(ValueError):
    """What came is no HTTP, or ended too early."""


class OpeningTimedOut(TimeoutError):
    """No connection within the time there was for it."""


class Place(NamedTuple):
    """Where connections lead; with the same place they are alike."""

    host: str
    port: int
    tls: ssl.SSLContext | None
    name: str
    """The name the server has to prove."""


class Headers(Mapping[str, str]):
    """Names are matched without regard to case; of repeated ones the first counts."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in pairs:
            self._values.setdefault(name.lower(), []).append(value)

    def __getitem__(self, name: str) -> str:
        return self._values[name.lower()][0]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def all(self, name: str) -> list[str]:
        return self._values.get(name.lower(), [])


class Connection:
    def __init__(self, place: Place, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.place = place
        self.used = False
        """Before: it may have been closed since by the other side."""
        self._reader = reader
        self._writer = writer
        self._finished = True

    @property
    def reusable(self) -> bool:
        return self._finished and not self._reader.at_eof() and not self._writer.is_closing()

    def close(self) -> None:
        self._finished = False
        self._writer.transport.abort()

    async def send(self, method: str, target: str, headers: Iterable[tuple[str, str]], body: bytes | None) -> None:
        self._finished = False
        lines = [f"{method} {target} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in headers]
        if body is not None or method in ("POST", "PUT", "PATCH"):
            lines.append(f"Content-Length: {len(body or b'')}")
        for line in lines:
            if not _SENDABLE.fullmatch(line):
                raise ValueError("a header has characters that no header can have")
        self._writer.write("\r\n".join([*lines, "", ""]).encode() + (body or b""))
        await self._writer.drain()

    async def head(self, method: str) -> Answered:
        while True:
            status, headers, keeps = await self._head()
            if status >= 200:
                break
        return Answered(self, status, headers, _Framing.of(method, status, headers), keeps)

    async def _head(self) -> tuple[int, Headers, bool]:
        try:
            raw = await self._reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError as error:
            if not error.partial:
                raise ConnectionResetError("the server closed the connection without an answer") from None
            raise BrokenAnswer("the answer ended within its head") from None
        except asyncio.LimitOverrunError:
            raise BrokenAnswer("the head of the answer is too large") from None
        first, *lines = raw[:-4].split(b"\r\n")
        status = _STATUS_LINE.fullmatch(first)
        if status is None:
            raise BrokenAnswer("the server does not speak HTTP/1.1")
        matches = [_HEADER.fullmatch(line) for line in lines]
        headers = Headers((match[1].decode(), match[2].decode(errors="replace")) for match in matches if match)
        if not all(matches):
            raise BrokenAnswer("the head of the answer makes no sense")
        connection = headers.get("Connection", "").lower()
        keeps = connection == "keep-alive" if status[1] == b"0" else connection != "close"
        return int(status[2]), headers, keeps

    # bodies

    async def pieces(self, framing: _Framing, keeps: bool) -> AsyncIterator[bytes]:
        """The body as it was sent; afterwards the connection may be used again, if both sides want that."""
        if framing.chunked:
            async for piece in self._chunks():
                yield piece
        elif framing.length is not None:
            async for piece in self._exactly(framing.length):
                yield piece
        else:
            keeps = False
            while piece := await self._reader.read(_PIECE):
                yield piece
        self.used = True
        self._finished = keeps

    async def _exactly(self, left: int) -> AsyncIterator[bytes]:
        while left:
            piece = await self._reader.read(min(left, _PIECE))
            if not piece:
                raise BrokenAnswer("the connection broke within the answer")
            left -= len(piece)
            yield piece

    async def _chunks(self) -> AsyncIterator[bytes]:
        while True:
            size = _CHUNK.fullmatch(await self._line())
            if size is None:
                raise BrokenAnswer("the answer has a piece without a size")
            length = int(size[1], 16)
            if length == 0:
                break
            async for piece in self._exactly(length):
                yield piece
            if await self._line() != b"\r\n":
                raise BrokenAnswer("the answer has a piece of another size than it says")
        while await self._line() != b"\r\n":
            pass

    async def _line(self) -> bytes:
        try:
            return await self._reader.readuntil(b"\r\n")
        except asyncio.IncompleteReadError:
            raise BrokenAnswer("the connection broke within the answer") from None
        except asyncio.LimitOverrunError:
            raise BrokenAnswer("the answer has a line that is too long") from None


class _Framing(NamedTuple):
    chunked: bool
    length: int | None
    """None: up to the end of the connection."""

    @classmethod
    def of(cls, method: str, status: int, headers: Headers) -> _Framing:
        if method == "HEAD" or status in (204, 304):
            return cls(False, 0)
        coding = headers.get("Transfer-Encoding", "").lower()
        if coding:
            if coding != "chunked":
                raise BrokenAnswer(f"the answer is encoded as {coding}")
            return cls(True, None)
        lengths = set(headers.all("Content-Length"))
        if not lengths:
            return cls(False, None)
        length = lengths.pop()
        if lengths or not length.isascii() or not length.isdecimal():
            raise BrokenAnswer("the answer has a length that makes no sense")
        return cls(False, int(length))


class Answered:
    """An answer of which the head has come."""

    def __init__(self, connection: Connection, status: int, headers: Headers, framing: _Framing, keeps: bool) -> None:
        self.connection = connection
        self.status = status
        self.headers = headers
        self._framing = framing
        self._keeps = keeps

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it comes, unpacked in small steps: what is small on the wire may unfold to gigabytes."""
        sent = self.connection.pieces(self._framing, self._keeps)
        coding = self.headers.get("Content-Encoding", "identity").lower()
        if coding in ("identity", ""):
            async for piece in sent:
                yield piece
            return
        if coding != "gzip":
            raise BrokenAnswer(f"the answer is packed as {coding}")
        unpacker = zlib.decompressobj(wbits=31)
        async for piece in sent:
            while piece:
                try:
                    unpacked = unpacker.decompress(piece, _PIECE)
                except zlib.error as error:
                    raise BrokenAnswer(f"the answer cannot be unpacked: {error}") from error
                piece = unpacker.unconsumed_tail
                if unpacked:
                    yield unpacked
        rest = unpacker.flush()
        if rest:
            yield rest


class Connections:
    """The connections of an event loop, shared by all who ask the same places."""

    def __init__(self) -> None:
        self._idle: dict[Place, list[Connection]] = {}
        self._users = 0

    def enter(self) -> None:
        self._users += 1

    def leave(self) -> None:
        """The last one closes what is left."""
        self._users -= 1
        if self._users == 0:
            for connections in self._idle.values():
                for connection in connections:
                    connection.close()
            self._idle.clear()

    def idle(self, place: Place) -> Connection | None:
        waiting = self._idle.get(place, [])
        while waiting:
            connection = waiting.pop()
            if connection.reusable:
                return connection
            connection.close()
        return None

    def give_back(self, connection: Connection) -> None:
        if connection.reusable and self._users:
            self._idle.setdefault(connection.place, []).append(connection)
        else:
            connection.close()


async def open_connection(place: Place, seconds: float | None) -> Connection:
    """A new one; OSError (what the first address said), ssl.SSLError or OpeningTimedOut."""
    try:
        async with asyncio.timeout(seconds):
            made = await _socket(place)
            try:
                reader, writer = await asyncio.open_connection(
                    sock=made, ssl=place.tls, server_hostname=place.name if place.tls else None, limit=_HEAD_BYTES
                )
            except BaseException:
                made.close()
                raise
            return Connection(place, reader, writer)
    except TimeoutError as error:
        if isinstance(error, OSError) and error.errno is not None:  # the system's own, before ours
            raise
        raise OpeningTimedOut from error


async def _socket(place: Place) -> socket.socket:
    loop = asyncio.get_running_loop()
    first: OSError | None = None
    for family, kind, protocol, _, address in await _addresses(place):
        made = socket.socket(family, kind, protocol)
        try:
            made.setblocking(False)
            _keep_alive(made)
            await loop.sock_connect(made, address)
            return made
        except OSError as error:
            made.close()
            first = first or error
        except BaseException:
            made.close()
            raise
    raise first or OSError(f"{place.host} has no address")


async def _addresses(place: Place) -> list[Any]:
    """Without a thread where the host is an address already."""
    try:
        return socket.getaddrinfo(
            place.host, place.port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
        )
    except OSError:
        loop = asyncio.get_running_loop()
        return await loop.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM)


def _keep_alive(made: socket.socket) -> None:
    """Find out within a minute when the other side of a silent connection (a watch) is gone."""
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for option, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
