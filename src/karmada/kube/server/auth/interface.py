"""What a server needs to know of its callers: who they are, and what they may do.

Answers may have to be fetched from elsewhere (delegated.py), so they are awaited. A server that keeps the accounts and
roles itself answers at once (authentication.py, rbac.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from karmada.kube.server.auth.headers import Headers
from karmada.kube.server.auth.rbac import AuthzAttributes, Decision
from karmada.kube.server.auth.user import User


class Identifies(Protocol):
    async def identify(self, headers: Headers, peer_cert_der: bytes | None, protocols: Sequence[str]) -> User:
        """Return the request's user; Unauthorized if it has bad credentials, or none where some are needed."""


class Decides(Protocol):
    async def decide(self, user: User, request: AuthzAttributes) -> Decision: ...
