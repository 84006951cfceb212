"""Requests to one server, directly or through its proxy, over connections that are kept.

Connections are shared by all clients of an event loop that use the same server with the same credentials, so that
members behind a control plane's proxy need no new ones.
"""

from __future__ import annotations

import asyncio
import ssl
from functools import lru_cache
from typing import NamedTuple, TypeAlias
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from karmada.kube.client import responses
from karmada.kube.client.config import Material, RestConfig
from karmada.kube.client.credentials import Credential
from karmada.kube.client.http1 import Connection, Connections, OpeningTimedOut, Origin, Response, open_connection
from karmada.kube.client.proxies import Proxy, parse_proxy, proxy_for
from karmada.kube.client.tls import MaterialReader, client_context
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.deadline import Deadline

Headers: TypeAlias = tuple[tuple[str, str], ...]
_CLOSED = "the connection was closed on this side"
_shared: WeakKeyDictionary[asyncio.AbstractEventLoop, Connections] = WeakKeyDictionary()


class _Address(NamedTuple):
    secure: bool
    host: str
    port: int
    path: str
    named: str
    """As the Host header says it."""


@lru_cache(maxsize=1024)
def _address(base: str) -> _Address:
    parts = urlsplit(base)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("the address of the server cannot be used")
    secure = parts.scheme == "https"
    port = parts.port or (443 if secure else 80)
    return _Address(secure, parts.hostname, port, parts.path, parts.netloc.rpartition("@")[2])


class RequestSender:
    """Sends requests as they are; what responses mean is its users' business."""

    def __init__(self, config: RestConfig) -> None:
        """ValueError for a proxy that is none."""
        self.server = config.server.rstrip("/")
        self._config = config
        self._proxy = proxy_for(config)
        self._fixed_headers = responses.fixed_headers(config)
        trusts = self.server.startswith("https:") and not config.insecure
        self._ca = MaterialReader(config.ca if trusts else Material())
        self._material: tuple[bytes, bytes, bytes] | None = None
        """Certificates that the connections of now were made with."""
        self._connections: Connections | None = None
        self._origin: Origin | None = None
        self._in_use: set[Connection] = set()
        self._closed = False

    def close(self) -> None:
        """For good: whoever waits for a response, or reads one, gets an error now."""
        self._closed = True
        for connection in [*self._in_use]:
            connection.close()
        if self._connections is not None and self._origin is not None:
            self._connections.leave(self._origin)
        self._connections = self._origin = None

    async def send(
        self, method: str, target: str, headers: Headers, data: bytes | None, credential: Credential, end: float | None
    ) -> Response:
        """Return the response, whose connection must be released; it fails at `end`, and so does reading it.

        Raises OSError, ValueError or ConnectionFailed.
        """
        address = _address(self.server)
        origin = self._settled(credential)
        target, sent = self._request(address, origin.proxy, target, headers, credential)
        while True:
            connection = self._open().idle(origin) or await self._new(origin, end)
            self._in_use.add(connection)
            connection.limit(end)
            try:
                await connection.send(method, target, sent, data)
                return await connection.head(method)
            except BaseException as error:
                self._in_use.discard(connection)
                connection.close()
                again = connection.used and method == "GET" and not self._closed
                if not (again and isinstance(error, ConnectionError)):
                    raise  # one that was kept may have ended in the meantime: what changes nothing is then sent again

    def release(self, connection: Connection) -> None:
        """Keep the connection of a response for the next request, if its body has been read to the end."""
        self._in_use.discard(connection)
        connection.limit(None)
        if self._closed:
            connection.close()
        else:
            self._open().give_back(connection)

    def forget(self, connection: Connection) -> None:
        """Take note that a connection has been closed by who used it."""
        self._in_use.discard(connection)

    def failure(self, error: OSError | ValueError, silence: str) -> ConnectionFailed:
        """Return what an error means to callers; `silence` is what happened if there was no response in time."""
        if isinstance(error, OpeningTimedOut):
            why = f"no connection within {self._config.connect_timeout or self._config.timeout:g}s"
        elif isinstance(error, TimeoutError):
            why = silence
        else:
            why = _CLOSED if self._closed else str(error) or type(error).__name__
        return ConnectionFailed(f"{self.server}: {why}")

    # the pieces of a request

    def _request(
        self, address: _Address, proxy: Proxy | None, target: str, headers: Headers, credential: Credential
    ) -> tuple[str, Headers]:
        """Return the target as it is sent, and all headers."""
        sent = [("Host", address.named), *self._fixed_headers, *headers]
        if credential.authorization:
            sent.append(("Authorization", credential.authorization))
        target = address.path + target
        if proxy is not None and not address.secure and not proxy.is_socks:
            sent += proxy.authorization()
            target = f"http://{address.named}{target}"
        return target, tuple(sent)

    async def _new(self, origin: Origin, end: float | None) -> Connection:
        with Deadline(None if end is None else max(0.0, end - asyncio.get_running_loop().time())):
            connection = await open_connection(origin, self._config.connect_timeout or self._config.timeout or None)
        if self._closed:
            connection.close()
            raise self._is_closed()
        return connection

    def _settled(self, credential: Credential) -> Origin:
        """Return where connections lead now. With other certificates those of before are not wanted any more."""
        material = (self._ca.fixed or self._ca.read(), credential.certificate, credential.key)
        before = self._origin
        if before is not None and material == self._material:
            return before
        address, connections = _address(self.server), self._open()
        tls = client_context(*material, self._config.insecure) if address.secure else None
        proxy = self._parsed_proxy(tls) if self._proxy else None
        name = (self._config.tls_server_name or address.host) if tls else ""
        origin = Origin(address.host, address.port, tls, name, proxy)
        if origin != before:
            connections.enter(origin)
            if before is not None:
                connections.leave(before)
        self._material, self._origin = material, origin
        return origin

    def _parsed_proxy(self, tls: ssl.SSLContext | None) -> Proxy:
        proxy = parse_proxy(self._proxy, tuple(self._config.proxy_headers))
        if proxy.scheme != "https":
            return proxy
        return proxy._replace(tls=tls or client_context(b"", b"", b"", False))

    def _is_closed(self) -> ConnectionFailed:
        return ConnectionFailed(f"{self.server}: {_CLOSED}")

    def _open(self) -> Connections:
        if self._closed:
            raise self._is_closed()
        if self._connections is None:
            loop = asyncio.get_running_loop()
            self._connections = _shared.get(loop)
            if self._connections is None:
                self._connections = _shared[loop] = Connections()
        return self._connections
