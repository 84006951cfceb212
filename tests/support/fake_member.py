"""A member that records the requests it gets, and proxies in front of it."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from karmada.api.cluster import Cluster
from karmada.kube.client.client import Client
from karmada.kube.objects.gvrs import SECRETS
from tests.support.objects import kube_object

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@dataclass
class FakeMember:
    """Responds with `reply`, or echoes the request."""

    url: str = ""
    reply: Handler | None = None
    requests: list[tuple[str, str]] = field(default_factory=list)
    """Methods and raw paths."""
    headers: list[Any] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests.append((request.method, request.raw_path))
        self.headers.append(request.headers)
        self.bodies.append(await request.content.read())
        if self.reply is not None:
            return await self.reply(request)
        return web.json_response({"path": request.raw_path})


@asynccontextmanager
async def fake_member() -> AsyncIterator[FakeMember]:
    member = FakeMember()
    runner = web.ServerRunner(web.Server(member.answer, handler_cancellation=True))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    member.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield member
    finally:
        await runner.cleanup()


async def register(client: Client, name: str, endpoint: str, *, token: str = "sesame", **spec: Any) -> None:
    """A Cluster with the Secrets that joining makes."""
    data = {"token": base64.b64encode(token.encode()).decode()}
    await client.create(SECRETS, kube_object("v1", "Secret", name, "default", data=data))
    ref = {"impersonatorSecretRef": {"namespace": "default", "name": name}}
    await client.create(
        Cluster.gvr,
        kube_object(
            Cluster.gvk.api_version, "Cluster", name, spec={"syncMode": "Push", "apiEndpoint": endpoint, **ref, **spec}
        ),
    )


# --- proxies


@dataclass
class FakeProxy:
    url: str = ""
    refuse: bool = False
    heads: list[str] = field(default_factory=list)
    """The request line of each connection."""


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


async def _both(
    client: tuple[asyncio.StreamReader, asyncio.StreamWriter], host: str, port: int, first: bytes = b""
) -> None:
    there = await asyncio.open_connection(host, port)
    client[1].write(first)
    await asyncio.gather(_pipe(client[0], there[1]), _pipe(there[0], client[1]))


@asynccontextmanager
async def _listening(
    proxy: FakeProxy, scheme: str, serve: Any, tls: ssl.SSLContext | None = None
) -> AsyncIterator[FakeProxy]:
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls)
    proxy.url = f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield proxy
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def connect_proxy(tls: ssl.SSLContext | None = None) -> AsyncIterator[FakeProxy]:
    """An HTTP proxy that knows CONNECT and nothing else."""
    proxy = FakeProxy()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        proxy.heads.append(head)
        method, target, _ = head.split(" ", 2)
        if proxy.refuse or method != "CONNECT":
            writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
            writer.close()
            return
        host, _, port = target.rpartition(":")
        await _both((reader, writer), host, int(port), b"HTTP/1.1 200 OK\r\n\r\n")

    async with _listening(proxy, "https" if tls else "http", serve, tls) as listening:
        yield listening


@asynccontextmanager
async def socks_proxy(user: str = "", password: str = "") -> AsyncIterator[FakeProxy]:
    proxy = FakeProxy()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, count = await reader.readexactly(2)
        offered = await reader.readexactly(count)
        wanted = 2 if user else 0
        writer.write(bytes((5, wanted if wanted in offered else 255)))
        if user:
            _, length = await reader.readexactly(2)
            name = await reader.readexactly(length)
            word = await reader.readexactly((await reader.readexactly(1))[0])
            right = (name.decode(), word.decode()) == (user, password)
            writer.write(bytes((1, 0 if right else 1)))
            if not right:
                writer.close()
                return
        _, _, _, kind = await reader.readexactly(4)
        if kind == 3:
            host = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
        else:
            host = ".".join(str(part) for part in await reader.readexactly(4))
        port = int.from_bytes(await reader.readexactly(2), "big")
        proxy.heads.append(f"{host}:{port}")
        if proxy.refuse:
            writer.write(bytes((5, 2, 0, 1, 0, 0, 0, 0, 0, 0)))
            writer.close()
            return
        await _both((reader, writer), host, port, bytes((5, 0, 0, 1, 127, 0, 0, 1, 0, 0)))

    async with _listening(proxy, "socks5", serve) as listening:
        yield listening
