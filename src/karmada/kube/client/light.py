"""HttpsTransport without an HTTP library: for commands, whose import of one takes longer than they do, and for members,
to which objects go by the thousand.

Requests, watches and streams go over http1; connections are shared by all transports of an event loop that ask the same
place with the same credentials, so that members behind a control plane's proxy need no new ones. WebSockets are left to
HttpsTransport, made when one is asked for, and so are servers behind proxies: `transport_for` chooses.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import orjson

from karmada.kube.client import answers
from karmada.kube.client.config import RestConfig
from karmada.kube.client.credentials import Credential, CredentialError, credentials_for
from karmada.kube.client.http1 import Answered, Connection, Connections, OpeningTimedOut, Place, open_connection
from karmada.kube.client.limiter import AdaptiveLimiter
from karmada.kube.client.limits import OBJECT_BYTES, WATCH_LINE_BYTES, readable
from karmada.kube.client.tls import MaterialReader, client_context
from karmada.kube.client.transport import Answer, Call, ConnectionFailed, Socket, WatchEvent
from karmada.kube.objects.clock import SYSTEM, Clock

if TYPE_CHECKING:
    from karmada.kube.client.https import HttpsTransport

_PROXIES = ("https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY")
_CLOSED = "the connection was closed on this side"
_WATCH_GRACE = 30.0
_Headers: TypeAlias = tuple[tuple[str, str], ...]
_shared: WeakKeyDictionary[asyncio.AbstractEventLoop, Connections] = WeakKeyDictionary()


def transport_for(
    config: RestConfig, *, clock: Clock = SYSTEM, limiter: AdaptiveLimiter | None = None
) -> LightTransport | HttpsTransport:
    """The lightest one that can go this way."""
    if not config.proxy_url and not any(os.environ.get(name) for name in _PROXIES):
        return LightTransport(config, clock=clock, limiter=limiter)
    from karmada.kube.client.https import HttpsTransport

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


class LightTransport:
    def __init__(self, config: RestConfig, *, clock: Clock = SYSTEM, limiter: AdaptiveLimiter | None = None) -> None:
        self.config = config
        self.limiter = limiter or AdaptiveLimiter(clock=clock)
        self.on_warning: Callable[[str], None] | None = None
        """Told what the server warns of, besides doing what it was asked for."""
        self._clock = clock
        self._credentials = credentials_for(config, clock=clock)
        self._base = config.server.rstrip("/")
        self._ca = MaterialReader(config.ca)
        self._fixed_headers = answers.fixed_headers(config)
        self._connections: Connections | None = None
        self._place: Place | None = None
        self._in_use: set[Connection] = set()
        self._sockets: HttpsTransport | None = None
        self._closed = False

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

    async def call(self, call: Call) -> Any:
        data = None if call.body is None else orjson.dumps(call.body)
        until = self._clock.monotonic() + (self.config.timeout or answers.RETRY_SECONDS)
        renewed = False
        for attempt in range(answers.MAX_RETRIES + 1):
            credential = await self._credential()
            status, headers, body = await self._exchange(call, data, credential)
            if 200 <= status < 300:
                with self._reaching():
                    return answers.parsed(headers.get("Content-Type", ""), body)
            if status == 401 and not renewed and self._credentials.rejected(credential):
                renewed = True
                continue
            pause = answers.retry_after(status, headers)
            if pause is not None:
                pause = min(pause, answers.LONGEST_PAUSE)
            if pause is None or attempt == answers.MAX_RETRIES or self._clock.monotonic() + pause > until:
                raise answers.failure(self._base, status, headers, body)
            await self._clock.sleep(pause)
        raise AssertionError("unreachable")

    async def _exchange(self, call: Call, data: bytes | None, credential: Credential) -> Answer:
        await self.limiter.acquire()
        overloaded = False
        try:
            got = await self._ask(call, data, credential)
            overloaded = got.status in (429, 503)
            return got
        except ConnectionFailed as error:
            overloaded = isinstance(error.__cause__, TimeoutError)
            raise
        finally:
            self.limiter.release(overloaded=overloaded)

    async def _ask(
        self, call: Call, data: bytes | None, credential: Credential, headers: Mapping[str, str] | None = None
    ) -> Answer:
        with self._reaching():
            async with asyncio.timeout(self.config.timeout or None):
                got = await self._asked(call, data, credential, headers)
                try:
                    if self.on_warning is not None:
                        for text in answers.warnings(got.headers.all("Warning")):
                            self.on_warning(text)
                    return Answer(got.status, got.headers, await got.whole(call.most))
                finally:
                    self._give_back(got.connection)

    async def answer(self, call: Call, headers: Mapping[str, str] | None = None) -> Answer:
        """Past the limiter: whether a server lives is not to be learned from how long its line is."""
        credential = await self._credential()
        got = await self._ask(call, None, credential, headers)
        if got.status == 401:
            self._credentials.rejected(credential)
        return got

    async def watch(self, call: Call) -> AsyncIterator[WatchEvent]:
        pending: list[bytes] = []
        size = 0
        seconds = float(call.query.get("timeoutSeconds") or 0)
        async with contextlib.aclosing(self._chunks(call, seconds + _WATCH_GRACE if seconds else None)) as chunks:
            async for chunk in chunks:
                pending.append(chunk)
                size += len(chunk)
                if b"\n" in chunk:
                    *lines, rest = b"".join(pending).split(b"\n")
                    pending, size = ([rest] if rest else []), len(rest)
                    for line in lines:
                        if line:
                            yield answers.watch_event(self._base, line)
                if size > WATCH_LINE_BYTES:
                    raise ConnectionFailed(
                        f"{self._base}: an event of the watch is larger than {readable(WATCH_LINE_BYTES)}"
                    )
        if pending:
            raise ConnectionFailed(f"{self._base}: the watch ended within an event")

    def stream(self, call: Call) -> AsyncIterator[bytes]:
        return self._chunks(call, None)

    async def _chunks(self, call: Call, total: float | None) -> AsyncGenerator[bytes, None]:
        """The body of a long answer, piece by piece."""
        credential = await self._credential()
        end = None if total is None else asyncio.get_running_loop().time() + total
        with self._reaching("the stream went silent"):
            got = await self._asked(call, None, credential)
            try:
                if got.status not in (200, 204):
                    if got.status == 401:
                        self._credentials.rejected(credential)
                    raise answers.failure(self._base, got.status, got.headers, await got.whole(OBJECT_BYTES))
                async with contextlib.aclosing(got.pieces()) as pieces:  # type: ignore[type-var]
                    while True:
                        async with asyncio.timeout_at(end):
                            piece = await anext(pieces, None)
                        if piece is None:
                            break
                        yield piece
            finally:
                self._give_back(got.connection)

    async def connect(self, path: str, query: Sequence[tuple[str, str]], protocols: Sequence[str]) -> Socket:
        if self._sockets is None:
            from karmada.kube.client.https import HttpsTransport

            self._sockets = HttpsTransport(self.config, clock=self._clock)
        return await self._sockets.connect(path, query, protocols)

    # the pieces of a request

    @contextlib.contextmanager
    def _reaching(self, silent: str = "") -> Iterator[None]:
        """Whatever prevents an exchange is a failed connection; what a server has said is not touched."""
        try:
            yield
        except OpeningTimedOut as error:
            seconds = self.config.connect_timeout or self.config.timeout
            raise ConnectionFailed(f"{self._base}: no connection within {seconds:g}s") from error
        except TimeoutError as error:
            silence = silent or f"no answer within {self.config.timeout:g}s"
            raise ConnectionFailed(f"{self._base}: {silence}") from error
        except (OSError, ValueError) as error:
            why = _CLOSED if self._closed else str(error) or type(error).__name__
            raise ConnectionFailed(f"{self._base}: {why}") from error

    async def _asked(
        self, call: Call, data: bytes | None, credential: Credential, headers: Mapping[str, str] | None = None
    ) -> Answered:
        """The head of the answer, on a connection that must be given back."""
        address = _address(self._base)
        place = self._settled(address, credential)
        sent = self._headers(call, credential, address.named, headers or {})
        target = address.path + answers.target(call.path, call.query.items())
        while True:
            connection = self._open().idle(place) or await self._new(place)
            self._in_use.add(connection)
            try:
                await connection.send(call.method, target, sent, data)
                return await connection.head(call.method)
            except BaseException as error:
                self._in_use.discard(connection)
                connection.close()
                again = connection.used and call.method == "GET" and not self._closed
                if not (again and isinstance(error, ConnectionError)):
                    raise  # one that was kept may have ended in the meantime: what changes nothing is then sent again

    async def _new(self, place: Place) -> Connection:
        connection = await open_connection(place, self.config.connect_timeout or self.config.timeout or None)
        if self._closed:
            connection.close()
            raise ConnectionFailed(f"{self._base}: {_CLOSED}")
        return connection

    def _give_back(self, connection: Connection) -> None:
        """It is used again if the body has been read to its end."""
        self._in_use.discard(connection)
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
        return Place(address.host, address.port, self._context(credential), self.config.tls_server_name or address.host)

    def _context(self, credential: Credential) -> ssl.SSLContext:
        ca = b"" if self.config.insecure else self._ca.read()
        return client_context(ca, credential.certificate, credential.key, self.config.insecure)

    def _headers(self, call: Call, credential: Credential, host: str, more: Mapping[str, str]) -> _Headers:
        headers = [("Host", host), *self._fixed_headers, ("Accept", call.accept), *more.items()]
        if call.body is not None:
            headers.append(("Content-Type", call.content_type))
        if credential.authorization:
            headers.append(("Authorization", credential.authorization))
        return tuple(headers)

    async def _credential(self) -> Credential:
        try:
            return await self._credentials.get()
        except (CredentialError, ValueError) as error:
            raise ConnectionFailed(f"{self._base}: {error}") from error

    def _open(self) -> Connections:
        if self._closed:
            raise ConnectionFailed(f"{self._base}: {_CLOSED}")
        if self._connections is None:
            loop = asyncio.get_running_loop()
            self._connections = _shared.get(loop)
            if self._connections is None:
                self._connections = _shared[loop] = Connections()
        return self._connections
