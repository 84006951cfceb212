"""From the result of a request to the HTTP response: headers, negotiated form, compression, streams and errors."""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from functools import partial

import orjson
from aiohttp import web
from multidict import CIMultiDict

from karmada.kube.objects.clock import Clock
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.aside import ASIDE, is_large
from karmada.kube.runtime.memory import GivesBack
from karmada.kube.server.audit.interface import FollowsRequest
from karmada.kube.server.flowcontrol.per_user import PerUser
from karmada.kube.server.http.encoding import dumps, encode_object, finish, included
from karmada.kube.server.http.gate import Gate
from karmada.kube.server.http.list_encoding import list_parts, protobuf_list
from karmada.kube.server.http.list_stream import stream_list
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
from karmada.kube.server.http.pieces import PIECE, Bytes, divided, in_pieces
from karmada.kube.server.http.protobuf_form import ProtobufForm
from karmada.kube.server.http.request import Query, Request
from karmada.kube.server.http.results import ListResult, RawResult, Result, StreamedList, TakeOver, WatchResult
from karmada.kube.server.http.watch_stream import error_frame, stream

GZIP_FROM = 128 * 1024
LEAST_HELD = 4 * PIECE
"""What a response that is written in pieces counts for."""
MAX_SENDING, MAX_SENDING_IN_ALL = 64 << 20, 512 << 20
"""Bytes of large responses of one user that may be on their way at the same time, and of all users."""

log = logging.getLogger(__name__)


