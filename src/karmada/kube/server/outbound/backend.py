"""A webhook that a kubeconfig file names: JSON is posted to the address of its cluster, with its credentials.

That is how kube-apiserver finds its token, authorisation and audit webhooks. What may pass (no connection, a 5xx, too
many requests) is tried again a few times with growing pauses.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.kubeconfig import load_config
from karmada.kube.client.transport import Call, ConnectionFailed
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.errors import ApiError
from karmada.kube.server.outbound.webhooks import WebhookCallFailed

ATTEMPTS = 4
FIRST_PAUSE = 0.5
_GROWTH = 1.5
_CALL_SECONDS = 30.0


class KubeconfigWebhook:
    def __init__(self, kubeconfig: Path, clock: Clock, *, first_pause: float = FIRST_PAUSE) -> None:
        """KubeconfigError (a ValueError) for a file that cannot be used."""
        config = replace(load_config(kubeconfig), timeout=_CALL_SECONDS, user_agent="kube-apiserver")
        self._path = "" if urlsplit(config.server).path.strip("/") else "/"
        self._transport = HttpTransport(config, clock=clock)
        self._clock = clock
        self._first_pause = first_pause

    async def post(self, body: Any) -> Any:
        """Return the JSON value of a 2xx response; WebhookCallFailed if there was none in the end."""
        pause = self._first_pause
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return await self._transport.call(Call("POST", self._path, body=body))
            except ApiError as error:
                if attempt == ATTEMPTS or (error.http_code < 500 and error.http_code != 429):
                    raise WebhookCallFailed(error.message) from error
            except ConnectionFailed as error:
                if attempt == ATTEMPTS:
                    raise WebhookCallFailed(str(error)) from error
            await self._clock.sleep(pause)
            pause *= _GROWTH
        raise AssertionError("unreachable")

    async def close(self) -> None:
        await self._transport.close()
