"""`clusters/*/proxy/...`: one request to all member clusters at once.

A named object is looked for in every cluster and the request goes to the one that has it; a list is the lists of all
clusters one after another. Clusters that fail, in whatever way, are left out. What is no resource is answered by this
server itself. Refusals here are plain text, not Status objects.

A list is always the whole list: continue tokens and resourceVersions are valid only in the cluster they are from.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple
from urllib.parse import quote, unquote_plus

import aiohttp
import orjson

from karmada.apiserver.forwarding import forward, inner_target
from karmada.apiserver.members import Member, Members
from karmada.kube.client.limits import LIST_BYTES, OBJECT_BYTES
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.logging import get_logger
from karmada.kube.server.http.request import Query, Request, RequestInfo, parse_path
from karmada.kube.server.http.results import RawResult, Result, TakeOver
from karmada.kube.server.outbound.bodies import read_body

log = get_logger("cluster-proxy")
SECONDS = 30.0
_OF_ONE = ("continue", "remainingItemCount", "resourceVersion")
"""Metadata of a list that is valid in one cluster only."""
_CONNECTIONS = ("attach", "exec", "log", "portforward", "proxy")
Local = Callable[[Request, str], Awaitable[Result]]
"""(request, path) → this server's own answer to a path that is no resource"""


class Answer(NamedTuple):
    """The response of a member."""

    member: Member
    status: int
    body: bytes


class FanOut:
    def __init__(self, members: Members, local: Local) -> None:
        self._members = members
        self._local = local

    async def answer(self, request: Request) -> Result:
        path, query = inner_target(request)
        info = parse_path(request.method, path, Query.parse(query))
        if not info.is_resource:
            return await self._local(request, path)
        if info.name and info.verb != "deletecollection":
            return await self._named(request, info, path, query)
        if info.verb != "list":
            return _text(405, f"Request verb {info.verb} is not support")
        return await self._list(request, path, query)

    async def _named(self, request: Request, info: RequestInfo, path: str, query: str) -> Result:
        probe = _object_path(info)
        found = [answer.member for answer in await self._send_to_all(request, probe, "") if answer.status == 200]
        if not found:
            return _text(404, "resource not found or don't have permission to get it")
        if len(found) > 1:
            names = ",".join(member.name for member in found)
            return _text(409, f"conflict resource, exist in more than one cluster: {names}")
        member = found[0]
        return TakeOver(lambda raw: forward(self._members, member, request, raw, path, query))

    async def _list(self, request: Request, path: str, query: str) -> Result:
        whole = _without_pages(query)
        answers = [
            answer for answer in await self._send_to_all(request, path, whole, LIST_BYTES) if answer.status == 200
        ]
        lists = [parsed for answer in answers if (parsed := _parsed(answer.body)) is not None]
        if not lists:
            return _text(404, "not found")
        items = [item for each in lists for item in each.get("items") or ()]
        metadata = {key: value for key, value in (lists[0].get("metadata") or {}).items() if key not in _OF_ONE}
        return RawResult(orjson.dumps({**lists[0], "metadata": metadata, "items": items}))

    async def _send_to_all(self, request: Request, path: str, query: str, most: int = OBJECT_BYTES) -> list[Answer]:
        """Return the responses of the clusters, by name; those that fail are left out."""

        async def send(name: str) -> Answer | None:
            try:
                member = await self._members.get(name)
                response = await self._members.send(
                    member, "GET", member.url(path, query), member.identity(request.user), None, SECONDS
                )
                async with response:
                    return Answer(member, response.status, await read_body(response, most))
            except (aiohttp.ClientError, OSError, ValueError, ApiError) as error:
                log.v(1).info("A cluster is left out", cluster=name, err=str(error))
                return None

        found = await asyncio.gather(*(send(name) for name in sorted(self._members.names())))
        return [answer for answer in found if answer is not None]


def _object_path(info: RequestInfo) -> str:
    """Return the cluster that has the object to connect to."""
    prefix = f"/apis/{info.group}/{info.version}" if info.group else f"/api/{info.version}"
    namespace = f"/namespaces/{quote(info.namespace)}" if info.namespace and info.resource != "namespaces" else ""
    path = f"{prefix}{namespace}/{info.resource}/{quote(info.name)}"
    return path if not info.subresource or info.subresource in _CONNECTIONS else f"{path}/{info.subresource}"


def _parsed(body: bytes) -> Obj | None:
    """Return the items of a list; None for anything else, which no member returns."""
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(parsed, dict) or not isinstance(parsed.get("metadata") or {}, dict):
        return None
    return parsed if isinstance(parsed.get("items") or [], list) else None


def _without_pages(query: str) -> str:
    parts = (part for part in query.split("&") if part)
    return "&".join(part for part in parts if unquote_plus(part.partition("=")[0]) not in ("limit", "continue"))


def _text(status: int, message: str) -> RawResult:
    return RawResult(f"{message}\n".encode(), "text/plain; charset=utf-8", status)
