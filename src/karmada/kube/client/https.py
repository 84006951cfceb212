"""The HTTPS transport: a kube-apiserver (ours or any) over the network, through proxies too, and its WebSockets.

One aiohttp session with kept-alive connections; TLS contexts are shared (tls), credentials renewed (credentials).
"""

from __future__ import annotations

import contextlib
import re
import socket
import urllib.request
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from karmada.kube.client.bodies import read_body
from karmada.kube.client.cluster_resolver import cluster_resolver
from karmada.kube.client.config import RestConfig
from karmada.kube.client.credentials import Credential
from karmada.kube.client.http1 import keep_alive
from karmada.kube.client.limiter import AdaptiveLimiter
from karmada.kube.client.limits import OBJECT_BYTES
from karmada.kube.client.network_transport import CLOSED, NetworkTransport
from karmada.kube.client.responses import (
    elsewhere,
    failure,
    fixed_headers,
    status_of,
    target,
)
from karmada.kube.client.socks import SCHEMES, SocksConnector, is_socks
from karmada.kube.client.transport import Answer, Call, ConnectionFailed, Socket, UpgradeRefused
from karmada.kube.objects.clock import SYSTEM, Clock

_TLS_OBJECT = re.compile(r" ssl:(<[^>]*>|\w+)")
"""How aiohttp describes its settings within a message."""


class HttpsTransport(NetworkTransport):
    def __init__(self, config: RestConfig, *, clock: Clock = SYSTEM, limiter: AdaptiveLimiter | None = None) -> None:
        super().__init__(config, clock=clock, limiter=limiter)
        self._secure = self._base.startswith("https://")
        self._proxy = proxy_for(config)
        self._fixed_headers = _fixed_headers(config)
        self._server_name = config.tls_server_name or None
        self._session: aiohttp.ClientSession | None = None
        self._sockets: aiohttp.ClientSession | None = None
        self._streams: set[aiohttp.StreamReader] = set()

    async def close(self) -> None:
        """For good: what waits for an answer, and what reads a stream, fails now."""
        self._closed = True
        sessions = (self._sockets, self._session)
        self._sockets = self._session = None
        for stream in self._streams:  # closing a session does not wake those who read from it
            stream.set_exception(aiohttp.ClientConnectionError(CLOSED))
        for session in sessions:
            if session is not None:
                await session.close()

    # requests

    async def _exchange(
        self, call: Call, data: bytes | None, credential: Credential, headers: Mapping[str, str] | None = None
    ) -> Answer:
        with self._reaching():
            sent = self._headers(call, credential)
            sent.update(headers or {})
            async with self._request(call, sent, self._timeout(self.config.timeout), credential, data) as response:
                self._warn(response.headers.getall("Warning", ()))
                return Answer(response.status, response.headers, await read_body(response, call.most))

    async def _chunks(self, call: Call, total: float | None) -> AsyncGenerator[bytes, None]:
        timeout = self._timeout(total)
        credential = await self._credential()
        with self._reaching("the stream went silent"):
            async with self._request(call, self._headers(call, credential), timeout, credential) as response:
                if response.status not in (200, 204):
                    body = await read_body(response, OBJECT_BYTES)
                    raise self._refused(response.status, response.headers, body, credential)
                self._streams.add(response.content)
                try:
                    async for chunk in response.content.iter_any():
                        yield chunk
                finally:
                    self._streams.discard(response.content)

    async def connect(self, path: str, query: Sequence[tuple[str, str]], protocols: Sequence[str]) -> Socket:
        credential = await self._credential()
        headers = CIMultiDict(self._fixed_headers)
        if credential.authorization:
            headers["Authorization"] = credential.authorization
        with self._reaching():
            try:
                websocket = await self._open_sockets().ws_connect(
                    self._url(path, query),
                    protocols=protocols,
                    headers=headers,
                    autoping=True,
                    heartbeat=30.0,
                    max_msg_size=0,
                    **self._connection(credential),
                )
            except _NoSocket as refused:
                raise self._no_socket(refused.answer) from None
            except aiohttp.WSServerHandshakeError as error:
                raise self._failure(error.status, error.headers or {}, b"") from error
        return _WebSocket(websocket)

    # the pieces of a request

    def _timeout(self, total: float | None) -> aiohttp.ClientTimeout:
        opening = self.config.connect_timeout or self.config.timeout or None
        return aiohttp.ClientTimeout(total=total or None, connect=opening, sock_connect=opening)

    @contextlib.contextmanager
    def _reaching(self, silent: str = "") -> Iterator[None]:
        """Whatever prevents an exchange is a failed connection; what a server has said is not touched."""
        try:
            yield
        except aiohttp.ConnectionTimeoutError as error:
            seconds = self.config.connect_timeout or self.config.timeout
            raise ConnectionFailed(f"{self._base}: no connection within {seconds:g}s") from error
        except TimeoutError as error:
            silence = silent or f"no response within {self.config.timeout:g}s"
            raise ConnectionFailed(f"{self._base}: {silence}") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise ConnectionFailed(f"{self._base}: {_reason(error)}") from error

    def _request(
        self,
        call: Call,
        headers: CIMultiDict[str],
        timeout: aiohttp.ClientTimeout,
        credential: Credential,
        data: bytes | None = None,
    ) -> contextlib.AbstractAsyncContextManager[aiohttp.ClientResponse]:
        return self._open().request(
            call.method,
            self._url(call.path, call.query.items()),
            data=data,
            headers=headers,
            timeout=timeout,
            allow_redirects=False,
            **self._connection(credential),
        )

    def _failure(self, status: int, headers: Any, body: bytes) -> Exception:
        return failure(self._base, status, headers, body)

    def _no_socket(self, answer: Answer) -> Exception:
        failure = self._failure(*answer)
        if isinstance(failure, ConnectionFailed) or status_of(answer.body) is not None or not answer.body:
            return failure
        return UpgradeRefused(answer.body.decode(errors="replace").strip()[:2048], code=answer.status)

    def _url(self, path: str, query: Iterable[tuple[str, str]]) -> URL:
        return URL(f"{self._base}{target(path, query)}", encoded=True)

    def _headers(self, call: Call, credential: Credential) -> CIMultiDict[str]:
        headers = CIMultiDict(self._fixed_headers)
        headers["Accept"] = call.accept
        if call.body is not None:
            headers["Content-Type"] = call.content_type
        if credential.authorization:
            headers["Authorization"] = credential.authorization
        return headers

    def _connection(self, credential: Credential) -> dict[str, Any]:
        options: dict[str, Any] = {}
        if self._secure:
            options["ssl"] = self._tls(credential)
            options["server_hostname"] = self._server_name
        if self._proxy and not is_socks(self._proxy):
            options["proxy"] = self._proxy
            if self.config.proxy_headers:
                options["proxy_headers"] = CIMultiDict(self.config.proxy_headers)
        return options

    def _open(self) -> aiohttp.ClientSession:
        if self._closed:
            raise ConnectionFailed(f"{self._base}: {CLOSED}")
        if self._session is None:
            connector = self._connector()
            self._session = aiohttp.ClientSession(
                connector=connector, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=True
            )
        return self._session

    def _open_sockets(self) -> aiohttp.ClientSession:
        """aiohttp's WebSockets follow redirects unless somebody objects; the connections are the other session's."""
        connector = self._open().connector
        if self._sockets is None:
            watcher = aiohttp.TraceConfig()
            watcher.on_request_redirect.append(_object_to_redirect)
            self._sockets = aiohttp.ClientSession(
                connector=connector,
                connector_owner=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                trace_configs=[watcher],
                raise_for_status=_require_socket,
            )
        return self._sockets

    def _connector(self) -> aiohttp.BaseConnector:
        if is_socks(self._proxy):
            return SocksConnector(self._proxy, limit=0, keepalive_timeout=90.0)
        return aiohttp.TCPConnector(
            limit=0,
            keepalive_timeout=90.0,
            ttl_dns_cache=30,
            socket_factory=_keep_alive_socket,
            resolver=cluster_resolver(),
        )


