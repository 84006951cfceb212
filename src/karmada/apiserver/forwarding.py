"""Sending a request on to a member cluster as its caller, with the answer streamed back."""

from __future__ import annotations

from urllib.parse import quote, unquote

from aiohttp import web

from karmada.apiserver.members import Member, Members
from karmada.kube.server.http.relaying import body_of, forwarded_headers, pass_on
from karmada.kube.server.http.request import Request

_PARTS_BEFORE = 7
"""/apis/GROUP/VERSION/RESOURCE/NAME/proxy/ and what comes behind."""


async def forward(
    members: Members, member: Member, request: Request, raw: web.BaseRequest, path: str, query: str
) -> web.StreamResponse:
    headers = forwarded_headers(raw, member.identity(request.user))
    headers = [(name, value) for name, value in headers if name != "Host"]
    response = await members.send(member, raw.method, member.url(path, query), headers, body_of(request, raw))
    try:
        return await pass_on(raw, response)
    finally:
        response.close()


def inner_target(request: Request) -> tuple[str, str]:
    """The path and query behind proxy/, as the client encoded them."""
    raw: web.BaseRequest | None = request.raw
    if raw is None:
        query = "&".join(f"{quote(key)}={quote(value)}" for key, value in request.query.items())
        return "/" + quote(request.info.rest), query
    path, _, query = raw.raw_path.partition("?")
    return inner_path(path) or "/", query


def inner_path(path: str) -> str:
    """The path for the member, as the client encoded it: everything behind clusters/NAME/proxy.

    Without empty and dot segments, so that it stays below the path of the cluster's endpoint.
    """
    parts = path.split("/", _PARTS_BEFORE)
    if len(parts) <= _PARTS_BEFORE:
        return ""
    kept: list[str] = []
    for segment in parts[_PARTS_BEFORE].split("/"):
        plain = unquote(segment)
        if plain == "..":
            del kept[-1:]
        elif plain not in ("", "."):
            kept.append(segment)
    return "/" + "/".join(kept) + ("/" if kept and path.endswith("/") else "")
