"""The HTTP front: bytes in, bytes out. Everything between is the pipeline's.

A bare aiohttp server without router or middlewares: per request it authenticates, parses the path, runs the pipeline
and writes the answer. A client that goes away cancels its handler, which ends watches at once.
"""

from __future__ import annotations

import asyncio
import logging
import random
import socket
import ssl
import zlib
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from types import FrameType
from typing import Any, Protocol

import orjson
from aiohttp import web
from multidict import CIMultiDict

from karmada.kube.objects.clock import Clock
from karmada.kube.objects.errors import (
    ApiError,
    Expired,
    InternalError,
    RequestEntityTooLarge,
    Timeout,
)
from karmada.kube.objects.times import parse_duration
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.listening import listen_host
from karmada.kube.runtime.malformed_requests import shorten_malformed_requests
from karmada.kube.runtime.watchdog import describe_requests
from karmada.kube.server.audit.interface import Audits, FollowsRequest
from karmada.kube.server.auth.impersonation import impersonate
from karmada.kube.server.auth.interface import Decides, Identifies
from karmada.kube.server.auth.user import User
from karmada.kube.server.flowcontrol.control import FlowControl
from karmada.kube.server.flowcontrol.levels import refused
from karmada.kube.server.handlers.pipeline import Pipeline, attributes_of
from karmada.kube.server.http.encoding import dumps, encode_list, encode_object, finish, included
from karmada.kube.server.http.inflate import inflate
from karmada.kube.server.http.metrics import UNKNOWN, RequestMetrics
from karmada.kube.server.http.negotiation import (
    JSON,
    PROTOBUF,
    STREAMS,
    Form,
    Offer,
    negotiate,
    negotiate_error,
    wants_pretty,
)
from karmada.kube.server.http.protobuf_form import ProtobufForm
from karmada.kube.server.http.request import CONNECT_SUBRESOURCES, Query, Request, RequestInfo, parse_path
from karmada.kube.server.http.results import ListResult, RawResult, Result, TakeOver, WatchResult
from karmada.kube.server.http.watch_stream import error_frame, stream

MAX_BODY = 3 * 1024 * 1024
GZIP_FROM = 128 * 1024
PIECE = 256 * 1024
REQUEST_SECONDS = 60.0
WRITE_SECONDS = 34.0
MAX_READING = 100
"""Bodies of one user that may be on their way at the same time."""
STOP_SECONDS = 2.0
GONE = 499
"""What metrics and the audit log say of a request whose client went away."""
_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})

log = logging.getLogger(__name__)


class Gate(Protocol):
    """Stands between the network and the handlers; what comes in-process does not pass it."""

    async def run(self, request: Request, answer: Callable[[Request], Awaitable[Result]]) -> Result:
        """The answer, or anything that may happen to a request instead; ConnectionResetError cuts the connection."""

    async def send(self, request: Request) -> None:
        """Before each piece of a watch goes out."""

    def watching(self, request: Request, begins: bool) -> None:
        """A watch begins, or is over."""