class Responses:
    def __init__(self, clock: Clock, protobuf: ProtobufForm) -> None:
        self._clock = clock
        self._protobuf = protobuf
        self._streams: dict[int, tuple[web.BaseRequest, Request]] = {}
        self.gate: Gate | None = None
        self._memory = GivesBack()
        self.sending = PerUser(MAX_SENDING, "bytes of large responses on their way", in_all=MAX_SENDING_IN_ALL)

    def cut(self, which: Callable[[Request], bool]) -> int:
        """Cut the connections of these watches; how many there were."""
        found = [raw for raw, request in self._streams.values() if which(request)]
        for raw in found:
            if raw.transport is not None:
                raw.transport.abort()
        return len(found)

    async def respond(
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
            return await self._send_whole(raw, request, body, result.status, headers, LEAST_HELD)
        if isinstance(result, WatchResult):
            return await self._stream(raw, request, result, headers, trail)
        if isinstance(result, StreamedList):
            return await self._stream_list(raw, request, result, headers)
        form = _form(request, "list" if isinstance(result, ListResult) else "object")
        include = included(request.query.get("includeObject"), form)
        pretty = form.pretty or self._pretty(request)
        now = self._clock.now()
        headers["Content-Type"] = form.media
        if isinstance(result, ListResult) and form.media != PROTOBUF:
            pieces = in_pieces(list_parts(result, form, include, pretty, now))
            return await self._send_begun(raw, request, pieces, headers)
        if isinstance(result, ListResult):
            body, status = await protobuf_list(result, form, self._protobuf), 200
        else:
            encode = partial(encode_object, result, form, include, pretty, now, self._protobuf)
            short = (form.media == JSON and not form.transform) or not is_large(result.object())
            body, status = encode() if short else await ASIDE.run(encode), result.status
        if len(body) > GZIP_FROM and raw.method == "GET" and "gzip" in request.headers.get("Accept-Encoding", ""):
            body = await asyncio.get_running_loop().run_in_executor(None, _gzip, body)
            headers["Content-Encoding"] = "gzip"
            headers["Vary"] = "Accept-Encoding"
        return await self._send_whole(raw, request, body, status, headers, len(body))

    async def _send_whole(
        self, raw: web.BaseRequest, request: Request, body: bytes, status: int, headers: CIMultiDict[str], held: int
    ) -> web.StreamResponse:
        """Return a body that is there, and of which so many bytes are held for this response only."""
        if len(body) <= PIECE or raw.method == "HEAD":
            return web.Response(body=body or None, status=status, headers=headers)
        with self._sending(request, held):
            return await _send_in_pieces(raw, body, status, headers)

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
        sent = 0
        if self.gate is not None:
            self.gate.watching(request, True)
        try:
            async for piece in stream(result, form, include, self._clock, self._protobuf):
                if self.gate is not None:
                    await self.gate.send(request)
                sent += len(piece)
                await response.write(piece)
        finally:
            if sent > LEAST_HELD:
                self._memory.soon()
            del self._streams[id(raw)]
            if self.gate is not None:
                self.gate.watching(request, False)
        await response.write_eof()
        return response

    async def _stream_list(
        self, raw: web.BaseRequest, request: Request, result: StreamedList, headers: CIMultiDict[str]
    ) -> web.StreamResponse:
        """Return a list of another server as it comes."""
        try:
            form = _form(request, "list")
            include = included(request.query.get("includeObject"), form)
        except ApiError:
            await result.batches.aclose()
            raise
        headers["Content-Type"] = form.media
        pieces = stream_list(result, form, include, form.pretty or self._pretty(request), self._clock.now())
        return await self._send_begun(raw, request, pieces, headers)

    async def _send_begun(
        self, raw: web.BaseRequest, request: Request, pieces: AsyncGenerator[Bytes, None], headers: CIMultiDict[str]
    ) -> web.StreamResponse:
        """Return a short body in one piece; a long one as it comes, at the client's pace."""
        begun = bytearray()
        async for piece in pieces:
            begun += piece
            if len(begun) > GZIP_FROM:
                break
        else:
            return web.Response(body=bytes(begun), headers=headers)
        async with aclosing(pieces):
            if raw.method == "HEAD":
                return web.Response(headers=headers)
            gzip = raw.method == "GET" and "gzip" in request.headers.get("Accept-Encoding", "")
            if gzip:
                headers["Content-Encoding"] = "gzip"
                headers["Vary"] = "Accept-Encoding"
            with self._sending(request, LEAST_HELD):
                response = web.StreamResponse(headers=headers)
                response.enable_chunked_encoding()
                await response.prepare(raw)
                try:
                    async for piece in _gzipped(begun, pieces) if gzip else _resumed(begun, pieces):
                        await response.write(piece)
                except OSError:
                    raise
                except Exception as error:  # half a list must not look whole
                    log.warning("a list broke off: %s", error, exc_info=not isinstance(error, ApiError))
                    raise ConnectionResetError(f"a list broke off: {error}") from error
                await response.write_eof()
                return response

    @contextmanager
    def _sending(self, request: Request, size: int) -> Iterator[None]:
        """Count what a large response holds until its client has read it; TooManyRequests beyond the limits."""
        self.sending.enter(request.user, size)
        try:
            yield
        finally:
            self.sending.leave(request.user, size)
            self._memory.soon()

    def ended_watch(self, error: ApiError, request: Request | None, audit_id: str) -> web.Response:
        """Return the response to a watch that cannot start at the requested version: a stream with the reason."""
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

    def error(
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


def _form(request: Request, shape: str) -> Form:
    """As negotiated when the request was routed; handlers of other paths have no protobuf to offer."""
    return request.form or negotiate(request.headers.get("Accept", ""), Offer(shape, protobuf=False))


def _watch_media(form: Form) -> str:
    return STREAMS[1] if form.media == PROTOBUF else form.media


async def _send_in_pieces(
    raw: web.BaseRequest, body: bytes, status: int, headers: CIMultiDict[str]
) -> web.StreamResponse:
    """Return a large answer at the client's pace: encrypted whole, it would stand in memory three times."""
    response = web.StreamResponse(status=status, headers=headers)
    response.content_length = len(body)
    await response.prepare(raw)
    for piece in divided(body):
        await response.write(piece)
    await response.write_eof()
    return response


def _packer() -> zlib._Compress:
    return zlib.compressobj(1, zlib.DEFLATED, 31)


def _gzip(body: bytes) -> bytes:
    packer = _packer()
    return packer.compress(body) + packer.flush()


async def _resumed(begun: bytearray, pieces: AsyncIterator[Bytes]) -> AsyncIterator[Bytes]:
    for part in divided(bytes(begun)):
        yield part
    begun.clear()
    async for piece in pieces:
        yield piece


async def _gzipped(begun: bytearray, pieces: AsyncIterator[Bytes]) -> AsyncIterator[bytes]:
    packer, loop = _packer(), asyncio.get_running_loop()
    async for piece in _resumed(begun, pieces):
        if packed := await loop.run_in_executor(None, packer.compress, piece):
            yield packed
    yield packer.flush()
