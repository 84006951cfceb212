"""HttpsTransport without an HTTP library: for commands, whose import of one takes longer than they do, and for members,
to which objects go by the thousand.

Requests, watches and streams go over http1; connections are shared by all transports of an event loop that use the same
server with the same credentials, so that members behind a control plane's proxy need no new ones. WebSockets are left
to HttpsTransport, made when one is needed, and so are servers behind proxies: `transport_for` chooses.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from karmada.kube.client import responses
from karmada.kube.client.config import RestConfig
from karmada.kube.client.credentials import Credential
from karmada.kube.client.http1 import Answered, Connection, Connections, OpeningTimedOut, Place, open_connection
from karmada.kube.client.limiter import AdaptiveLimiter
from karmada.kube.client.limits import OBJECT_BYTES
from karmada.kube.client.network_transport import CLOSED, NetworkTransport
from karmada.kube.client.transport import Answer, Call, ConnectionFailed, Socket
from karmada.kube.objects.clock import SYSTEM, Clock
from karmada.kube.objects.deadline import Deadline

if TYPE_CHECKING:
    from karmada.kube.client.https import HttpsTransport

_PROXIES = ("https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY")
_Headers: TypeAlias = tuple[tuple[str, str], ...]
_shared: WeakKeyDictionary[asyncio.AbstractEventLoop, Connections] = WeakKeyDictionary()


def transport_for(
    config: RestConfig, *, clock: Clock = SYSTEM, limiter: AdaptiveLimiter | None = None
) -> HttpTransport | HttpsTransport:
    """The lightest one that can go this way."""
    if not config.proxy_url and not any(os.environ.get(name) for name in _PROXIES):
        return HttpTransport(config, clock=clock, limiter=limiter)
    from karmada.kube.client.https import HttpsTransport, proxy_for

    if not proxy_for(config):
        return HttpTransport(config, clock=clock, limiter=limiter)
    return HttpsTransport(config, clock=clock, limiter=limiter)


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


class HttpTransport(NetworkTransport):
    def __init__(self, config: RestConfig, *, clock: Clock = SYSTEM, limiter: AdaptiveLimiter | None = None) -> None:
        super().__init__(config, clock=clock, limiter=limiter)
        self._fixed_headers = responses.fixed_headers(config)
        self._connections: Connections | None = None
        self._place: Place | None = None
        self._in_use: set[Connection] = set()
        self._sockets: HttpsTransport | None = None

    async def close(self) -> None:
        """For good: what waits for an answer, and what reads a stream, fails now."""
        self._closed = True
        for connection in [*self._in_use]:
            connection.close()
        if self._connections is not None and self._place is not None:
            self._connections.leave(self._place)
        self._connections = self._place = None
        if self._sockets is not None:
            await self._sockets.close()

    # requests

    async def _exchange(
        self, call: Call, data: bytes | None, credential: Credential, headers: Mapping[str, str] | None = None
    ) -> Answer:
        seconds = self.config.timeout
        try:
            end = asyncio.get_running_loop().time() + seconds if seconds else None
            got = await self._attempt(call, data, credential, headers, end)
            try:
                self._warn(got.headers.all("Warning"))
                return Answer(got.status, got.headers, await got.whole(call.most))
            finally:
                self._give_back(got.connection)
        except (OSError, ValueError) as error:
            raise self._unreachable(error, f"no response within {seconds:g}s") from error

    async def _chunks(self, call: Call, total: float | None) -> AsyncGenerator[bytes, None]:
        credential = await self._credential()
        end = None if total is None else asyncio.get_running_loop().time() + total
        try:
            got = await self._attempt(call, None, credential)
            try:
                if got.status not in (200, 204):
                    raise self._refused(got.status, got.headers, await got.whole(OBJECT_BYTES), credential)
                got.connection.limit(end)
                async with contextlib.aclosing(got.pieces()) as pieces:
                    async for piece in pieces:
                        yield piece
            finally:
                self._give_back(got.connection)
        except (OSError, ValueError) as error:
            raise self._unreachable(error, "the stream went silent") from error

    async def connect(self, path: str, query: Sequence[tuple[str, str]], protocols: Sequence[str]) -> Socket:
        if self._sockets is None:
            from karmada.kube.client.https import HttpsTransport

            self._sockets = HttpsTransport(self.config, clock=self._clock)
        return await self._sockets.connect(path, query, protocols)

    # the pieces of a request

    def _unreachable(self, error: OSError | ValueError, silence: str) -> ConnectionFailed:
        """Whatever prevents an exchange is a failed connection; what a server has said is not touched."""
        if isinstance(error, OpeningTimedOut):
            why = f"no connection within {self.config.connect_timeout or self.config.timeout:g}s"
        elif isinstance(error, TimeoutError):
            why = silence
        else:
            why = CLOSED if self._closed else str(error) or type(error).__name__
        return ConnectionFailed(f"{self._base}: {why}")

    async def _attempt(
        self,
        call: Call,
        data: bytes | None,
        credential: Credential,
        headers: Mapping[str, str] | None = None,
        end: float | None = None,
    ) -> Answered:
        """The head of the answer, on a connection that must be given back; it fails at `end`, and what is read then."""
        address = _address(self._base)
        place = self._settled(address, credential)
        sent = self._headers(call, credential, address.named, headers or {})
        target = address.path + responses.target(call.path, call.query.items())
        while True:
            connection = self._open().idle(place) or await self._new(place, end)
            self._in_use.add(connection)
            connection.limit(end)
            try:
                await connection.send(call.method, target, sent, data)
                return await connection.head(call.method)
            except BaseException as error:
                self._in_use.discard(connection)
                connection.close()
                again = connection.used and call.method == "GET" and not self._closed
                if not (again and isinstance(error, ConnectionError)):
                    raise  # one that was kept may have ended in the meantime: what changes nothing is then sent again

    async def _new(self, place: Place, end: float | None) -> Connection:
        with Deadline(None if end is None else max(0.0, end - asyncio.get_running_loop().time())):
            connection = await open_connection(place, self.config.connect_timeout or self.config.timeout or None)
        if self._closed:
            connection.close()
            raise ConnectionFailed(f"{self._base}: {CLOSED}")
        return connection

    def _give_back(self, connection: Connection) -> None:
        """It is used again if the body has been read to its end."""
        self._in_use.discard(connection)
        connection.limit(None)
        if self._closed:
            connection.close()
        else:
            self._open().give_back(connection)

    def _settled(self, address: _Address, credential: Credential) -> Place:
        """Where connections lead now. With other credentials those of before are not wanted any more."""
        place, before = self._place_of(address, credential), self._place
        if place != before:
            connections = self._open()
            connections.enter(place)
            if before is not None:
                connections.leave(before)
            self._place = place
        return place

    def _place_of(self, address: _Address, credential: Credential) -> Place:
        if not address.secure:
            return Place(address.host, address.port, None, "")
        return Place(address.host, address.port, self._tls(credential), self.config.tls_server_name or address.host)

    def _headers(self, call: Call, credential: Credential, host: str, more: Mapping[str, str]) -> _Headers:
        headers = [("Host", host), *self._fixed_headers, ("Accept", call.accept), *more.items()]
        if call.body is not None:
            headers.append(("Content-Type", call.content_type))
        if credential.authorization:
            headers.append(("Authorization", credential.authorization))
        return tuple(headers)

    def _open(self) -> Connections:
        if self._closed:
            raise ConnectionFailed(f"{self._base}: {CLOSED}")
        if self._connections is None:
            loop = asyncio.get_running_loop()
            self._connections = _shared.get(loop)
            if self._connections is None:
                self._connections = _shared[loop] = Connections()
        return self._connections