def _hold(host: str, port: int) -> socket.socket:
    """Connections are refused, and so is everybody who would listen here.

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
        self._protobuf = protobuf
        self._callers = callers
        self._rights = rights
        self._clock = clock
        self._metrics = metrics
        self._audit = audit
        self._flow = flow
        self._reading: Counter[str] = Counter()
        self._in_flight = 0
        self._long_running = 0
        metrics.gauges["apiserver_current_inflight_requests"] = lambda: [({}, self._in_flight)]
        metrics.gauges["apiserver_flowcontrol_current_inqueue_requests"] = lambda: [({}, flow.waiting)]
        metrics.gauges["apiserver_longrunning_requests"] = lambda: [({}, self._long_running)]
        self._runner: web.ServerRunner | None = None
        self._held: socket.socket | None = None
        self._streams: dict[int, tuple[web.BaseRequest, Request]] = {}
        self.gate: Gate | None = None

    async def start(self, host: str, port: int, tls: ssl.SSLContext | None) -> int:
        """Listen; returns the port, which the system chooses when 0 is given."""
        self._let_go()
        shorten_malformed_requests()
        server = web.Server(
            self._serve,
            request_factory=_make_request,
            handler_cancellation=True,
            access_log=None,
            auto_decompress=False,
            keepalive_timeout=120,
            max_line_size=64 * 1024,
            max_field_size=64 * 1024,
        )
        self._runner = web.ServerRunner(server, shutdown_timeout=STOP_SECONDS)
        await self._runner.setup()
        site = web.TCPSite(self._runner, listen_host(host), port, ssl_context=tls, backlog=1024, reuse_address=True)
        await site.start()
        return int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        """Stop listening; requests under way may finish within STOP_SECONDS."""
        self._let_go()
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    async def refuse(self) -> None:
        """Stop listening and cut every connection off, but hold the port: nobody else can have it before start."""
        runner, self._runner = self._runner, None
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

    def _let_go(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            held.close()

    def cut(self, which: Callable[[Request], bool]) -> int:
        """Cut the connections of these watches; how many there were."""
        found = [raw for raw, request in self._streams.values() if which(request)]
        for raw in found:
            if raw.transport is not None:
                raw.transport.abort()
        return len(found)

    def watches(self, which: Callable[[Request], bool]) -> int:
        """How many of these watches are open."""
        return sum(which(request) for _, request in self._streams.values())

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
        audit_id = headers.get("Audit-Id") or _audit_id()
        caller: User | None = None
        request: Request | None = None
        trail: FollowsRequest | None = None
        panic = False
        follows = info.subresource == "log" and query.flag("follow")
        long_running = info.verb == "watch" or info.subresource in CONNECT_SUBRESOURCES or follows
        if long_running:
            self._long_running += 1
        else:
            self._in_flight += 1
        try:
            caller = await self._callers.identify(headers, _peer_certificate(raw), _protocols(headers))
            trail = self._begin(raw, info, caller, audit_id, started)
            user = await impersonate(caller, headers, self._rights)
            request = Request(raw.method, info, query, headers, user, raw=raw, long_running=long_running)
            if trail is not None:
                trail.request = request
            request.seat = self._flow.classify(user, attributes_of(info))
            result = await self._run(raw, request)
            if trail is not None:
                trail.respond(result)
            response = await self._respond(raw, request, result, audit_id, trail)
            status = response.status
        except ApiError as error:
            trail = trail or (self._begin(raw, info, caller, audit_id, started) if caller is None else None)
            if trail is not None:
                trail.fail(error.status())
            if info.verb == "watch" and isinstance(error, (Expired, Timeout)):
                response = self._ended_watch(error, request, audit_id)
            else:
                response = self._error(error, request, headers, query, audit_id)
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
            response = self._error(fault, request, headers, query, audit_id)
            status = 500
            panic = True
        finally:
            if long_running:
                self._long_running -= 1
            else:
                self._in_flight -= 1
            seconds = self._clock.monotonic() - started
            known = request is not None and request.authorized and status != 404
            self._metrics.observe(info if known else UNKNOWN, status, seconds)
            if trail is not None:
                trail.finish(status, panic=panic)
        return response

    def _begin(
        self, raw: web.BaseRequest, info: RequestInfo, caller: User | None, audit_id: str, started: float
    ) -> FollowsRequest | None:
        if self._audit is None:
            return None
        return self._audit.begin(raw, info, caller, audit_id, self._clock.monotonic() - started)

    async def _result(self, raw: web.BaseRequest, request: Request) -> Result:
        if raw.method not in _WRITES:
            return await self._seated(request, self._pipeline.run)
        if request.info.subresource in ("exec", "attach", "portforward", "proxy"):
            return await self._pipeline.run(request)
        await self._pipeline.authorize(request)  # nobody may make us hold a body that we would refuse anyway
        seconds = min(_requested_seconds(request.query), WRITE_SECONDS)
        try:
            async with asyncio.timeout(seconds) as deadline:
                if raw.can_read_body:
                    request.body = await self._read_body(raw, request)
                return await self._seated(request, self._pipeline.handle)
        except TimeoutError:
            if not deadline.expired():
                raise
            raise Timeout(
                f"Timeout: request did not complete within requested timeout - context deadline exceeded ({seconds:g}s)"
            ) from None

    async def _seated(self, request: Request, work: Callable[[Request], Awaitable[Result]]) -> Result:
        """Do the work of a request on a seat; what runs long needs none, or nobody else would ever get one."""
        seat = request.seat
        if seat is None or request.long_running or not await self._flow.enter(seat):
            return await work(request)
        try:
            return await work(request)
        finally:
            self._flow.leave(seat)

    async def _read_body(self, raw: web.BaseRequest, request: Request) -> bytes:
        """A body that is still coming takes no seat; but one user has only so many of them on the way."""
        name = request.user.name
        if self._reading[name] >= MAX_READING and not request.user.is_master:
            raise refused()
        self._reading[name] += 1
        try:
            return await _read_body(raw)
        finally:
            self._reading[name] -= 1
            if not self._reading[name]:
                del self._reading[name]

    async def _respond(
        self, raw: web.BaseRequest, request: Request, result: Result, audit_id: str, trail: FollowsRequest | None
    ) -> web.StreamResponse:
        if isinstance(result, TakeOver):
            if trail is not None and request.long_running:
                trail.started(101)
            response: web.StreamResponse = await result.run(raw)
            return response
        headers = self._headers(request, audit_id)
        if isinstance(result, RawResult):
            headers.update(result.headers)
            if result.content_type:
                headers["Content-Type"] = result.content_type
            body = result.body
            if result.content_type == JSON and not result.headers and self._pretty(request):
                body = dumps(orjson.loads(body), pretty=True)
            return web.Response(body=body or None, status=result.status, headers=headers)
        if isinstance(result, WatchResult):
            return await self._stream(raw, request, result, headers, trail)
        form = _form(request, "list" if isinstance(result, ListResult) else "object")
        include = included(request.query.get("includeObject"), form)
        pretty = form.pretty or self._pretty(request)
        now = self._clock.now()
        if isinstance(result, ListResult):
            body, status = await encode_list(result, form, include, pretty, now, self._protobuf), 200
        else:
            body, status = encode_object(result, form, include, pretty, now, self._protobuf), result.status
        headers["Content-Type"] = form.media
        if len(body) > GZIP_FROM and raw.method == "GET" and "gzip" in request.headers.get("Accept-Encoding", ""):
            body = await asyncio.get_running_loop().run_in_executor(None, _gzip, body)
            headers["Content-Encoding"] = "gzip"
            headers["Vary"] = "Accept-Encoding"
        if len(body) > PIECE:
            return await _send_in_pieces(raw, body, status, headers)
        return web.Response(body=body, status=status, headers=headers)

    async def _stream(
        self,
        raw: web.BaseRequest,
        request: Request,
        result: WatchResult,
        headers: CIMultiDict[str],
        trail: FollowsRequest | None,
    ) -> web.StreamResponse:
        try:
            form = _form(request, "watch")
            include = included(request.query.get("includeObject"), form)
        except ApiError:
            result.subscription.close()
            raise
        headers["Content-Type"] = _watch_media(form)
        response = web.StreamResponse(headers=headers)
        response.enable_chunked_encoding()
        try:
            writer = await response.prepare(raw)
            assert writer is not None
            writer.send_headers()
        except BaseException:
            result.subscription.close()
            raise
        if trail is not None:
            trail.started(response.status)
        if raw.method == "HEAD":
            result.subscription.close()
            return response
        self._streams[id(raw)] = raw, request
        if self.gate is not None:
            self.gate.watching(request, True)
        try:
            async for piece in stream(result, form, include, self._clock, self._protobuf):
                if self.gate is not None:
                    await self.gate.send(request)
                await response.write(piece)
        finally:
            del self._streams[id(raw)]
            if self.gate is not None:
                self.gate.watching(request, False)
        await response.write_eof()
        return response

    def _ended_watch(self, error: ApiError, request: Request | None, audit_id: str) -> web.Response:
        """A watch that cannot start at the requested version is a stream with nothing but the reason."""
        headers = self._headers(request, audit_id)
        form = _form(request, "watch") if request is not None else Form()
        headers["Content-Type"] = _watch_media(form)
        return web.Response(body=error_frame(error, form, self._protobuf), headers=headers)

    @staticmethod
    def _pretty(request: Request) -> bool:
        return wants_pretty(request.query.get("pretty"), request.headers.get("User-Agent", ""))

    @staticmethod
    def _headers(request: Request | None, audit_id: str) -> CIMultiDict[str]:
        headers: CIMultiDict[str] = CIMultiDict(
            {
                "Cache-Control": "no-cache, private",
                "Audit-Id": audit_id,
            }
        )
        if request is not None and request.seat is not None:
            headers["X-Kubernetes-Pf-Flowschema-Uid"] = request.seat.schema.uid
            headers["X-Kubernetes-Pf-Prioritylevel-Uid"] = request.seat.level.uid
        if request is not None and request.warnings:
            for warning in request.warnings.headers():
                headers.add("Warning", warning)
        return headers

    def _error(
        self, error: ApiError, request: Request | None, sent: Mapping[str, str], query: Query, audit_id: str
    ) -> web.Response:
        headers = self._headers(request, audit_id)
        if error.retry_after is not None:
            headers["Retry-After"] = str(error.retry_after)
        form = negotiate_error(sent.get("Accept", ""))
        headers["Content-Type"] = form.media
        pretty = form.pretty or wants_pretty(query.get("pretty"), sent.get("User-Agent", ""))
        try:
            body = self._status(error.status(), form, pretty)
        except (TypeError, UnicodeEncodeError):  # the message quotes something of the request that is no text
            clean = error.message.encode("utf-8", "replace").decode()
            status = ApiError(clean, code=error.http_code, reason=error.status_reason).status()
            body = self._status(status, form, pretty)
        return web.Response(body=body, status=error.http_code, headers=headers)

    def _status(self, status: Obj, form: Form, pretty: bool) -> bytes:
        return self._protobuf.object(status) if form.media == PROTOBUF else finish(status, form, pretty)


@describe_requests
def _request_of(frame: FrameType) -> str | None:
    """Method and path of the request that a frame answers, for the watchdog."""
    if frame.f_code is not HttpFront._serve.__code__:
        return None
    raw: web.BaseRequest = frame.f_locals["raw"]
    return f"{raw.method} {raw.path}"


def _form(request: Request, shape: str) -> Form:
    """As negotiated when the request was routed; handlers of other paths have no protobuf to offer."""
    return request.form or negotiate(request.headers.get("Accept", ""), Offer(shape, protobuf=False))


def _watch_media(form: Form) -> str:
    return STREAMS[1] if form.media == PROTOBUF else form.media


def _cut_off(raw: web.BaseRequest) -> web.Response:
    """End the connection; the answer is for the one who called, nobody will get it."""
    if raw.transport is not None:
        raw.transport.abort()
    return web.Response(status=GONE)


async def _send_in_pieces(
    raw: web.BaseRequest, body: bytes, status: int, headers: CIMultiDict[str]
) -> web.StreamResponse:
    """A large answer at the client's pace: encrypted whole, it would stand in memory three times."""
    response = web.StreamResponse(status=status, headers=headers)
    response.content_length = len(body)
    await response.prepare(raw)
    view = memoryview(body)
    for start in range(0, len(body), PIECE):
        await response.write(view[start : start + PIECE])
    await response.write_eof()
    return response