class _WebSocket:
    def __init__(self, websocket: aiohttp.ClientWebSocketResponse) -> None:
        self._websocket = websocket

    @property
    def protocol(self) -> str:
        return self._websocket.protocol or ""

    async def send(self, message: bytes) -> None:
        try:
            await self._websocket.send_bytes(message)
        except (aiohttp.ClientError, OSError) as error:
            raise ConnectionFailed(_reason(error)) from error

    async def receive(self) -> bytes | None:
        message = await self._websocket.receive()
        if message.type is aiohttp.WSMsgType.BINARY:
            return bytes(message.data)
        if message.type is aiohttp.WSMsgType.TEXT:
            return str(message.data).encode()
        if message.type is aiohttp.WSMsgType.ERROR:
            raise ConnectionFailed(f"the socket broke: {message.data}")
        return None

    async def close(self) -> None:
        await self._websocket.close()


def _fixed_headers(config: RestConfig) -> CIMultiDict[str]:
    return CIMultiDict(fixed_headers(config))


def proxy_for(config: RestConfig) -> str:
    """The kubeconfig's proxy, else the environment's, unless it excludes the host."""
    proxy = config.proxy_url
    if not proxy:
        try:
            parts = urlsplit(config.server)
        except ValueError:
            return ""  # no address that could be reached either way, as every request will report
        if parts.hostname and not urllib.request.proxy_bypass(parts.netloc.rpartition("@")[2]):
            proxy = urllib.request.getproxies().get(parts.scheme, "")
    if proxy and urlsplit(proxy).scheme not in ("http", "https", *SCHEMES):
        raise ValueError(f"proxy {proxy}: only http, https and socks5 proxies are supported")
    return proxy


def _keep_alive_socket(address: Any) -> socket.socket:
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    keep_alive(made)
    return made


def _reason(error: BaseException) -> str:
    return _TLS_OBJECT.sub("", str(error)) or type(error).__name__


class _NoSocket(Exception):
    """A response that is no WebSocket upgrade."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.status)
        self.answer = answer


async def _require_socket(response: aiohttp.ClientResponse) -> None:
    """While what the server has to say instead can still be read."""
    if response.status != 101:
        body = await read_body(response, OBJECT_BYTES)
        raise _NoSocket(Answer(response.status, response.headers, body))


async def _object_to_redirect(_session: Any, _context: Any, params: aiohttp.TraceRequestRedirectParams) -> None:
    response = params.response
    raise aiohttp.ClientError(elsewhere(response.status, response.headers))
