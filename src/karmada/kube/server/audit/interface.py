"""What the server's two doors, HTTP and in-process, report of a request to whoever keeps the audit log."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from karmada.kube.objects.types import Obj

if TYPE_CHECKING:
    from karmada.kube.server.auth.user import User
    from karmada.kube.server.http.request import Request, RequestInfo
    from karmada.kube.server.http.results import Result


GONE = 499
"""Status in metrics and the audit log for a request whose client went away."""


class Sent(NamedTuple):
    """The parts of a request that are known before anything is parsed."""

    uri: str
    headers: Mapping[str, str]
    remote: str = ""
    """The address of the client; none in-process."""
    certificate: bool = False
    """True if the client has shown one."""


class FollowsRequest(Protocol):
    """The methods by which the audit log learns of one request on its way."""

    request: Request | None

    def started(self, code: int) -> None: ...

    def respond(self, result: Result) -> None: ...

    def fail(self, status: Obj) -> None: ...

    def finish(self, code: int, *, panic: bool = False) -> None: ...


class Audits(Protocol):
    def begin(
        self, sent: Sent, info: RequestInfo, caller: User, audit_id: str, seconds: float
    ) -> FollowsRequest | None:
        """Begin the trail of an authenticated request that came so many seconds ago; None for one without audit."""

    def refuse(self, sent: Sent, info: RequestInfo, audit_id: str, seconds: float, code: int) -> None:
        """Record a request whose sender could not be authenticated."""


def new_audit_id() -> str:
    """Return a random UUID; without the system's entropy, which would cost more than the rest of a small get."""
    digits = f"{random.getrandbits(128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-{digits[20:]}"