def _audit_id() -> str:
    """A random UUID; without the system's entropy, which would cost more than the rest of a small get."""
    digits = f"{random.getrandbits(128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-{digits[20:]}"


def _make_request(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=MAX_BODY)


def _protocols(headers: Mapping[str, str]) -> list[str]:
    offered = headers.get("Sec-WebSocket-Protocol")
    return [part.strip() for part in offered.split(",")] if offered else []


def _peer_certificate(raw: web.BaseRequest) -> bytes | None:
    transport = raw.transport
    if transport is None:
        return None
    tls = transport.get_extra_info("ssl_object")
    certificate: bytes | None = tls.getpeercert(binary_form=True) if tls is not None else None
    return certificate


async def _read_body(raw: web.BaseRequest) -> bytes:
    try:
        return await inflate(await raw.read(), raw.headers.get("Content-Encoding", ""), MAX_BODY)
    except web.HTTPRequestEntityTooLarge:
        raise RequestEntityTooLarge(f"Request entity too large: limit is {MAX_BODY}") from None


def _requested_seconds(query: Query) -> float:
    text = query.get("timeout")
    if not text:
        return REQUEST_SECONDS
    try:
        return parse_duration(text) or REQUEST_SECONDS
    except ValueError:
        return REQUEST_SECONDS


def _gzip(body: bytes) -> bytes:
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    return packer.compress(body) + packer.flush()
