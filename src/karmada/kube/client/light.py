"""A transport for commands: HttpsTransport without the import of an HTTP library, which takes longer than they do.

Requests, watches and streams go over http1; connections are shared by all transports of an event loop, so that members
behind a control plane's proxy need no new ones. WebSockets are left to HttpsTransport, made when one is asked for, and
so are servers behind proxies: `transport_for` chooses. There is no limit on the number of requests at once: commands
make few.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import orjson

from karmada.kube.client import answers
from karmada.kube.client.config import RestConfig
from karmada.kube.client.credentials import Credential, CredentialError, credentials_for
from karmada.kube.client.http1 import Answered, Connection, Connections, OpeningTimedOut, Place, open_connection
from karmada.kube.client.limits import OBJECT_BYTES, WATCH_LINE_BYTES, readable
from karmada.kube.client.tls import MaterialReader, client_context
from karmada.kube.client.transport import Answer, Call, ConnectionFailed, Socket, WatchEvent
from karmada.kube.objects.clock import SYSTEM, Clock

if TYPE_CHECKING:
    from karmada.kube.client.https import HttpsTransport

_PROXIES = ("https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY")
_CLOSED = "the connection was closed on this side"
_WATCH_GRACE = 30.0
_shared: WeakKeyDictionary[asyncio.AbstractEventLoop, Connections] = WeakKeyDictionary()


def transport_for(config: RestConfig, *, clock: Clock = SYSTEM) -> LightTransport | HttpsTransport:
    """The lightest one that can go this way."""
    if not config.proxy_url and not any(os.environ.get(name) for name in _PROXIES):
        return LightTransport(config, clock=clock)
    from karmada.kube.client.https import HttpsTransport

    return HttpsTransport(config, clock=clock)


class LightTransport:
    def __init__(self, config: RestConfig, *, clock: Clock = SYSTEM) -> None:
        self.config = config
        self.on_warning: Callable[[str], None] | None = None
        """Told what the server warns of, besides doing what it was asked for."""
        self._clock = clock
        self._credentials = credentials_for(config, clock=clock)
        self._base = config.server.rstrip("/")
        self._ca = MaterialReader(config.ca)
        self._fixed_headers = answers.fixed_headers(config)
        self._connections: Connections | None = None
        self._in_use: set[Connection] = set()
        self._sockets: HttpsTransport | None = None
        self._closed = False

    async def close(self) -> None:
        """For good: what waits for an answer, and what reads a stream, fails now."""
        self._closed = True
        for connection in [*self._in_use]:
            connection.close()
        if self._connections is not None:
            self._connections.leave()
            self._connections = None
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

    async def _exchange(
        self, call: Call, data: bytes | None, credential: Credential, headers: Mapping[str, str] | None = None
    ) -> Answer:
        with self._reaching():
            async with (
                asyncio.timeout(self.config.timeout or None),
                self._asked(call, data, credential, headers) as got,
            ):
                if self.on_warning is not None:
                    for text in answers.warnings(got.headers.all("Warning")):
                        self.on_warning(text)
                return Answer(got.status, got.headers, await _whole(got, call.most))

    async def answer(self, call: Call, headers: Mapping[str, str] | None = None) -> Answer:
        credential = await self._credential()
        got = await self._exchange(call, None, credential, headers)
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
            async with self._asked(call, None, credential) as got:
                if got.status not in (200, 204):
                    if got.status == 401:
                        self._credentials.rejected(credential)
                    raise answers.failure(self._base, got.status, got.headers, await _whole(got, OBJECT_BYTES))
                async with contextlib.aclosing(got.pieces()) as pieces:  # type: ignore[type-var]
                    while True:
                        async with asyncio.timeout_at(end):
                            piece = await anext(pieces, None)
                        if piece is None:
                            break
                        yield piece

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

    @contextlib.asynccontextmanager
    async def _asked(
        self, call: Call, data: bytes | None, credential: Credential, headers: Mapping[str, str] | None = None
    ) -> AsyncIterator[Answered]:
        """The head of the answer; the connection is given back if the body has been read to its end."""
        parts = urlsplit(self._base)
        place = self._place(credential)
        sent = self._headers(call, credential, parts.netloc.rpartition("@")[2], headers or {})
        target = answers.target(call.path, call.query.items())
        got = await self._first(place, call.method, parts.path + target, sent, data)
        self._in_use.add(got.connection)
        try:
            yield got
        finally:
            self._in_use.discard(got.connection)
            self._open().give_back(got.connection) if not self._closed else got.connection.close()

    async def _first(
        self, place: Place, method: str, target: str, headers: list[tuple[str, str]], data: bytes | None
    ) -> Answered:
        """A kept connection may have ended in the meantime: what changes nothing is then sent again over a new one."""
        while True:
            connection = self._open().idle(place)
            if connection is None:
                opening = self.config.connect_timeout or self.config.timeout or None
                connection = await open_connection(place, opening)
            self._in_use.add(connection)
            try:
                await connection.send(method, target, headers, data)
                return await connection.head(method)
            except BaseException as error:
                connection.close()
                if isinstance(error, ConnectionError) and connection.used and method == "GET" and not self._closed:
                    continue
                raise
            finally:
                self._in_use.discard(connection)

    def _place(self, credential: Credential) -> Place:
        parts = urlsplit(self._base)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("the address of the server cannot be used")
        if parts.scheme == "http":
            return Place(parts.hostname, parts.port or 80, None, "")
        context = self._context(credential)
        return Place(parts.hostname, parts.port or 443, context, self.config.tls_server_name or parts.hostname)

    def _context(self, credential: Credential) -> ssl.SSLContext:
        ca = b"" if self.config.insecure else self._ca.read()
        return client_context(ca, credential.certificate, credential.key, self.config.insecure)

    def _headers(self, call: Call, credential: Credential, host: str, more: Mapping[str, str]) -> list[tuple[str, str]]:
        headers = [("Host", host), *self._fixed_headers, ("Accept", call.accept), *more.items()]
        if call.body is not None:
            headers.append(("Content-Type", call.content_type))
        if credential.authorization:
            headers.append(("Authorization", credential.authorization))
        return headers

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
            self._connections.enter()
        return self._connections


async def _whole(got: Answered, most: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    async for piece in got.pieces():
        size += len(piece)
        if size > most:
            got.connection.close()
            raise ValueError(f"the answer is larger than {readable(most)}")
        pieces.append(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
