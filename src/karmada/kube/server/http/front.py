"""The HTTP front: bytes in, bytes out. Everything between is the pipeline's.

A bare aiohttp server without router or middlewares: per request it authenticates, parses the path, runs the pipeline
and writes the answer. A client that goes away cancels its handler, which ends watches at once.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from types import FrameType
from typing import Any

from aiohttp import web
from yarl import URL

from karmada.kube.objects.clock import Clock
from karmada.kube.objects.deadline import Deadline
from karmada.kube.objects.errors import (
    ApiError,
    Expired,
    InternalError,
    RequestEntityTooLarge,
    Timeout,
)
from karmada.kube.objects.times import parse_duration
from karmada.kube.runtime.current_work import Work, describes_work
from karmada.kube.runtime.http_server import hide_software
from karmada.kube.runtime.listening import listen_host
from karmada.kube.runtime.malformed_requests import shorten_malformed_requests
from karmada.kube.runtime.time_slice import OWNER
from karmada.kube.server.audit.interface import GONE, Audits, FollowsRequest, Sent, new_audit_id
from karmada.kube.server.auth.impersonation import impersonate
from karmada.kube.server.auth.interface import Decides, Identifies
from karmada.kube.server.auth.user import User
from karmada.kube.server.flowcontrol.control import FlowControl
from karmada.kube.server.flowcontrol.per_user import PerUser
from karmada.kube.server.handlers.pipeline import Pipeline, attributes_of
from karmada.kube.server.http.audited import audited
from karmada.kube.server.http.gate import Gate
from karmada.kube.server.http.inflate import inflate
from karmada.kube.server.http.metrics import UNKNOWN, RequestMetrics
from karmada.kube.server.http.pieces import PIECE
from karmada.kube.server.http.protobuf_form import ProtobufForm
from karmada.kube.server.http.request import CONNECT_SUBRESOURCES, Query, Request, RequestInfo, parse_path
from karmada.kube.server.http.responses import Responses
from karmada.kube.server.http.results import Result, TakeOver

MAX_BODY = 3 * 1024 * 1024
REQUEST_SECONDS = 60.0
WRITE_SECONDS = 34.0
MAX_READING = 100
"""Bodies of one user that may be on their way at the same time."""
MAX_LONG_RUNNING = 1000
"""Watches, followed logs, terminals and proxied requests of one user that may be open at the same time."""
UNREAD_SECONDS = 60.0
"""How long a client may leave unread what is sent to it; then its connection is cut."""
STOP_SECONDS = 2.0
_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})

log = logging.getLogger(__name__)


def _hold(host: str, port: int) -> socket.socket:
    """Refuse connections, and everybody who would listen here.

    SO_REUSEADDR is needed to get a port with connections that have just ended, and would let others get it too.
    """
    held = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind((host, port))
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
    except BaseException:
        held.close()
        raise
    return held


class HttpFront:
    def __init__(
        self,
        pipeline: Pipeline,
        callers: Identifies,
        rights: Decides,
        clock: Clock,
        metrics: RequestMetrics,
        protobuf: ProtobufForm,
        flow: FlowControl,
        audit: Audits | None = None,
    ) -> None:
        self._pipeline = pipeline
        self._callers = callers
        self._rights = rights
        self._clock = clock
        self._metrics = metrics
        self._audit = audit
        self._flow = flow
        self._reading = PerUser(MAX_READING, "bodies on their way")
        self._long_running = PerUser(MAX_LONG_RUNNING, "watches, followed logs and proxied requests open")
        self._in_flight = 0
        metrics.gauges["apiserver_current_inflight_requests"] = lambda: [({}, self._in_flight)]
        metrics.gauges["apiserver_flowcontrol_current_inqueue_requests"] = lambda: [({}, flow.waiting)]
        metrics.gauges["apiserver_longrunning_requests"] = lambda: [({}, self._long_running.total)]
        metrics.gauges["apiserver_unread_connections_cut"] = lambda: [({}, self.unread)]
        self.unread = 0
        """Connections that were cut since their clients did not read."""
        self._server: _Server | None = None
        self._runner: web.ServerRunner | None = None
        self._held: socket.socket | None = None
        self.responses = Responses(clock, protobuf)

    @property
    def gate(self) -> Gate | None:
        return self.responses.gate

    @gate.setter
    def gate(self, gate: Gate | None) -> None:
        self.responses.gate = gate

    async def start(self, host: str, port: int, tls: ssl.SSLContext | None) -> int:
        """Listen; returns the port, which the system chooses when 0 is given."""
        self._let_go()
        shorten_malformed_requests()
        self._server = server = _Server(
            self._serve,
            request_factory=_make_request,
            handler_cancellation=True,
            access_log=None,
            auto_decompress=False,
            keepalive_timeout=120,
            max_line_size=64 * 1024,
            max_field_size=64 * 1024,
        )
        server.front = self
        self._runner = web.ServerRunner(server, shutdown_timeout=STOP_SECONDS)
        await self._runner.setup()
        site = web.TCPSite(self._runner, listen_host(host), port, ssl_context=tls, backlog=1024, reuse_address=True)
        await site.start()
        return int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        """Stop listening; requests under way may finish within STOP_SECONDS."""
        self._let_go()
        runner = self._leave()
        if runner is not None:
            await runner.cleanup()

    async def refuse(self) -> None:
        """Stop listening and cut every connection off, but hold the port: nobody else can have it before start."""
        runner = self._leave()
        if runner is None:
            return
        host, port = runner.addresses[0][:2]
        for site in list(runner.sites):
            await site.stop()
        try:
            self._held = _hold(host, port)
        finally:
            for connection in runner.server.connections if runner.server is not None else ():
                if connection.transport is not None:
                    connection.transport.abort()
            await runner.cleanup()

    def _leave(self) -> web.ServerRunner | None:
        """From now on no connection is taken; what runs has to be cleaned up."""
        if self._server is not None:
            self._server.closing = True
        runner, self._runner, self._server = self._runner, None, None
        return runner

    def _let_go(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            held.close()

    async def _run(self, raw: web.BaseRequest, request: Request) -> Result:
        gate = self.gate
        if gate is None:
            return await self._result(raw, request)
        return await gate.run(request, partial(self._result, raw))

    async def _serve(self, raw: web.BaseRequest) -> web.StreamResponse:
        started = self._clock.monotonic()
        path, _, query_text = raw.raw_path.partition("?")
        query = Query.parse(query_text)
        headers = raw.headers
        info = parse_path(raw.method, path, query)
        audit_id = headers.get("Audit-Id") or new_audit_id()
        caller: User | None = None
        request: Request | None = None
        trail: FollowsRequest | None = None
        panic = False
        long_running = _is_long(info, query)
        leave: Callable[[], None] = _nothing
        try:
            caller = await self._callers.identify(headers, _peer_certificate(raw), _protocols(headers))
            trail = self._begin(raw, info, caller, audit_id, started)
            user = await impersonate(caller, headers, self._rights)
            OWNER.set(user.name)
            request = Request(
                raw.method, info, query, headers, user, raw=raw, in_process=False, long_running=long_running
            )
            if trail is not None:
                trail.request = request
            request.seat = self._flow.classify(user, attributes_of(info))
            leave = self._count(user, long_running)
            result = await self._run(raw, request)
            if trail is not None:
                trail.respond(result)
            _connection(raw).patient = isinstance(result, TakeOver) and long_running and info.verb != "watch"
            response = await self.responses.respond(raw, request, result, audit_id, trail)
            status = response.status
        except ApiError as error:
            if trail is not None:
                trail.fail(error.status())
            elif caller is None and self._audit is not None:
                self._audit.refuse(_sent(raw), info, audit_id, self._clock.monotonic() - started, error.code)
            if info.verb == "watch" and isinstance(error, (Expired, Timeout)):
                response = self.responses.ended_watch(error, request, audit_id)
            else:
                response = self.responses.error(error, request, headers, query, audit_id)
            status = response.status
        except ConnectionResetError:  # the client is gone, or the gate wants it to be
            response = _cut_off(raw)
            status = response.status
        except asyncio.CancelledError:
            status = GONE
            raise
        except Exception:
            log.exception("request failed: %s %s", raw.method, path)
            fault = InternalError.of("an unexpected error in the server; see its log")
            response = self.responses.error(fault, request, headers, query, audit_id)
            status = 500
            panic = True
        finally:
            leave()
            seconds = self._clock.monotonic() - started
            known = request is not None and request.authorized and status != 404
            self._metrics.observe(info if known else UNKNOWN, status, seconds)
            if trail is not None:
                trail.finish(status, panic=panic)
        return response

    def _count(self, user: User, long_running: bool) -> Callable[[], None]:
        """Count a request; returns what to call when it is over."""
        if long_running:
            self._long_running.enter(user)
            return partial(self._long_running.leave, user)
        self._in_flight += 1
        return self._end

    def _end(self) -> None:
        self._in_flight -= 1

    def _begin(
        self, raw: web.BaseRequest, info: RequestInfo, caller: User, audit_id: str, started: float
    ) -> FollowsRequest | None:
        if self._audit is None:
            return None
        return self._audit.begin(_sent(raw), info, caller, audit_id, self._clock.monotonic() - started)

    async def _result(self, raw: web.BaseRequest, request: Request) -> Result:
        if raw.method not in _WRITES:
            return await self._seated(request, self._pipeline.run)
        if request.info.subresource in CONNECT_SUBRESOURCES:
            return await self._seated(request, self._pipeline.run)
        await self._pipeline.authorize(request)  # nobody may make us hold a body that we would refuse anyway
        seconds = min(_requested_seconds(request.query), WRITE_SECONDS)
        try:
            with Deadline(seconds) as deadline:
                if raw.can_read_body:
                    request.body = await self.read_body(raw, request)
                return await self._seated(request, self._pipeline.handle)
        except TimeoutError:
            if not deadline.expired:
                raise
            raise Timeout(
                f"Timeout: request did not complete within requested timeout - context deadline exceeded ({seconds:g}s)"
            ) from None

    async def _seated(self, request: Request, work: Callable[[Request], Awaitable[Result]]) -> Result:
        """Do the work of a request on its seats; what runs long has them until its answer begins."""
        seat = request.seat
        seats = 0 if seat is None else await self._flow.enter(seat, request)
        if seat is None or not seats:
            return await work(request)
        result: Result | None = None
        try:
            result = await work(request)
            return result
        finally:
            self._flow.leave(seat, seats, request, result)

    async def rerouted(self, request: Request, path: str, query: str) -> Result:
        """Return what the same request to another path results in.

        It has the same caller, and goes through all that requests go through, the audit log included.
        Path and query are encoded.
        """
        parsed = Query.parse(query)
        info = parse_path(request.method, path, parsed)
        other = replace(
            request, info=info, query=parsed, long_running=_is_long(info, parsed), authorized=False, form=None
        )
        raw: web.BaseRequest | None = request.raw
        target = f"{path}?{query}" if query else path
        sent = Sent(target, request.headers, (raw.remote if raw is not None else "") or "")
        trail = None if self._audit is None else self._audit.begin(sent, info, request.user, new_audit_id(), 0.0)
        if raw is None:
            return await audited(self._pipeline.run, other, trail)
        raw = other.raw = raw.clone(rel_url=URL(target, encoded=True))
        other.seat = self._flow.classify(request.user, attributes_of(info))
        result = await audited(partial(self._result, raw), other, trail)
        request.form = other.form
        return TakeOver(lambda _raw: result.run(raw)) if isinstance(result, TakeOver) else result

    async def read_body(self, raw: web.BaseRequest, request: Request) -> bytes:
        """Return the body, which takes no seat while it is coming; but one user has only so many of them on the way."""
        self._reading.check(request.user)
        if raw.content.is_eof():
            return await _read_body(raw)  # all of it is here
        self._reading.enter(request.user)
        try:
            return await _read_body(raw)
        finally:
            self._reading.leave(request.user)


@describes_work
def _request_of(frame: FrameType) -> Work | None:
    """Return method, path and user of the request that a frame answers, for the watchdog."""
    if frame.f_code is not HttpFront._serve.__code__:
        return None
    raw: web.BaseRequest = frame.f_locals["raw"]
    user: User | None = frame.f_locals.get("user")
    return Work("request", f"{raw.method} {raw.path}{f' of {user.name}' if user is not None else ''}")


def _cut_off(raw: web.BaseRequest) -> web.Response:
    """End the connection; the answer is for the one who called, nobody will get it."""
    if raw.transport is not None:
        raw.transport.abort()
    return web.Response(status=GONE)


def _nothing() -> None:
    """Do nothing, for a request that is not counted yet."""


def _peer(transport: asyncio.BaseTransport) -> str:
    return str((transport.get_extra_info("peername") or ("?",))[0])


def _sent(raw: web.BaseRequest) -> Sent:
    return Sent(raw.raw_path, raw.headers, raw.remote or "", _peer_certificate(raw) is not None)


def _make_request(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    return _Request(message, payload, protocol, writer, task, loop, client_max_size=MAX_BODY)


def _protocols(headers: Mapping[str, str]) -> list[str]:
    offered = headers.get("Sec-WebSocket-Protocol")
    return [part.strip() for part in offered.split(",")] if offered else []


class _Request(web.BaseRequest):
    async def _prepare_hook(self, response: web.StreamResponse) -> None:
        hide_software(response)


class _Connection(web.RequestHandler):
    """Keeps the certificate of the other side, which does not change, and is cut when that side does not read."""

    __slots__ = ("_deadline", "certificate", "patient")

    def __init__(self, manager: _Server, **options: Any) -> None:
        super().__init__(manager, **options)
        self._deadline: asyncio.TimerHandle | None = None
        self.patient = False
        """True while a person may let a stream wait: logs that are read page by page, a terminal."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        tls = transport.get_extra_info("ssl_object")
        self.certificate: bytes | None = tls.getpeercert(binary_form=True) if tls is not None else None
        super().connection_made(transport)
        if isinstance(transport, asyncio.WriteTransport):
            transport.set_write_buffer_limits(high=PIECE)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect_progress(None)

    def resume_writing(self) -> None:
        self._forget_deadline()
        super().resume_writing()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._forget_deadline()
        super().connection_lost(exc)

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _expect_progress(self, before: int | None) -> None:
        """Cut the connection if as much waits as before, else look again later."""
        if self.transport is None:
            return
        waiting = self.transport.get_write_buffer_size()
        if waiting == before and not self.patient:
            request = self._current_request
            what = "" if request is None else f"{request.method} {request.path}"
            log.warning("a client at %s that does not read is cut off: %s", _peer(self.transport), what)
            server = self._manager
            assert isinstance(server, _Server)
            server.front.unread += 1
            self.transport.abort()
            return
        self._deadline = asyncio.get_running_loop().call_later(UNREAD_SECONDS, self._expect_progress, waiting)


