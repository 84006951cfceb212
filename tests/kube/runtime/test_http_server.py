"""What holds for every HTTP server of a program, whatever its application does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from karmada.kube.runtime.http_server import serve
from tests.support.cases import cases
from tests.support.eventually import LIMIT


async def _hello(_request: web.Request) -> web.Response:
    return web.Response(text="hello")


async def _proxied(_request: web.Request) -> web.Response:
    return web.Response(text="hello", headers={"Server": "nginx"})


@asynccontextmanager
async def served(idle: float = 60.0) -> AsyncIterator[int]:
    app = web.Application()
    app.router.add_get("/", _hello)
    app.router.add_get("/proxied", _proxied)
    runner = await serve(app, "127.0.0.1", 0, idle=idle)
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def received(port: int, data: bytes) -> bytes:
    """What is sent until the server closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    try:
        return await asyncio.wait_for(reader.read(), LIMIT)
    finally:
        writer.close()


@cases(
    (b"GET / HTTP/1.1", b"200"),
    (b"GET /none HTTP/1.1", b"404"),
    (b"GET / HTTP/9", b"400"),
    (b"\x16\x03\x01", b"400"),
)
async def test_no_response_names_the_software(request_line: bytes, status: bytes) -> None:
    async with served() as port:
        answer = await received(port, request_line + b"\r\nHost: h\r\nConnection: close\r\n\r\n")
    assert answer.split(b" ", 2)[1] == status
    assert b"\r\nserver:" not in answer.lower()


async def test_the_name_of_a_server_behind_it_is_kept() -> None:
    async with served() as port:
        assert b"\r\nServer: nginx\r\n" in await received(
            port, b"GET /proxied HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
        )


@cases(b"", b"GET / HTTP/1.1\r\nHost: h\r\nX-Slow: ")
async def test_a_connection_without_a_whole_request_is_closed(sent: bytes) -> None:
    async with served(idle=0.05) as port:
        assert await received(port, sent) == b""


async def test_a_port_that_is_taken_is_an_error_and_leaves_nothing_behind() -> None:
    async with served() as port:
        with pytest.raises(OSError, match="address already in use"):
            await serve(web.Application(), "127.0.0.1", port)
