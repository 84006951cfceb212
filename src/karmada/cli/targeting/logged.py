"""A transport that logs what goes over it: every request from -v 6 on, and what was sent from -v 8 on."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.transport import Call, ConnectionFailed, TransportDecorator, WatchEvent
from karmada.kube.objects.errors import ApiError
from karmada.kube.runtime.logging import get_logger

log = get_logger("requests").v(6)


class LoggedTransport(TransportDecorator):
    """Calls are logged with how they ended."""

    def __init__(self, below: HttpTransport) -> None:
        super().__init__(below)
        self._server = below.config.server.rstrip("/")

    async def call(self, call: Call) -> Any:
        began = time.monotonic()
        status = "OK"
        if call.body is not None:
            log.v(8).info("Request Body", body=_showable(call.body))
        try:
            return await self.below.call(call)
        except ApiError as error:
            status = f"{error.http_code} {error.status_reason}"
            raise
        except ConnectionFailed as error:
            status = str(error)
            raise
        finally:
            milliseconds = round((time.monotonic() - began) * 1000)
            log.info("Response", verb=call.method, **self._where(call), status=status, milliseconds=milliseconds)

    def watch(self, call: Call) -> AsyncIterator[WatchEvent]:
        log.info("Watch", **self._where(call))
        return self.below.watch(call)

    def stream(self, call: Call) -> AsyncIterator[bytes]:
        log.info("Stream", **self._where(call))
        return self.below.stream(call)

    def _where(self, call: Call) -> dict[str, Any]:
        return {"url": f"{self._server}{call.path}", "query": dict(call.query)}


def _showable(body: Any) -> Any:
    return "(a Secret)" if isinstance(body, dict) and body.get("kind") == "Secret" else body
