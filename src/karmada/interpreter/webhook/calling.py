"""Calls of webhooks over HTTPS, with the client that admission webhooks are called with.

No more than a few calls of one webhook are under way at a time. A webhook that did not answer within its deadline is
called by one caller at a time until it answers again; the others fail at once, so that it holds one worker of a
controller and not all of them.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import time
from typing import Final
from weakref import WeakKeyDictionary

from karmada.interpreter.webhook.hooks import Hook
from karmada.interpreter.webhook.messages import NoResponse
from karmada.interpreter.webhook.services import Services
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.logging import get_logger
from karmada.kube.server.outbound.https import BadTrust, Outbound, Trust
from karmada.kube.server.outbound.webhooks import WebhookCallFailed, WebhookClient, endpoint_url, parse_answer

USER_AGENT: Final = "karmada-interpreter"
MOST_CALLS: Final = 64
"""Most calls of one webhook at the same time."""
_SLOW_SECONDS: Final = 0.5
log = get_logger("interpreter.webhooks")


class Calls:
    """To all webhooks; connections are kept open and shared by those with the same address and trust."""

    def __init__(self, informers: Informers) -> None:
        self._services = Services(informers)
        self._outbound = Outbound()
        self._client = WebhookClient(self._services, self._outbound, user_agent=USER_AGENT)
        self._lines: WeakKeyDictionary[Hook, _Line] = WeakKeyDictionary()

    async def post(self, hook: Hook, body: bytes) -> Obj:
        """Return the JSON object of a 2xx response."""
        trust = self._trust(hook)
        try:
            return parse_answer(await self._answer(hook, trust, body))
        except WebhookCallFailed as error:
            raise NoResponse(f"failed to call webhook: {error}") from error

    async def _answer(self, hook: Hook, trust: Trust, body: bytes) -> bytes:
        place = hook.client_config.get("service") or str(hook.client_config.get("url") or "")
        line = self._lines.setdefault(hook, _Line())
        line.enter()
        began = time.monotonic()
        try:
            async with asyncio.timeout(hook.seconds), line.turns:
                if not isinstance(place, str):
                    await self._services.synced()
                answer = await self._client.post(place, trust.ca_pem, body, hook.seconds)
            line.overdue = ""
        except TimeoutError as error:
            line.overdue = f'Post "{endpoint_url(place)[0]}": context deadline exceeded'
            raise WebhookCallFailed(line.overdue) from error
        except WebhookCallFailed as error:
            line.overdue = str(error) if isinstance(error.__cause__, TimeoutError) else ""
            raise
        finally:
            line.calls -= 1
            self._log_slow(hook, time.monotonic() - began)
        return answer

    def _trust(self, hook: Hook) -> Trust:
        try:
            trust = Trust(base64.b64decode(hook.client_config.get("caBundle") or "", validate=True))
            self._outbound.tls(trust)
        except binascii.Error as error:
            raise NoResponse(f"could not get REST client: illegal base64 data in caBundle: {error}") from error
        except BadTrust as error:
            raise NoResponse(f"could not get REST client: {error}") from error
        return trust

    @staticmethod
    def _log_slow(hook: Hook, seconds: float) -> None:
        if seconds > _SLOW_SECONDS:
            log.info("A call of an interpreter webhook was slow", webhook=hook.id, seconds=round(seconds, 3))

    async def close(self) -> None:
        await self._client.close()


class _Line:
    """The calls of one webhook."""

    def __init__(self) -> None:
        self.turns = asyncio.Semaphore(MOST_CALLS)
        self.calls = 0
        self.overdue = ""
        """Why the last call failed, if it was for the deadline."""

    def enter(self) -> None:
        if self.overdue and self.calls:
            raise WebhookCallFailed(f"{self.overdue} (another call waits for it to respond again)")
        self.calls += 1
