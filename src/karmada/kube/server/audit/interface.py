"""What the HTTP front reports of a request, stage by stage, to whoever keeps the audit log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from karmada.kube.objects.types import Obj

if TYPE_CHECKING:
    from aiohttp import web

    from karmada.kube.server.auth.user import User
    from karmada.kube.server.http.request import Request, RequestInfo
    from karmada.kube.server.http.results import Result


class FollowsRequest(Protocol):
    """What the audit log learns of one request on its way."""

    request: Request | None

    def started(self, code: int) -> None: ...

    def respond(self, result: Result) -> None: ...

    def fail(self, status: Obj) -> None: ...

    def finish(self, code: int, *, panic: bool = False) -> None: ...


class Audits(Protocol):
    def begin(
        self, raw: web.BaseRequest, info: RequestInfo, caller: User | None, audit_id: str, seconds: float
    ) -> FollowsRequest | None:
        """None for a request that is not audited."""
