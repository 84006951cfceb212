"""`clusters/NAME/proxy/...`: any request to a member cluster, as the caller, through the control plane.

Access needs the right to `clusters/proxy` here and the caller's own rights in the member, where the impersonator's
token speaks for the caller. Answers are streamed as they come; upgrades (exec, attach, port-forward, over WebSocket or
SPDY) become a pipe. `clusters/*/proxy` is fan_out.py's.
"""

from __future__ import annotations

from aiohttp import web

from karmada.apiserver.fan_out import FanOut
from karmada.apiserver.forwarding import call, forward, inner_path, inner_target
from karmada.apiserver.members import Members
from karmada.kube.kinds.resource import Resource
from karmada.kube.objects.errors import BadRequest
from karmada.kube.server.http.request import Request
from karmada.kube.server.http.results import RawResult, Result, TakeOver

EVERY = "*"


class ClusterProxy:
    def __init__(self, members: Members, fan_out: FanOut) -> None:
        self._members = members
        self._fan_out = fan_out

    async def connect(self, request: Request, _resource: Resource) -> Result:
        """Return the endpoint of subresource `proxy`."""
        if request.query.all("dryRun"):
            raise BadRequest("dryRun is not supported")
        if request.info.name == EVERY:
            return await self._fan_out.answer(request)
        member = await self._members.get(request.info.name)
        if request.in_process:
            return await call(self._members, member, request, *inner_target(request))
        raw: web.BaseRequest = request.raw
        path, _, query = raw.raw_path.partition("?")
        if not request.info.rest and not path.endswith("/") and raw.method in ("GET", "HEAD"):
            return RawResult(b"", "text/plain", 301, {"Location": path + "/" + (f"?{query}" if query else "")})
        return TakeOver(lambda front: forward(self._members, member, request, front, inner_path(path), query))
