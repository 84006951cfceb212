"""Real HTTP servers of a few lines, and transports to them."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from karmada.kube.client.config import RestConfig
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.https import HttpsTransport

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Serve = Callable[..., Awaitable[str]]
Open = Callable[..., HttpsTransport]


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


@pytest.fixture(params=[HttpsTransport, HttpTransport], ids=["https", "light"])
async def connect(request: pytest.FixtureRequest) -> AsyncIterator[Open]:
    """What holds of one transport holds of the other."""
    async with _connecting(request.param) as start:
        yield start


@pytest.fixture
async def connect_https() -> AsyncIterator[Open]:
    """For what only this transport can."""
    async with _connecting(HttpsTransport) as start:
        yield start


@asynccontextmanager
async def _connecting(sort: Any) -> AsyncIterator[Open]:
    made: list[HttpsTransport] = []

    def start(server: str, *, clock: Any = None, **options: Any) -> HttpsTransport:
        extra = {"clock": clock} if clock else {}
        transport: HttpsTransport = sort(RestConfig(server=server, **options), **extra)
        made.append(transport)
        return transport

    yield start
    for transport in made:
        await transport.close()
