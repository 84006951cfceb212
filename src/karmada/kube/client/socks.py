"""HTTP through a SOCKS5 proxy: an aiohttp connector whose connections are dialled by python-socks.

Names are looked up by the proxy, which may know more of them. TLS is done here, on the socket that the proxy has
opened, so that certificates are checked as on any other connection.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any
from urllib.parse import unquote, urlsplit

import aiohttp
from aiohttp.client_proto import ResponseHandler

SCHEMES = ("socks5", "socks5h")
_PORT = 1080
_DIAL_SECONDS = 30.0


class SocksError(OSError):
    """The proxy cannot be reached, refuses, or uses another protocol."""


def is_socks(proxy: str) -> bool:
    return urlsplit(proxy).scheme in SCHEMES


class SocksConnector(aiohttp.BaseConnector):
    """All connections through one proxy, `socks5://[user:password@]host[:port]`."""

    def __init__(self, proxy: str, **settings: Any) -> None:
        super().__init__(**settings)
        parts = urlsplit(proxy)
        if parts.scheme not in SCHEMES or not parts.hostname:
            raise ValueError(f"{parts.scheme or 'it'} is no SOCKS5 proxy with a host")
        from python_socks import ProxyType  # loaded by the few who have such a proxy
        from python_socks.async_.asyncio import Proxy

        self._dialler = Proxy(
            ProxyType.SOCKS5,
            host=parts.hostname,
            port=parts.port or _PORT,
            username=unquote(parts.username or "") or None,
            password=unquote(parts.password or "") or None,
            rdns=True,
        )

    async def _create_connection(self, req: Any, traces: Any, timeout: Any) -> ResponseHandler:  # noqa: ARG002
        host, port = req.url.raw_host or "", req.url.port
        try:
            async with asyncio.timeout(timeout.sock_connect or _DIAL_SECONDS):
                dialled = await self._dial(host, port)
                tls = req.ssl if req.is_ssl() else None
                name = (req.server_hostname or host) if tls else None
                loop = asyncio.get_running_loop()
                try:
                    _, protocol = await loop.create_connection(
                        self._factory, sock=dialled, ssl=tls, server_hostname=name
                    )
                except BaseException:
                    dialled.close()
                    raise
        except OSError as error:
            raise aiohttp.ClientConnectorError(req.connection_key, error) from error
        return protocol

    async def _dial(self, host: str, port: int) -> socket.socket:
        from python_socks import ProxyConnectionError, ProxyError

        try:
            dialled: socket.socket = await self._dialler.connect(host, port, timeout=_DIAL_SECONDS)
        except (ProxyError, ProxyConnectionError) as error:
            raise SocksError(str(error)) from error
        return dialled
