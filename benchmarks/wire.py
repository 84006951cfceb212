"""A client small enough not to be what is measured: raw HTTP/1.1 over TLS, one request at a time per connection."""

from __future__ import annotations

import asyncio
import base64
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import yaml

from benchmarks.timings import percentile


@dataclass
class Target:
    host: str
    port: int
    tls: ssl.SSLContext

    @classmethod
    def of(cls, kubeconfig: Path) -> Target:
        """Of a kubeconfig with certificates in it, as our servers write them; a file beside it has them for TLS."""
        config = yaml.safe_load(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        pair = kubeconfig.with_name("client.pem")
        pair.touch(mode=0o600)
        pair.write_bytes(base64.b64decode(user["client-certificate-data"]) + base64.b64decode(user["client-key-data"]))
        context.load_cert_chain(pair)
        parts = urlsplit(cluster["server"])
        return cls(str(parts.hostname), int(parts.port or 443), context)

    def request(self, method: str, path: str, body: bytes = b"", content_type: str = "application/json") -> bytes:
        head = f"{method} {path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\nUser-Agent: benchmarks\r\n"
        head += "Accept: application/json\r\n"
        if body:
            head += f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n"
        return head.encode() + b"\r\n" + body


class Connection(asyncio.Protocol):
    """Counts answers; a body is read by its Content-Length."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._waiter: asyncio.Future[tuple[int, bytes]] | None = None
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def connection_lost(self, error: Exception | None) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error or ConnectionResetError("the server closed the connection"))

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0 or self._waiter is None:
            return
        head = bytes(self._buffer[:end])
        at = head.find(b"Content-Length: ")
        length = int(head[at + 16 : head.find(b"\r\n", at) if b"\r\n" in head[at:] else len(head)]) if at >= 0 else 0
        if len(self._buffer) < end + 4 + length:
            return
        body = bytes(self._buffer[end + 4 : end + 4 + length])
        del self._buffer[: end + 4 + length]
        waiter, self._waiter = self._waiter, None
        if not waiter.done():
            waiter.set_result((int(head[9:12]), body))

    async def send(self, request: bytes) -> tuple[int, bytes]:
        assert self.transport is not None
        self._waiter = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return await self._waiter


async def connect(target: Target) -> Connection:
    loop = asyncio.get_running_loop()
    _, protocol = await loop.create_connection(Connection, target.host, target.port, ssl=target.tls)
    return protocol


@dataclass
class Rate:
    count: int = 0
    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)

    @property
    def per_second(self) -> float:
        return self.count / self.seconds if self.seconds else 0.0

    def percentile(self, share: float) -> float:
        return percentile(self.latencies, share)


async def run_load(target: Target, connections: int, total: int, make: Callable[[int], bytes], expect: int) -> Rate:
    """Send `total` requests over so many connections, each waiting for its answer."""
    rate = Rate()
    numbers = iter(range(total))
    opened = [await connect(target) for _ in range(connections)]

    async def worker(connection: Connection) -> None:
        for number in numbers:
            request = make(number)
            started = time.perf_counter()
            status, body = await connection.send(request)
            rate.latencies.append(time.perf_counter() - started)
            if status != expect:
                raise RuntimeError(f"request {number} was answered {status}: {body[:300]!r}")
            rate.count += 1

    started = time.perf_counter()
    await asyncio.gather(*(worker(connection) for connection in opened))
    rate.seconds = time.perf_counter() - started
    for connection in opened:
        assert connection.transport is not None
        connection.transport.close()
    return rate


class Watcher(asyncio.Protocol):
    """Counts the events of a watch."""

    def __init__(self, request: bytes, on_event: Callable[[int], None]) -> None:
        self._request = request
        self._on_event = on_event
        self._started = asyncio.get_running_loop().create_future()
        self._headers = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        if not self._started.done():
            self._headers += data
            if b"\r\n\r\n" in self._headers:
                self._started.set_result(None)
                data = self._headers.split(b"\r\n\r\n", 1)[1]
        events = data.count(b'{"type":"')
        if events:
            self._on_event(events)

    async def ready(self) -> None:
        await self._started
