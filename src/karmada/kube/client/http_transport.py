"""The transport over the network: a kube-apiserver (ours or any) over HTTP/1.1.

The number of concurrent requests adapts to the server (limiter); watches and sockets, which are long, do not count. A
request that got 429 or 5xx with Retry-After is repeated after that time, since the server did nothing; one that got 401
is repeated once with fresh credentials where there are any. A broken connection is ConnectionFailed: whether a write
happened is then unknown, and only the caller can decide to repeat it. So is everything else that prevents a response:
settings that cannot be used, a response that is too large or malformed, and redirects, since a token is not sent to
another server.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from typing import Any

import orjson

from karmada.kube.client import responses
from karmada.kube.client.config import RestConfig
from karmada.kube.client.credentials import Credential, CredentialError, credentials_for
from karmada.kube.client.fencing import Guard
from karmada.kube.client.limiter import AdaptiveLimiter
from karmada.kube.client.limits import OBJECT_BYTES, WATCH_LINE_BYTES, readable
from karmada.kube.client.request_sender import Headers, RequestSender
from karmada.kube.client.transport import (
    GROUP_HEADER,
    Call,
    ConnectionFailed,
    RawResponse,
    Socket,
    Transport,
    UpgradeRefused,
    WatchEvent,
)
from karmada.kube.objects.clock import SYSTEM, Clock
from karmada.kube.objects.deadline import Deadline
from karmada.kube.objects.errors import (
    ApiError,
    BadRequest,
    Fenced,
    Invalid,
    UnsupportedMediaType,
    error_from_status,
)
from karmada.kube.objects.types import Obj

_WATCH_GRACE = 30.0


class HttpTransport(Transport):
    """One server."""

    def __init__(self, config: RestConfig, *, clock: Clock = SYSTEM, limiter: AdaptiveLimiter | None = None) -> None:
        """ValueError for a proxy of a kind that cannot be used."""
        self.config = config
        self.limiter = limiter or AdaptiveLimiter(clock=clock)
        self.on_warning: Callable[[str], None] | None = None
        """Called with each Warning header of a response."""
        self.returned: list[Callable[[], None]] = []
        """Called when the server responds again, after a request to it has failed."""
        self.guard: Guard | None = None
        """Consulted before each write."""
        self._takes_groups = True
        self._away = False
        self._clock = clock
        self._credentials = credentials_for(config, clock=clock)
        self._sender = RequestSender(config)
        self._base = self._sender.server

    async def close(self) -> None:
        """For good: what waits for a response, and what reads a stream, fails now."""
        self._sender.close()

    async def call(self, call: Call) -> Any:
        _, headers, body = await self._successful(call)
        try:
            return responses.parsed(headers.get("Content-Type", ""), body)
        except ValueError as error:
            raise ConnectionFailed(f"{self._base}: {error}") from error

    async def body(self, call: Call) -> bytes:
        return (await self._successful(call)).body

    async def create_all(self, call: Call, objects: Sequence[Obj]) -> list[ApiError | None] | None:
        """Return the outcomes; a server that does not know the header refuses the List, and is not asked again."""
        if not self._takes_groups or self.guard is not None:
            return None
        body = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        try:
            got = await self._successful(call._replace(body=body), {GROUP_HEADER: "true"})
        except (BadRequest, Invalid, UnsupportedMediaType):
            self._takes_groups = False
            return None
        try:
            outcomes = orjson.loads(got.body)
            return [None if outcome is None else error_from_status(outcome) for outcome in outcomes]
        except (ValueError, TypeError, AttributeError) as error:
            raise ConnectionFailed(f"{self._base}: the response to a group of creates is malformed") from error

    async def _successful(self, call: Call, more: Mapping[str, str] | None = None) -> RawResponse:
        """Return the response once it is a good one."""
        data = None if call.body is None else orjson.dumps(call.body)
        until = self._clock.monotonic() + (self.config.timeout or responses.RETRY_SECONDS)
        renewed = False
        for attempt in range(responses.MAX_RETRIES + 1):
            credential = await self._credential()
            got = await self._limited(call, data, credential, more)
            status, headers, body = got
            if 200 <= status < 300:
                return got
            if status == 401 and not renewed and self._credentials.rejected(credential):
                renewed = True
                continue
            pause = responses.retry_after(status, headers) if call.retried else None
            if pause is not None:
                pause = min(pause, responses.LONGEST_PAUSE)
            if pause is None or attempt == responses.MAX_RETRIES or self._clock.monotonic() + pause > until:
                raise responses.failure(self._base, status, headers, body)
            await self._clock.sleep(pause)
        raise AssertionError("unreachable")

    async def _limited(
        self, call: Call, data: bytes | None, credential: Credential, headers: Mapping[str, str] | None
    ) -> RawResponse:
        await self.limiter.acquire()
        overloaded = False
        try:
            if self.guard is None or call.method == "GET":
                got = await self._exchange(call, data, credential, headers)
            else:
                got = await self._guarded(self.guard, call, data, credential)
            overloaded = got.status in (429, 503)
            if self._away:
                self._is_back()
            return got
        except ConnectionFailed as error:
            overloaded = isinstance(error.__cause__, TimeoutError)
            self._away = True
            raise
        finally:
            self.limiter.release(overloaded=overloaded)

    async def _guarded(self, guard: Guard, call: Call, data: bytes | None, credential: Credential) -> RawResponse:
        """Send a guarded write; nothing is awaited between check and sending, apart from a connection."""
        headers = guard.check()
        try:
            with Deadline(guard.seconds_left()):
                got = await self._exchange(call, data, credential, headers)
        except TimeoutError as error:
            raise ConnectionFailed(f"{self._base}: no response while the sender's Lease was valid") from error
        if got.status == Fenced.code:
            guard.was_refused()
        return got

    def _is_back(self) -> None:
        self._away = False
        for call in self.returned:
            call()

    async def answer(self, call: Call, headers: Mapping[str, str] | None = None) -> RawResponse:
        """Bypasses the limiter: a health check must not wait behind other requests."""
        credential = await self._credential()
        got = await self._exchange(call, None, credential, headers)
        if got.status == 401:
            self._credentials.rejected(credential)
        return got

    async def _exchange(
        self, call: Call, data: bytes | None, credential: Credential, more: Mapping[str, str] | None = None
    ) -> RawResponse:
        """Return one request and its response; ConnectionFailed when there was none."""
        seconds = self.config.timeout
        end = asyncio.get_running_loop().time() + seconds if seconds else None
        target, headers = responses.target(call.path, call.query.items()), _headers(call, more)
        try:
            response = await self._sender.send(call.method, target, headers, data, credential, end)
            try:
                if self.on_warning is not None:
                    for text in responses.warnings(response.headers.lists.get("warning", ())):
                        self.on_warning(text)
                return RawResponse(response.status, response.headers, await response.whole(call.most))
            finally:
                self._sender.release(response.connection)
        except (OSError, ValueError) as error:
            raise self._sender.failure(error, f"no response within {seconds:g}s") from error

    # streams

    async def watch(self, call: Call) -> AsyncIterator[WatchEvent]:
        async with contextlib.aclosing(self.lines(call)) as lines:
            async for line in lines:
                yield responses.watch_event(self._base, line)

    async def lines(self, call: Call) -> AsyncGenerator[bytes, None]:
        pending: list[bytes] = []
        size = 0
        seconds = float(call.query.get("timeoutSeconds") or 0)
        total = seconds + _WATCH_GRACE if seconds else None
        async with contextlib.aclosing(self._chunks(call, total)) as chunks:
            async for chunk in chunks:
                pending.append(chunk)
                size += len(chunk)
                if b"\n" in chunk:
                    *lines, rest = b"".join(pending).split(b"\n")
                    pending, size = ([rest] if rest else []), len(rest)
                    for line in lines:
                        if line:
                            yield line
                if size > WATCH_LINE_BYTES:
                    limit = readable(WATCH_LINE_BYTES)
                    raise ConnectionFailed(f"{self._base}: an event of the watch is larger than {limit}")
        if pending:
            raise ConnectionFailed(f"{self._base}: the watch ended within an event")

    def stream(self, call: Call) -> AsyncIterator[bytes]:
        return self._chunks(call, None)

    async def _chunks(self, call: Call, total: float | None) -> AsyncGenerator[bytes, None]:
        """Yield the body of a long response, piece by piece, for so many seconds at most."""
        credential = await self._credential()
        end = None if total is None else asyncio.get_running_loop().time() + total
        target = responses.target(call.path, call.query.items())
        try:
            response = await self._sender.send(call.method, target, _headers(call), None, credential, None)
            try:
                if response.status not in (200, 204):
                    body = await response.whole(OBJECT_BYTES)
                    raise self._refused(response.status, response.headers, body, credential)
                response.connection.limit(end)
                async with contextlib.aclosing(response.pieces()) as pieces:
                    async for piece in pieces:
                        yield piece
            finally:
                self._sender.release(response.connection)
        except (OSError, ValueError) as error:
            raise self._sender.failure(error, "the stream went silent") from error

    async def connect(self, path: str, query: Sequence[tuple[str, str]], protocols: Sequence[str]) -> Socket:
        from karmada.kube.client.websocket import Handshake, WebSocket  # few commands need it

        credential = await self._credential()
        handshake = Handshake(protocols)
        seconds = self.config.timeout
        end = asyncio.get_running_loop().time() + seconds if seconds else None
        target = responses.target(path, query)
        try:
            response = await self._sender.send("GET", target, handshake.headers, None, credential, end)
            connection = response.connection
            try:
                if response.status != 101:
                    body = await response.whole(OBJECT_BYTES)
                    raise self._no_socket(response.status, response.headers, body, credential)
                protocol = handshake.agreed(response)
            except BaseException:
                self._sender.release(connection)
                raise
        except (OSError, ValueError) as error:
            raise self._sender.failure(error, f"no response within {seconds:g}s") from error
        connection.limit(None)
        return WebSocket(connection, protocol, self._sender.forget)

    def _no_socket(self, status: int, headers: Mapping[str, str], body: bytes, credential: Credential) -> Exception:
        """Return the error of an upgrade that was refused, perhaps in words that are no Status."""
        refused = self._refused(status, headers, body, credential)
        if isinstance(refused, ConnectionFailed) or responses.status_of(body) is not None or not body:
            return refused
        return UpgradeRefused(body.decode(errors="replace").strip()[:2048], code=status)

    def _refused(self, status: int, headers: Mapping[str, str], body: bytes, credential: Credential) -> Exception:
        """Return the error of a stream that did not start."""
        if status == 401:
            self._credentials.rejected(credential)
        return responses.failure(self._base, status, headers, body)

    async def _credential(self) -> Credential:
        try:
            return await self._credentials.get()
        except (CredentialError, ValueError) as error:
            raise ConnectionFailed(f"{self._base}: {error}") from error


def _headers(call: Call, more: Mapping[str, str] | None = None) -> Headers:
    headers = [("Accept", call.accept), *(more or {}).items()]
    if call.body is not None:
        headers.append(("Content-Type", call.content_type))
    return tuple(headers)
