"""Audit events to a webhook, in batches: an EventList is posted when it is full or its oldest event has waited enough.

Requests never wait for it. The buffer is bounded: when the webhook is down for long, events are dropped and counted.
"""

from __future__ import annotations

import asyncio
from collections import deque

from karmada.kube.objects.clock import Clock
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.waiting import cancel_and_wait
from karmada.kube.server.audit.config import AuditWebhookConfig
from karmada.kube.server.audit.policy import API_VERSION
from karmada.kube.server.outbound.backend import KubeconfigWebhook
from karmada.kube.server.outbound.webhooks import WebhookCallFailed

_LAST_SECONDS = 5.0
"""How long a stop waits for what is still in the buffer."""
log = get_logger("audit")


class WebhookSink:
    name = "webhook"

    def __init__(self, config: AuditWebhookConfig, clock: Clock) -> None:
        self._config = config
        self._clock = clock
        self._webhook = KubeconfigWebhook(config.file, clock, first_pause=config.first_pause)
        self._waiting: deque[Obj] = deque()
        self._some, self._full = asyncio.Event(), asyncio.Event()
        self._sending: asyncio.Task[None] | None = None
        self._batch: list[Obj] = []
        """On its way; a stop sends it once more rather than lose it."""
        self.failed = 0

    def write(self, event: Obj) -> None:
        if len(self._waiting) >= self._config.buffer:
            self.failed += 1
            return
        self._waiting.append(event)
        self._some.set()
        if len(self._waiting) >= self._config.batch:
            self._full.set()
        if self._sending is None:
            self._sending = asyncio.create_task(self._send_batches(), name="audit webhook")

    async def _send_batches(self) -> None:
        while True:
            await self._some.wait()
            await self._wait_for_more()
            self._batch = self._take()
            await self._send(self._batch)
            self._batch = []

    async def _wait_for_more(self) -> None:
        full = asyncio.create_task(self._full.wait())
        late = asyncio.create_task(_sleep(self._clock, self._config.wait_seconds))
        try:
            await asyncio.wait({full, late}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await cancel_and_wait(full, late)

    def _take(self) -> list[Obj]:
        count = min(self._config.batch, len(self._waiting))
        batch = [self._waiting.popleft() for _ in range(count)]
        if not self._waiting:
            self._some.clear()
        if len(self._waiting) < self._config.batch:
            self._full.clear()
        return batch

    async def _send(self, batch: list[Obj]) -> None:
        try:
            await self._webhook.post({"kind": "EventList", "apiVersion": API_VERSION, "metadata": {}, "items": batch})
        except WebhookCallFailed as error:
            self.failed += len(batch)
            log.error("Audit events could not be sent and are lost", error, events=len(batch))

    async def close(self) -> None:
        """Send what waits, if the webhook takes it soon."""
        if self._sending is not None:
            await cancel_and_wait(self._sending)
        try:
            async with asyncio.timeout(_LAST_SECONDS):
                while batch := self._batch or self._take():
                    await self._send(batch)
                    self._batch = []
        except TimeoutError:
            lost = len(self._waiting) + len(self._batch)
            log.error("Audit events are lost: the webhook does not take them", events=lost)
        await self._webhook.close()


async def _sleep(clock: Clock, seconds: float) -> None:
    await clock.sleep(seconds)
