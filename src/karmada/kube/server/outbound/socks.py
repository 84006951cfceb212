"""An aiohttp connector whose connections go through a SOCKS5 proxy.

TLS is done here, on the socket that the proxy has opened, so that certificates are checked as on any other connection.
"""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler

from karmada.kube.client.proxies import dial_socks, parse_proxy

_DIAL_SECONDS = 30.0


class SocksConnector(aiohttp.BaseConnector):
    """All connections through one proxy, `socks5://[user:password@]host[:port]`."""

    def __init__(self, proxy: str, **settings: Any) -> None:
        super().__init__(**settings)
        self._proxy = parse_proxy(proxy)

    async def _create_connection(self, req: Any, traces: Any, timeout: Any) -> ResponseHandler:  # noqa: ARG002
        host, port = req.url.raw_host or "", req.url.port
        try:
            async with asyncio.timeout(timeout.sock_connect or _DIAL_SECONDS):
                dialled = await dial_socks(self._proxy, host, port)
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
