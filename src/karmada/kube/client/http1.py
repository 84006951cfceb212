"""HTTP/1.1: connections that are kept, requests, and bodies however they are framed.

As much of it as API servers need and no more: for programs that live for a fraction of a second and cannot spend it on
importing a library, and for those that send thousands of objects a second, where a library's generality costs more than
TLS. Nothing a server sends is believed: heads and sizes are limited, and framing that makes no sense ends the
connection. A connection is used again only after its answer has been read to the end.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
import time
import zlib
from collections import Counter, deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, cast

from karmada.kube.client import cluster_names
from karmada.kube.client.limits import readable
from karmada.kube.client.proxies import Proxy, ProxyRefused, dial_socks

_HEAD_BYTES = 1 << 18
_PIECE = 1 << 16
_BUFFER_BYTES = 1 << 18
"""Bytes that may be received before they are read."""
_SHORT_NAME = 128
"""Bytes of the name of a header that may be remembered."""
_NO_HEAD = "the head of the response makes no sense"
_BROKEN = "the connection broke within the response"
_NO_VALUE = ("",)
_IDLE_SECONDS = 60.0
"""A connection that waited longer may be about to be closed by the server."""
_NEXT_ADDRESS_SECONDS = 0.25
_WITH_BODY = ("POST", "PUT", "PATCH")
_SWITCHING = 101
_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9][0-9])(?: .*)?")
_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_CHUNK = re.compile(rb"([0-9a-fA-F]{1,12})[ \t]*(?:;.*)?\r\n")
_SENDABLE = re.compile(r"[^\r\n\0]*")


class BrokenAnswer(ValueError):
    """The response is no HTTP, or ended too early."""


class OpeningTimedOut(TimeoutError):
    """No connection within the time there was for it."""


class Origin(NamedTuple):
    """Where connections lead; with the same origin they are alike."""

    host: str
    port: int
    tls: ssl.SSLContext | None
    name: str
    """The name the server has to prove."""
    proxy: Proxy | None = None


class Headers(Mapping[str, str]):
    """Names are matched without regard to case; of repeated ones the first counts."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        """Read the lines of a head; BrokenAnswer."""
        self.lists: dict[str, list[str]] = {}
        """All values by the name in lower case."""
        for line in lines:
            name, colon, value = line.partition(b":")
            if not colon:
                raise BrokenAnswer(_NO_HEAD)
            known = _remembered_name(name) if len(name) <= _SHORT_NAME else _name(name)
            self.lists.setdefault(known, []).append(value.strip(b" \t").decode(errors="replace"))

    def __getitem__(self, name: str) -> str:
        return self.lists[name.lower()][0]

    def __iter__(self) -> Iterator[str]:
        return iter(self.lists)

    def __len__(self) -> int:
        return len(self.lists)


def _name(name: bytes) -> str:
    """As headers are found by it; BrokenAnswer."""
    if not _NAME.fullmatch(name):
        raise BrokenAnswer(_NO_HEAD)
    return name.decode().lower()


_remembered_name = lru_cache(maxsize=1024)(_name)
"""The responses of a server have the same few."""


class Connection(asyncio.Protocol):
    """One request at a time; received bytes are buffered until they are read, up to a limit."""

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.used = False
        """Before: it may have been closed since by the other side."""
        self.idle_since = 0.0
        self.received = 0
        """Bytes so far."""
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._data = bytearray()
        self._room = _BUFFER_BYTES
        self._paused = False
        self._ended = False
        self._error: Exception | None = None
        self._waiting: asyncio.Future[None] | None = None
        self._full: asyncio.Future[None] | None = None
        self._finished = True
        self._end: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    # callbacks of the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._data += data
        self.received += len(data)
        if len(self._data) > self._room and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        self._ended = True
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended, self._error, self._transport = True, self._error or exc, None
        self._stop_timer()
        self.resume_writing()
        self._wake()

    def pause_writing(self) -> None:
        self._full = self._loop.create_future()

    def resume_writing(self) -> None:
        full, self._full = self._full, None
        if full is not None and not full.done():
            full.set_result(None)

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    # time

    def limit(self, end: float | None) -> None:
        """From this time of the event loop on, whoever waits for the other side gets a TimeoutError; None: no limit.

        A timer that is due earlier stays, and is set again when it is due: most requests need none of their own.
        """
        self._end = end
        if end is not None and (self._timer is None or end < self._timer.when()):
            self._stop_timer()
            self._timer = self._loop.call_at(end, self._look_at_time)

    def _look_at_time(self) -> None:
        self._timer = None
        if self._end is None or self._loop.time() < self._end:
            self.limit(self._end)
            return
        self.fail(TimeoutError("no response in time"))

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # what can be done with it

    @property
    def is_stale(self) -> bool:
        """Return whether it ended, was out of time, received something without a request, or has waited too long."""
        ended = self._ended or self._error is not None or self._transport is None
        idle = time.monotonic() - self.idle_since > _IDLE_SECONDS
        return ended or idle or not self._finished or bool(self._data)

    def close(self, *, at_once: bool = True) -> None:
        """`at_once`: also if not all has gone that was sent."""
        self._finished = False
        if self._transport is None:
            return
        if at_once:
            self._transport.abort()
        else:
            self._transport.close()

    async def send(self, method: str, target: str, headers: tuple[tuple[str, str], ...], body: bytes | None) -> None:
        self._finished = False
        if not _SENDABLE.fullmatch(target):
            raise ValueError("the path has characters that no path can have")
        length = f"Content-Length: {len(body or b'')}\r\n" if body is not None or method in _WITH_BODY else ""
        head = f"{method} {target} HTTP/1.1\r\n{_lines(headers)}{length}\r\n".encode()
        self.write_soon(head + body if body else head)
        if self._full is not None:
            await self._full

    async def write(self, data: bytes) -> None:
        """Send bytes as they are, and wait until nearly all have gone."""
        self.write_soon(data)
        if self._full is not None:
            await self._full

    def write_soon(self, data: bytes) -> None:
        if self._transport is None:
            raise self._error or ConnectionResetError("the connection has ended")
        self._transport.write(data)

    async def read(self) -> bytes:
        """Return bytes that have come, as they are, or wait for the next; nothing at the end of the connection."""
        return await self._some(_PIECE)

    @property
    def is_paused(self) -> bool:
        """Return whether more has been received than is read."""
        return self._paused

    def fail(self, error: Exception) -> None:
        """Have whoever waits for the other side get this error."""
        self._error = error
        self.resume_writing()
        self._wake()

    async def tunnel(self, target: str, headers: tuple[tuple[str, str], ...], tls: ssl.SSLContext, name: str) -> None:
        """Have the proxy at the other end open a way to `target`, and begin TLS with the server there."""
        await self.send("CONNECT", target, headers, None)
        response = await self.head("CONNECT")
        if response.status != 200:
            raise ProxyRefused(f"the proxy responded with {response.status}")
        if self._data or self._transport is None:
            raise BrokenAnswer("the proxy sent something before the server could")
        made = await self._loop.start_tls(self._transport, self, tls, server_hostname=name)
        self._transport = cast(asyncio.Transport, made)

    async def head(self, method: str) -> Response:
        """Return the response to the request that was sent, when its head has come."""
        while True:
            status, headers, keeps = await self._head()
            if status >= 200 or status == _SWITCHING:
                break
        return Response(self, status, headers, _Framing.of(method, status, headers), keeps)

    async def _head(self) -> tuple[int, Headers, bool]:
        while not self._data:
            if not await self._more():
                raise ConnectionResetError("the server closed the connection without a response")
        raw = await self._until(
            b"\r\n\r\n", "the head of the response is too large", "the response ended within its head"
        )
        first, *lines = raw[:-4].split(b"\r\n")
        status = _STATUS_LINE.fullmatch(first)
        if status is None:
            raise BrokenAnswer("the server does not speak HTTP/1.1")
        headers = Headers(lines)
        connection = headers.lists.get("connection", _NO_VALUE)[0].lower()
        keeps = connection == "keep-alive" if status[1] == b"0" else connection != "close"
        return int(status[2]), headers, keeps

    # bodies

    def pieces(self, framing: _Framing, keeps: bool) -> AsyncGenerator[bytes, None]:
        """Return the body as it was sent; afterwards the connection may be used again, if both sides want that."""
        if framing.chunked:
            return self._chunks(keeps)
        return self._rest() if framing.length is None else self._exactly(framing.length, keeps)

    async def whole(self, length: int, keeps: bool) -> bytes:
        """Return a body of known length, at once."""
        self._room = max(length, _BUFFER_BYTES)
        while len(self._data) < length:
            if not await self._more():
                raise BrokenAnswer(_BROKEN)
        self._room = _BUFFER_BYTES
        body = self._take(length)
        self._done(keeps)
        return body

    def _done(self, keeps: bool) -> None:
        self.used = True
        self._finished = keeps

    async def _rest(self) -> AsyncGenerator[bytes, None]:
        while piece := await self._some(_PIECE):
            yield piece
        self._done(keeps=False)

    async def _exactly(self, left: int, keeps: bool) -> AsyncGenerator[bytes, None]:
        while left:
            piece = await self._some_of(left)
            left -= len(piece)
            yield piece
        self._done(keeps)

    async def _chunks(self, keeps: bool) -> AsyncGenerator[bytes, None]:
        while True:
            size = _CHUNK.fullmatch(await self._line())
            if size is None:
                raise BrokenAnswer("the response has a piece without a size")
            left = int(size[1], 16)
            if left == 0:
                break
            while left:
                piece = await self._some_of(left)
                left -= len(piece)
                yield piece
            if await self._line() != b"\r\n":
                raise BrokenAnswer("the response has a piece of another size than it says")
        while await self._line() != b"\r\n":
            pass
        self._done(keeps)

    async def _line(self) -> bytes:
        return await self._until(b"\r\n", "the response has a line that is too long", _BROKEN)

    # bytes

    async def _until(self, end: bytes, too_long: str, broken: str) -> bytes:
        """Return the bytes up to and with `end`; BrokenAnswer with one of the texts if there is none."""
        looked = 0
        while (at := self._data.find(end, looked)) < 0:
            looked = max(0, len(self._data) - len(end) + 1)
            if looked > _HEAD_BYTES:
                raise BrokenAnswer(too_long)
            if not await self._more():
                raise BrokenAnswer(broken)
        if at > _HEAD_BYTES:
            raise BrokenAnswer(too_long)
        return self._take(at + len(end))

    async def _some_of(self, left: int) -> bytes:
        """Return some of the bytes that are still to come."""
        piece = await self._some(min(left, _PIECE))
        if not piece:
            raise BrokenAnswer(_BROKEN)
        return piece

    async def _some(self, most: int) -> bytes:
        """Return what is there, or comes next; nothing at the end of the connection."""
        while not self._data:
            if not await self._more():
                return b""
        return self._take(most)

    def _take(self, count: int) -> bytes:
        taken = bytes(self._data[:count])
        del self._data[:count]
        return taken

    async def _more(self) -> bool:
        """Wait until more has come; False at the end of the connection."""
        if self._error is not None:
            raise self._error
        if self._ended:
            return False
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()
        self._waiting = self._loop.create_future()
        await self._waiting
        return True


@lru_cache(maxsize=256)
def _lines(headers: tuple[tuple[str, str], ...]) -> str:
    """Return what many requests have in common."""
    lines = [f"{name}: {value}" for name, value in headers]
    if not all(map(_SENDABLE.fullmatch, lines)):
        raise ValueError("a header has characters that no header can have")
    return "".join(f"{line}\r\n" for line in lines)


class _Framing(NamedTuple):
    chunked: bool
    length: int | None
    """None: up to the end of the connection."""

    @classmethod
    def of(cls, method: str, status: int, headers: Headers) -> _Framing:
        if method == "HEAD" or status in (204, 304):
            return cls(False, 0)
        coding = headers.lists.get("transfer-encoding", _NO_VALUE)[0].lower()
        if coding:
            if coding != "chunked":
                raise BrokenAnswer(f"the response is encoded as {coding}")
            return cls(True, None)
        lengths = set(headers.lists.get("content-length", ()))
        if not lengths:
            return cls(False, None)
        length = lengths.pop()
        if lengths or not length.isascii() or not length.isdecimal():
            raise BrokenAnswer("the response has a length that makes no sense")
        return cls(False, int(length))


class Response:
    """A response of which the head has come."""

    def __init__(self, connection: Connection, status: int, headers: Headers, framing: _Framing, keeps: bool) -> None:
        self.connection = connection
        self.status = status
        self.headers = headers
        self._framing = framing
        self._keeps = keeps
        self._coding = headers.lists.get("content-encoding", _NO_VALUE)[0].lower()
        self._is_plain = self._coding in ("identity", "")

    async def whole(self, most: int) -> bytes:
        """Return the body at once; ValueError when it is larger than that."""
        length = self._framing.length
        if length is not None and self._is_plain:
            if length > most:
                raise self._too_large(most)
            return await self.connection.whole(length, self._keeps)
        pieces: list[bytes] = []
        size = 0
        async for piece in self.pieces():
            size += len(piece)
            if size > most:
                raise self._too_large(most)
            pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _too_large(self, most: int) -> ValueError:
        self.connection.close()
        return ValueError(f"the response is larger than {readable(most)}")

    def pieces(self) -> AsyncGenerator[bytes, None]:
        """Return the body as it comes."""
        sent = self.connection.pieces(self._framing, self._keeps)
        return sent if self._is_plain else self._unpacked(sent)

    async def _unpacked(self, sent: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
        """In small steps: what is small on the wire may unfold to gigabytes."""
        if self._coding != "gzip":
            raise BrokenAnswer(f"the response is packed as {self._coding}")
        unpacker = zlib.decompressobj(wbits=31)
        async for piece in sent:
            while piece:
                try:
                    unpacked = unpacker.decompress(piece, _PIECE)
                except zlib.error as error:
                    raise BrokenAnswer(f"the response cannot be unpacked: {error}") from error
                piece = unpacker.unconsumed_tail
                if unpacked:
                    yield unpacked
        rest = unpacker.flush()
        if rest:
            yield rest


class Connections:
    """The connections of an event loop, shared by all clients of the same server."""

    def __init__(self) -> None:
        self._idle: dict[Origin, deque[Connection]] = {}
        self._users: Counter[Origin] = Counter()

    def enter(self, origin: Origin) -> None:
        self._users[origin] += 1

    def leave(self, origin: Origin) -> None:
        """Leave; the last one closes what is left."""
        self._users[origin] -= 1
        if self._users[origin] == 0:
            del self._users[origin]
            for connection in self._idle.pop(origin, ()):
                connection.close()

    def idle(self, origin: Origin) -> Connection | None:
        waiting = self._idle.get(origin)
        while waiting:
            connection = waiting.pop()
            if not connection.is_stale:
                return connection
            connection.close()
        return None

    def give_back(self, connection: Connection) -> None:
        connection.idle_since = time.monotonic()
        if connection.is_stale or connection.origin not in self._users:
            connection.close()
            return
        waiting = self._idle.setdefault(connection.origin, deque())
        waiting.append(connection)
        while waiting and waiting[0].is_stale:  # the one that has waited longest
            waiting.popleft().close()


async def open_connection(origin: Origin, seconds: float | None) -> Connection:
    """Return a new one; OSError, ssl.SSLError, BrokenAnswer or OpeningTimedOut."""
    try:
        async with asyncio.timeout(seconds):
            if origin.proxy is None:
                return await _connected(origin, await _dial(origin.host, origin.port), origin.tls, origin.name)
            return await _through(origin.proxy, origin)
    except TimeoutError as error:
        if isinstance(error, OSError) and error.errno is not None:  # the system's own, before ours
            raise
        raise OpeningTimedOut from error


async def _through(proxy: Proxy, origin: Origin) -> Connection:
    """Return a connection that leads through a proxy."""
    if proxy.is_socks:
        return await _connected(origin, await dial_socks(proxy, origin.host, origin.port), origin.tls, origin.name)
    connection = await _connected(origin, await _dial(proxy.host, proxy.port), proxy.tls, proxy.host)
    if origin.tls is not None:
        target = f"[{origin.host}]:{origin.port}" if ":" in origin.host else f"{origin.host}:{origin.port}"
        try:
            headers = (("Host", target), *proxy.authorization(), *proxy.headers)
            await connection.tunnel(target, headers, origin.tls, origin.name)
        except BaseException:
            connection.close()
            raise
    return connection


async def _connected(origin: Origin, made: socket.socket, tls: ssl.SSLContext | None, name: str) -> Connection:
    try:
        _, connection = await asyncio.get_running_loop().create_connection(
            lambda: Connection(origin), sock=made, ssl=tls, server_hostname=name if tls else None
        )
    except BaseException:
        made.close()
        raise
    return connection


async def _dial(host: str, port: int) -> socket.socket:
    """Connect. Of several addresses the next is tried when one has not answered for a moment, or has refused."""
    addresses = await _addresses(host, port)
    if len(addresses) > 1:
        from aiohappyeyeballs import start_connection

        made = await start_connection(addresses, happy_eyeballs_delay=_NEXT_ADDRESS_SECONDS, interleave=1)
        _keep_alive(made)
        return made
    [(family, kind, protocol, _, address)] = addresses
    made = socket.socket(family, kind, protocol)
    try:
        made.setblocking(False)
        _keep_alive(made)
        await asyncio.get_running_loop().sock_connect(made, address)
    except BaseException:
        made.close()
        raise
    return made


async def _addresses(host: str, port: int) -> list[Any]:
    """Without a thread where the host is an address already, or a Service of a simulated cluster."""
    try:
        return _numeric(host, port)
    except OSError:
        found = cluster_names.lookup(host, port)
        if found:
            return [address for number, at in found for address in _numeric(number, at)]
        loop = asyncio.get_running_loop()
        return await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)


def _numeric(host: str, port: int) -> list[Any]:
    """Return an IP address as it is connected to; OSError for a name."""
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV)


def _keep_alive(made: socket.socket) -> None:
    """Find out within a minute when the other side of a silent connection (a watch) is gone."""
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for option, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
