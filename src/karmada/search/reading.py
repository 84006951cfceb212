"""Who may read in members: a caller needs its own right there, besides the right to search in the control plane.

The caches are filled with the credentials of the control plane, which may read everything. So before anything of a
cluster is shown, the cluster itself is requested to decide (a SubjectAccessReview, whose result is kept for seconds),
as it would if the caller read there directly. A cluster that refuses, or that cannot decide now, is left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from karmada.kube.client.client import Client
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.errors import ApiError
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.waiting import with_timeout
from karmada.kube.server.auth.delegated import DelegatedAuthorizer
from karmada.kube.server.auth.messages import denied
from karmada.kube.server.auth.rbac import AuthzAttributes
from karmada.kube.server.auth.user import User
from karmada.kube.server.http.request import Request
from karmada.members.access import NoAccess
from karmada.search.interfaces import Reading, Rights

SECONDS: Final = 5.0
"""How long a cluster may take to decide."""
REFUSED: Final = "no right there"
UNDECIDED: Final = "it does not respond, so the right there is unknown"
log = get_logger("search")


class MemberReading:
    def __init__(self, client: Callable[[str], Client], clock: Clock, *, enforced: bool = True) -> None:
        """`client` returns the client of a cluster. Not `enforced`, the right in the control plane is enough."""
        self._client = client
        self._clock = clock
        self._enforced = enforced
        self._authorizers: dict[str, tuple[Client, DelegatedAuthorizer]] = {}

    async def rights(self, user: User, wanted: AuthzAttributes, clusters: Iterable[str]) -> Rights:
        names = list(clusters)
        if not self._enforced or user.is_master:
            return Rights(names, {})
        reasons = await asyncio.gather(*(self._refusal(name, user, wanted) for name in names))
        found = dict(zip(names, reasons, strict=True))
        return Rights([name for name in names if not found[name]], {name: why for name, why in found.items() if why})

    async def _refusal(self, cluster: str, user: User, wanted: AuthzAttributes) -> str:
        """Why the user may not; empty if it may."""
        try:
            decision = await with_timeout(self._clock, self._authorizer(cluster).decide(user, wanted), SECONDS)
        except (ApiError, ConnectionFailed, NoAccess, TimeoutError) as error:
            log.v(1).info("A cluster does not decide about a right", cluster=cluster, user=user.name, err=str(error))
            return UNDECIDED  # without the reason: addresses of members are not for everybody who reads
        return "" if decision.allowed else REFUSED

    def _authorizer(self, cluster: str) -> DelegatedAuthorizer:
        client = self._client(cluster)
        kept = self._authorizers.get(cluster)
        if kept is None or kept[0] is not client:
            kept = self._authorizers[cluster] = client, DelegatedAuthorizer(client, self._clock)
        return kept[1]


async def readable(reading: Reading, request: Request, wanted: AuthzAttributes, clusters: Iterable[str]) -> list[str]:
    """Return the clusters that the caller may read; the others are named in a warning.

    Forbidden if there is none left.
    """
    rights = await reading.rights(request.user, wanted, clusters)
    if rights.refused:
        left_out = ", ".join(f"{name} ({why})" for name, why in sorted(rights.refused.items()))
        if not rights.allowed:
            raise denied(request.user, wanted, f"in every cluster: {left_out}")
        request.warn(f"clusters left out: {left_out}")
    return rights.allowed
