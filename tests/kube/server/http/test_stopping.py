"""A server that has stopped serves nobody, not even those that were about to connect."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig
from tests.support.eventually import LIMIT

REQUEST = b"GET /version HTTP/1.1\r\nHost: server\r\n\r\n"


class Connecting:
    """A TLS connection whose handshake is made step by step."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing)

    @classmethod
    async def begin(cls, port: int) -> Connecting:
        """The server has responded to the first message."""
        self = cls(*await asyncio.open_connection("127.0.0.1", port))
        with pytest.raises(ssl.SSLWantReadError):
            self._tls.do_handshake()
        self._send()
        self._incoming.write(await self._reader.read(65_536))
        return self

    async def request(self) -> bytes:
        """End the handshake and send a request; b"" if the server has cut the connection off."""
        try:
            while True:
                try:
                    self._tls.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    await self._receive()
            self._tls.write(REQUEST)
            self._send()
            while True:
                try:
                    return self._tls.read(65_536)
                except ssl.SSLWantReadError:
                    await self._receive()
        except (ConnectionError, ssl.SSLEOFError):
            return b""
        finally:
            self._writer.close()

    async def _receive(self) -> None:
        self._send()
        received = await self._reader.read(65_536)
        if not received:
            raise ConnectionResetError
        self._incoming.write(received)

    def _send(self) -> None:
        self._writer.write(self._outgoing.read())


async def leave_alone(_server: ApiServer) -> None:
    """It goes on."""


@pytest.mark.parametrize(
    ("end", "served"),
    [(ApiServer.stop, False), (lambda server: server.http.refuse(), False), (leave_alone, True)],
    ids=["stopped", "refusing", "running"],
)
async def test_a_connection_whose_handshake_ends_after_the_server_has_stopped_is_cut_off(
    end: Callable[[ApiServer], Awaitable[None]], served: bool, tmp_path: Path
) -> None:
    server = ApiServer(ServerConfig(data_dir=tmp_path, storage="memory://", port=0, controllers=False))
    await server.start()
    connecting = await Connecting.begin(server.port)
    await end(server)
    async with asyncio.timeout(LIMIT):
        assert (await connecting.request()).startswith(b"HTTP/1.1 200") is served
    if end is not ApiServer.stop:
        await server.stop()
