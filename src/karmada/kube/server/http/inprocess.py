"""The server's in-process door: a client Transport that calls the handler chain directly, as a given user.

Authorisation, admission and validation are the same as over HTTPS; nothing is serialised, and what comes back are the
very objects the watch cache shares with everybody: read-only.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import orjson

from karmada.kube.client.transport import Call, RawResponse, Transport, WatchEvent
from karmada.kube.objects.doc import Doc, Part, SharedObject
from karmada.kube.objects.errors import ApiError, BadRequest, error_from_status
from karmada.kube.objects.shapes import Shape
from karmada.kube.objects.types import Obj
from karmada.kube.server.audit.interface import Audits, FollowsRequest, Sent, new_audit_id
from karmada.kube.server.auth.user import User
from karmada.kube.server.handlers.pipeline import Pipeline
from karmada.kube.server.http.audited import audited
from karmada.kube.server.http.encoding import partial
from karmada.kube.server.http.list_encoding import list_of, plain_list
from karmada.kube.server.http.list_stream import collected
from karmada.kube.server.http.negotiation import Offer, negotiate
from karmada.kube.server.http.request import Query, Request, parse_path
from karmada.kube.server.http.results import (
    ListResult,
    ObjectResult,
    ParsedLater,
    RawResult,
    Result,
    StreamedList,
    WatchResult,
)
from karmada.kube.server.http.watch_stream import INITIAL_EVENTS_END


class InProcess(Transport):
    def __init__(
        self, pipeline: Pipeline, user: User, *, user_agent: str = "in-process", audit: Audits | None = None
    ) -> None:
        self._pipeline = pipeline
        self._user = user
        self._agent = user_agent
        self._audit = audit

    def _request(self, call: Call, more: Mapping[str, str] | None = None) -> Request:
        query = Query.of(call.query)
        headers = {"User-Agent": self._agent, "Content-Type": call.content_type, "Accept": call.accept}
        if more:
            headers |= more
        return Request(
            method=call.method,
            info=parse_path(call.method, call.path, query),
            query=query,
            headers=headers,
            user=self._user,
            obj=call.body,
            new_first=call.new_first,
        )

    def _run(self, call: Call, more: Mapping[str, str] | None = None) -> Awaitable[Result]:
        request = self._request(call, more)
        if self._audit is None:
            return self._pipeline.run(request)
        return audited(self._pipeline.run, request, self._trail(self._audit, call, request))

    def _trail(self, audit: Audits, call: Call, request: Request) -> FollowsRequest | None:
        uri = f"{call.path}?{urlencode(call.query)}" if call.query else call.path
        return audit.begin(Sent(uri, request.headers), request.info, self._user, new_audit_id(), 0.0)

    async def call(self, call: Call) -> Any:
        result = await self._run(call)
        if isinstance(result, ObjectResult):
            form = negotiate(call.accept)
            return partial(result.object()) if form.transform and result.resource is not None else result.object()
        if isinstance(result, ListResult | StreamedList):
            metadata_only = bool(negotiate(call.accept, Offer("list")).transform)
            if isinstance(result, ListResult):
                listed = list_of(result, result.one_by_one(_shown(call.shape, metadata_only=metadata_only)))
            else:
                listed = await collected(result)
            if metadata_only and not isinstance(listed["items"], ParsedLater):
                listed["items"] = [partial(obj) for obj in listed["items"]]
            return listed
        if isinstance(result, RawResult):
            return _parsed(result)
        raise BadRequest(f"{call.method} {call.path} is a stream and cannot be called in-process")

    async def create_all(self, call: Call, objects: Sequence[Obj]) -> list[ApiError | None] | None:
        """Return where requests are audited, each create is one."""
        return None if self._audit is not None else await self._pipeline.create_all(self._request(call), objects)

    async def watch(self, call: Call) -> AsyncGenerator[WatchEvent, None]:
        request = self._request(call)
        trail = None if self._audit is None else self._trail(self._audit, call, request)
        result = await audited(self._pipeline.run, request, trail, goes_on=True)
        if not isinstance(result, WatchResult):
            raise BadRequest(f"{call.path} is not a watch")
        convert, metadata_only = result.convert, bool(negotiate(call.accept, Offer("watch")).transform)
        show = _partial if metadata_only else Doc.object
        objects: Iterable[Obj]
        try:
            objects = map(show, result.initial)
            if convert is not None:
                objects = await _converted(convert, result.initial, metadata_only=metadata_only)
            for obj in objects:
                yield WatchEvent("ADDED", obj)
            if result.end_of_initial:
                yield WatchEvent("BOOKMARK", _bookmark(result))
            async for batch in result.subscription:
                entries = [change.entry for change in batch]
                objects = map(show, entries)
                if convert is not None:
                    objects = await _converted(convert, entries, metadata_only=metadata_only)
                for change, obj in zip(batch, objects, strict=True):
                    yield WatchEvent(change.type, obj)
        finally:
            result.subscription.close()
            if trail is not None:
                trail.finish(200)

    async def body(self, call: Call) -> bytes:
        """Return a list as the bytes that are stored."""
        result = await self._run(call)
        if not isinstance(result, ListResult):
            raise BadRequest(f"{call.path} is not a list")
        return await plain_list(result)

    async def lines(self, call: Call) -> AsyncGenerator[bytes, None]:
        async with contextlib.aclosing(self.watch(call)) as events:
            async for kind, obj in events:
                yield b'{"type":"%b","object":%b}' % (kind.encode(), Doc.of(obj).raw)

    async def answer(self, call: Call, headers: Mapping[str, str] | None = None) -> RawResponse:
        """As over HTTPS, for pages and single objects; an error is an answer, too."""
        try:
            result = await self._run(call, headers)
        except ApiError as error:
            return RawResponse(error.code, {}, orjson.dumps(error.status()))
        if isinstance(result, RawResult):
            return RawResponse(result.status, result.headers, result.body)
        if isinstance(result, ObjectResult):
            return RawResponse(200, {}, orjson.dumps(result.object()))
        raise BadRequest(f"{call.method} {call.path} is not a page")


async def _converted(
    convert: Callable[[list[Obj]], Awaitable[list[Obj]]], entries: Iterable[Doc], *, metadata_only: bool
) -> list[Obj]:
    """Return what a watcher of another version than the stored one gets of these entries."""
    objects = await convert([entry.object() for entry in entries])
    return [partial(obj) for obj in objects] if metadata_only else objects


def _shown(shape: Shape, *, metadata_only: bool) -> Callable[[Doc], Obj]:
    """Return how items of a list are parsed."""
    parse = shape.of_bytes
    if parse is None:
        return _partial if metadata_only else Doc.object
    if metadata_only:
        return lambda entry: _partial(entry) if entry.alive() is not None else Part.of(entry, parse(entry.raw))
    return lambda entry: _part(entry, entry.parsed(parse))


def _part(entry: Doc, parsed: Obj) -> Obj:
    return parsed if isinstance(parsed, SharedObject) else Part.of(entry, parsed)


def _partial(entry: Doc) -> Obj:
    return Part.of(entry, partial({"metadata": entry.metadata()}))


def _parsed(result: RawResult) -> Any:
    if result.status >= 400:
        try:
            raise error_from_status(orjson.loads(result.body), http_code=result.status)
        except orjson.JSONDecodeError:
            raise ApiError(result.body.decode("utf-8", "replace").strip(), code=result.status) from None
    return orjson.loads(result.body) if result.content_type.startswith("application/json") else result.body.decode()


def _bookmark(result: WatchResult) -> Obj:
    gvk = result.resource.gvk
    meta = {"resourceVersion": str(result.revision), "annotations": {INITIAL_EVENTS_END: "true"}}
    return {"kind": gvk.kind, "apiVersion": gvk.api_version, "metadata": meta}
