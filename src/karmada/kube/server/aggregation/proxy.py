"""Requests that another server answers: passed on with the caller's identity, answers streamed back as they come.

The backend gets the user's name in X-Remote-* headers and believes them because this side shows the front-proxy
certificate; relaying.py does the passing on.
"""

from __future__ import annotations

from urllib.parse import quote, urlencode

import aiohttp
from aiohttp import web

from karmada.kube.server.aggregation.remote_watch import remote_watch
from karmada.kube.server.auth.frontproxy import remote_headers
from karmada.kube.server.http.relaying import body_of, forwarded_headers, own_body, pass_on, whole
from karmada.kube.server.http.request import Request
from karmada.kube.server.http.results import RawResult, Result
from karmada.kube.server.outbound.https import Outbound, Target, why

TEXT = "text/plain; charset=utf-8"
IN_PROCESS_SECONDS = 60.0


def unavailable(text: str) -> RawResult:
    return RawResult(f"{text}\n".encode(), TEXT, 503)


class Proxy:
    def __init__(self, outbound: Outbound) -> None:
        self._outbound = outbound

    # HTTP

    async def forward(self, request: Request, target: Target, raw: web.BaseRequest) -> web.StreamResponse:
        call = self._outbound.request(
            raw.method,
            target,
            raw.raw_path,
            headers=forwarded_headers(raw, remote_headers(request.user)),
            data=body_of(request, raw),
        )
        try:
            response = await call
        except (aiohttp.ClientError, OSError) as error:
            return web.Response(text=f"{why(error, target)}\n", status=503, content_type="text/plain", charset="utf-8")
        return await pass_on(raw, response)

    # In-process

    async def call(self, request: Request, target: Target) -> Result:
        watching = request.info.verb == "watch"
        path = quote(request.info.path)
        if request.query:
            path += "?" + urlencode(request.query.items())
        call = self._outbound.request(
            request.method,
            target,
            path,
            headers=[*((n, v) for n, v in request.headers.items() if v), *remote_headers(request.user)],
            data=own_body(request),
            seconds=None if watching else IN_PROCESS_SECONDS,
        )
        try:
            response = await call
            if watching and response.status == 200:
                return remote_watch(request.info, response)
            return await whole(response)
        except (aiohttp.ClientError, OSError) as error:
            return unavailable(why(error, target))
