"""Tokens that a webhook reviews: a TokenReview is posted, and its status says whose token it is.

Both answers, yes and no, are kept for a while (two minutes by default): so long a revoked token stays good. A webhook
that cannot be reached is no answer: the request is refused, and the next one tries again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from karmada.kube.objects.clock import Clock
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.logging import get_logger
from karmada.kube.server.auth.authentication import TokenIdentity, own_audiences
from karmada.kube.server.auth.identity import authenticated
from karmada.kube.server.auth.jwt import TokenError
from karmada.kube.server.auth.single_flight import SingleFlight
from karmada.kube.server.auth.token_sources import TokenWebhookConfig
from karmada.kube.server.auth.user import User
from karmada.kube.server.outbound.backend import KubeconfigWebhook
from karmada.kube.server.outbound.webhooks import WebhookCallFailed

log = get_logger("token-webhook")


class WebhookTokens:
    def __init__(self, config: TokenWebhookConfig, audiences: Sequence[str], clock: Clock) -> None:
        self._audiences = tuple(audiences)
        self._version = f"authentication.k8s.io/{config.version}"
        self._webhook = KubeconfigWebhook(config.file, clock)
        self._known: SingleFlight[tuple[bytes, tuple[str, ...]], Obj] = SingleFlight(clock, config.cache_seconds)

    async def authenticate(self, token: str, audiences: Sequence[str]) -> TokenIdentity | None:
        wanted = tuple(audiences)
        status = await self._known.get(
            (hashlib.sha256(token.encode()).digest(), wanted), lambda: self._review(token, wanted)
        )
        if not status.get("authenticated"):
            if status.get("error"):
                raise TokenError(f"webhook: {status['error']}")
            return None
        return TokenIdentity(_user(status.get("user") or {}), self._common(wanted, status.get("audiences")))

    async def close(self) -> None:
        await self._webhook.close()

    async def _review(self, token: str, audiences: tuple[str, ...]) -> Obj:
        review = {
            "apiVersion": self._version,
            "kind": "TokenReview",
            "metadata": {},
            "spec": {"token": token, "audiences": list(audiences)},
        }
        try:
            answer = await self._webhook.post(review)
        except WebhookCallFailed as error:
            log.error("The webhook that reviews tokens returned no response", error)
            raise TokenError("webhook: no response") from error
        return _status(answer)

    def _common(self, wanted: tuple[str, ...], answered: Any) -> tuple[str, ...]:
        """Return the audiences of a token; a webhook that names none knows none: its tokens are for this server."""
        if not answered:
            return own_audiences(wanted, self._audiences)
        return own_audiences(wanted, tuple(answered))


def _status(answer: Any) -> Obj:
    """Return all that is kept of an answer: never the token that it repeats."""
    status = answer.get("status") if isinstance(answer, dict) else None
    if not isinstance(status, dict):
        raise TokenError("webhook: the response is no TokenReview")
    return status


def _user(info: Obj) -> User:
    name = info.get("username")
    if not isinstance(name, str) or not name:
        raise TokenError("webhook: the response names no user")
    extra = {str(key): tuple(values) for key, values in (info.get("extra") or {}).items()}
    return authenticated(User(name, info.get("uid") or "", tuple(info.get("groups") or ()), extra))