class _Server(web.Server):
    front: HttpFront
    closing = False
    """Connections whose TLS handshake ends after that are cut off: nobody would ever end a watch on one of them."""

    def __call__(self) -> web.RequestHandler:
        return _Connection(self, loop=self._loop, **self._kwargs)

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        if self.closing:
            transport.abort()


def _connection(raw: web.BaseRequest) -> _Connection:
    protocol = raw.protocol
    assert isinstance(protocol, _Connection)
    return protocol


def _peer_certificate(raw: web.BaseRequest) -> bytes | None:
    return _connection(raw).certificate


async def _read_body(raw: web.BaseRequest) -> bytes:
    try:
        body, encoding = await raw.read(), raw.headers.get("Content-Encoding")
        return await inflate(body, encoding, MAX_BODY) if encoding else body
    except web.HTTPRequestEntityTooLarge:
        raise RequestEntityTooLarge(f"Request entity too large: limit is {MAX_BODY}") from None


def _is_long(info: RequestInfo, query: Query) -> bool:
    follows = info.subresource == "log" and query.flag("follow")
    return info.verb == "watch" or info.subresource in CONNECT_SUBRESOURCES or follows


def _requested_seconds(query: Query) -> float:
    text = query.get("timeout")
    if not text:
        return REQUEST_SECONDS
    try:
        return parse_duration(text) or REQUEST_SECONDS
    except ValueError:
        return REQUEST_SECONDS
