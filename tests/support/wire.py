"""Requests and responses as bytes and headers, for tests of the wire format."""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import aiohttp

from karmada.kube.server.app import ApiServer


@dataclass
class Answer:
    """A response."""

    code: int
    headers: Mapping[str, str]
    body: bytes
    warnings: list[str] = field(default_factory=list)

    def json(self) -> Any:
        return json.loads(self.body)


@cache
def _context(authority: bytes, directory: Path | None = None, _certificate: bytes = b"") -> ssl.SSLContext:
    """With the administrator's certificate, which lies in this directory, or anonymous; servers share certificates."""
    tls = ssl.create_default_context(cadata=authority.decode())
    if directory is not None:
        tls.load_cert_chain(directory / "admin.crt", directory / "admin.key")
    return tls


class Http:
    """Plain HTTPS requests as the administrator (or with headers of one's own), seen as bytes and headers."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        authority, admin = server.pki.ca.cert_pem, server.pki.admin.cert_pem
        self._tls = _context(authority, server.pki.directory, admin)
        self.anonymous_tls = _context(authority)
        self._session = aiohttp.ClientSession(auto_decompress=False)

    async def close(self) -> None:
        await self._session.close()

    async def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        content_type: str = "application/json",
        anonymous: bool = False,
    ) -> Answer:
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        sent = {"User-Agent": "tests/1", "Accept": "application/json", **(headers or {})}
        if data is not None:
            sent.setdefault("Content-Type", content_type)
        tls = self.anonymous_tls if anonymous else self._tls
        async with self._session.request(
            method, self._server.url + path, data=data, headers=sent, ssl=tls, allow_redirects=False
        ) as answer:
            return Answer(answer.status, answer.headers, await answer.read(), answer.headers.getall("Warning", []))

    def stream(self, path: str, headers: Mapping[str, str] | None = None) -> Any:
        """An open response, for watches: `async with http.stream(path) as response`."""
        sent = {"User-Agent": "tests/1", "Accept": "application/json", **(headers or {})}
        return self._session.get(self._server.url + path, headers=sent, ssl=self._tls)
