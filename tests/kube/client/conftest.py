"""Real HTTP servers of a few lines, and transports to them."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from karmada.kube.client.config import RestConfig
from karmada.kube.client.http_transport import HttpTransport

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Serve = Callable[..., Awaitable[str]]
Open = Callable[..., HttpTransport]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    servers: list[TestServer] = []

    async def start(handler: Handler | web.Application, context: ssl.SSLContext | None = None) -> str:
        if not isinstance(handler, web.Application):
            app = web.Application()
            app.router.add_route("*", "/{path:.*}", handler)
            handler = app
        server = TestServer(handler, scheme="https" if context else "http")
        await server.start_server(ssl=context)
        servers.append(server)
        return str(server.make_url("/"))

    yield start
    for server in servers:
        await server.close()


@pytest.fixture
async def connect() -> AsyncIterator[Open]:
    made: list[HttpTransport] = []

    def start(server: str, *, clock: Any = None, **options: Any) -> HttpTransport:
        extra = {"clock": clock} if clock else {}
        transport = HttpTransport(RestConfig(server=server, **options), **extra)
        made.append(transport)
        return transport

    yield start
    for transport in made:
        await transport.close()
