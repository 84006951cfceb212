"""Sending a request on to a member cluster as its caller, with the answer streamed back."""

from __future__ import annotations

import aiohttp
from aiohttp import web

from karmada.apiserver.members import Member, Members, plain
from karmada.kube.server.outbound import Target, why
from karmada.kube.server.relaying import body_of, forwarded_headers, pass_on
from karmada.kube.server.request import Request
from karmada.kube.server.service_routing import Address

_PARTS_BEFORE = 7
"""/apis/GROUP/VERSION/clusters/NAME/proxy/ and what comes behind."""


async def forward(
    members: Members, member: Member, request: Request, raw: web.BaseRequest, path: str, query: str
) -> web.StreamResponse:
    headers = forwarded_headers(raw, member.identity(request.user))
    headers = [(name, value) for name, value in headers if name != "Host"]
    url = member.url(path, query)
    try:
        response = await members.ask(member, raw.method, url, headers, body_of(request, raw))
    except (aiohttp.ClientError, OSError) as error:
        failure = plain(why_not(error, member))
        return web.json_response(failure.status(), status=500)
    try:
        return await pass_on(raw, response)
    finally:
        response.close()


def inner_path(path: str) -> str:
    """What is asked of the member, as the client encoded it: everything behind clusters/NAME/proxy."""
    parts = path.split("/", _PARTS_BEFORE)
    return "/" + parts[_PARTS_BEFORE] if len(parts) > _PARTS_BEFORE else ""


def why_not(error: BaseException, member: Member) -> str:
    url = member.url("")
    address = Address(url.host or "", url.port or 443)
    return why(error, Target(address, url.host or "", member.trust))
