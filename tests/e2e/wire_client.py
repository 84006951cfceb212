"""HTTPS to a server process as its administrator, from asyncio: for tests that need many requests or open streams."""

from __future__ import annotations

import json
import ssl
from typing import Any

import aiohttp

from tests.support.programs import ServerProcess


class WireClient:
    """`async with WireClient(server) as wire`: requests answer (code, parsed body)."""

    def __init__(self, server: ServerProcess, *, reuse: bool = True) -> None:
        """Without `reuse` each request has a connection of its own, and none is sent a second time by the library."""
        self._reuse = reuse
        pki = server.data_dir / "pki"
        self._tls = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        self._tls.load_cert_chain(pki / "admin.crt", pki / "admin.key")
        self._url = server.url

    async def __aenter__(self) -> WireClient:
        connector = aiohttp.TCPConnector(ssl=self._tls, limit=0, force_close=not self._reuse)
        self._session = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=20))
        self._session._retry_connection = self._reuse  # else a lost PUT or DELETE that took effect is sent again
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def __call__(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": content_type} if data is not None else {}
        async with self._session.request(method, self._url + path, data=data, headers=headers) as answer:
            return answer.status, json.loads(await answer.read())

    def stream(self, path: str) -> Any:
        return self._session.get(self._url + path, timeout=aiohttp.ClientTimeout(total=None))
