"""Sending a request on to a member cluster as its caller, with the answer streamed back."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

import aiohttp
from aiohttp import web

from karmada.apiserver.members import Member, Members, unanswered
from karmada.kube.server.http.relaying import body_of, forwarded_headers, own_body, pass_on, whole
from karmada.kube.server.http.request import Request
from karmada.kube.server.http.results import Result

_PARTS_BEFORE = 7
"""/apis/GROUP/VERSION/RESOURCE/NAME/proxy/ and what comes behind."""
_DOTS = frozenset({".", ".."})
_ENCODED_SLASH = re.compile("%2f", re.IGNORECASE)


IN_PROCESS_SECONDS = 60.0


async def forward(
    members: Members, member: Member, request: Request, raw: web.BaseRequest, path: str, query: str
) -> web.StreamResponse:
    """Return the request's body; one that was read already is sent without the encoding that it came in."""
    headers = forwarded_headers(raw, member.identity(request.user))
    dropped = ("Host", "Content-Encoding") if request.body else ("Host",)
    headers = [(name, value) for name, value in headers if name.title() not in dropped]
    response = await members.send(member, raw.method, member.url(path, query), headers, body_of(request, raw))
    return await pass_on(raw, response)


async def call(members: Members, member: Member, request: Request, path: str, query: str) -> Result:
    """For callers in this process: the whole response."""
    headers = [(name, value) for name, value in request.headers.items() if value] + member.identity(request.user)
    url = member.url(path, query)
    response = await members.send(member, request.method, url, headers, own_body(request), IN_PROCESS_SECONDS)
    try:
        return await whole(response)
    except (aiohttp.ClientError, OSError) as error:
        raise unanswered(error, member) from error


def inner_target(request: Request) -> tuple[str, str]:
    """Return the path and query behind proxy/, as the client encoded them."""
    raw: web.BaseRequest | None = request.raw
    if raw is None:
        query = "&".join(f"{quote(key)}={quote(value)}" for key, value in request.query.items())
        return "/" + quote(request.info.rest), query
    path, _, query = raw.raw_path.partition("?")
    return inner_path(path) or "/", query


def inner_path(path: str) -> str:
    """Return the path for the member, as the client encoded it: everything behind clusters/NAME/proxy.

    Without empty and dot segments, so that it stays below the path of the cluster's endpoint. Servers decode before
    they split: a path with dot segments between encoded slashes is split there, too.
    """
    parts = path.split("/", _PARTS_BEFORE)
    if len(parts) <= _PARTS_BEFORE:
        return ""
    behind, kept = parts[_PARTS_BEFORE], list[str]()
    if not _DOTS.isdisjoint(unquote(behind).split("/")):
        behind = _ENCODED_SLASH.sub("/", behind)
    for segment in behind.split("/"):
        plain = unquote(segment)
        if plain == "..":
            del kept[-1:]
        elif plain not in ("", "."):
            kept.append(segment)
    return "/" + "/".join(kept) + ("/" if kept and path.endswith("/") else "")
