"""HTTP through a SOCKS5 proxy (RFC 1928, with user names and passwords as in RFC 1929).

An aiohttp connector that has the proxy dial in its place: it talks to the proxy on a bare socket until the way is
open, and only then hands the socket to aiohttp. Names are looked up by the proxy, which may know more of them.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from typing import Any
from urllib.parse import unquote, urlsplit

import aiohttp
from aiohttp.client_proto import ResponseHandler

SCHEMES = ("socks5", "socks5h")
_PORT = 1080
_DIAL_SECONDS = 30.0
_VERSION, _CONNECT, _NOTHING, _PASSWORD = 5, 1, 0, 2
_IPV4, _NAME, _IPV6 = 1, 3, 4
_REFUSALS = {
    1: "general SOCKS server failure",
    2: "connection not allowed by ruleset",
    3: "network unreachable",
    4: "host unreachable",
    5: "connection refused",
    6: "TTL expired",
    7: "command not supported",
    8: "address type not supported",
}


class SocksError(OSError):
    """The proxy will not, or uses another protocol."""


def is_socks(proxy: str) -> bool:
    return urlsplit(proxy).scheme in SCHEMES


class SocksConnector(aiohttp.BaseConnector):
    """All connections through one proxy, `socks5://[user:password@]host[:port]`."""

    def __init__(self, proxy: str, **settings: Any) -> None:
        super().__init__(**settings)
        parts = urlsplit(proxy)
        if parts.scheme not in SCHEMES or not parts.hostname:
            raise ValueError(f"{parts.scheme or 'it'} is no SOCKS5 proxy with a host")
        self._proxy = parts.hostname, parts.port or _PORT
        self._user = unquote(parts.username or "").encode()
        self._password = unquote(parts.password or "").encode()

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
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(*self._proxy, type=socket.SOCK_STREAM)
        made = socket.socket(*found[0][:3])
        made.setblocking(False)
        try:
            await loop.sock_connect(made, found[0][4])
            await self._greet(made)
            await loop.sock_sendall(made, bytes((_VERSION, _CONNECT, 0)) + _address(host) + port.to_bytes(2, "big"))
            await _opened(made)
        except BaseException:
            made.close()
            raise
        return made

    async def _greet(self, made: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        methods = (_NOTHING, _PASSWORD) if self._user else (_NOTHING,)
        await loop.sock_sendall(made, bytes((_VERSION, len(methods), *methods)))
        version, method = await _read(made, 2)
        if version != _VERSION:
            raise SocksError(f"unexpected protocol version {version}")
        if method == _PASSWORD and self._user:
            login = bytes((1, len(self._user))) + self._user + bytes((len(self._password),)) + self._password
            await loop.sock_sendall(made, login)
            if (await _read(made, 2))[1] != 0:
                raise SocksError("username/password authentication failed")
        elif method != _NOTHING:
            raise SocksError("no acceptable authentication methods")


def _address(host: str) -> bytes:
    try:
        literal = ipaddress.ip_address(host)
    except ValueError:
        name = host.encode("idna" if not host.isascii() else "ascii")
        return bytes((_NAME, len(name))) + name
    return bytes((_IPV4 if literal.version == 4 else _IPV6,)) + literal.packed


async def _opened(made: socket.socket) -> None:
    """Read the proxy's answer to its last byte, for what follows is the other side's."""
    version, code, _, kind = await _read(made, 4)
    if version != _VERSION:
        raise SocksError(f"unexpected protocol version {version}")
    if code:
        raise SocksError(_REFUSALS.get(code, f"unknown code: {code}"))
    length = {_IPV4: 4, _IPV6: 16}.get(kind)
    if length is None:
        length = (await _read(made, 1))[0]
    await _read(made, length + 2)


async def _read(made: socket.socket, count: int) -> bytes:
    loop = asyncio.get_running_loop()
    data = b""
    while len(data) < count:
        piece = await loop.sock_recv(made, count - len(data))
        if not piece:
            raise SocksError("unexpected EOF")
        data += piece
    return data
