"""The event recorder: emits Events about objects. `event` only queues; an EventWriter writes (see event_writer)."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Final

from karmada.kube.client.client import Client
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.event_queue import Event
from karmada.kube.runtime.event_writer import EVENTS, NORMAL, EventWriter

__all__ = ["EVENTS", "NORMAL", "WARNING", "EventRecorder"]

WARNING: Final = "Warning"


class EventRecorder:
    """`component` is the source of its events; start it (or its writer) to have them written."""

    name = "event-recorder"

    def __init__(
        self,
        client: Client,
        component: str,
        *,
        clock: Clock | None = None,
        host: str | None = None,
        writer: EventWriter | None = None,
    ) -> None:
        """`writer`: one that several recorders share; else it has one of its own."""
        self.component = component
        self.host = socket.gethostname() if host is None else host
        self._writer = writer or EventWriter(client, clock=clock)

    def event(
        self,
        obj: Obj,
        type: str,  # noqa: A002 - the API's word
        reason: str,
        message: str | Callable[[], str],
        *,
        host: str = "",
    ) -> None:
        """Emit an event about `obj`; `type` is Normal or Warning. Never waits, never fails.

        `host` is where it happened, if that is not where the recorder runs. A message that is a function is not made
        for an event that is dropped.
        """
        writer = self._writer
        if not writer.takes(self.component, type, reason):
            return
        metadata, now = obj["metadata"], writer.clock.now()
        namespace = metadata.get("namespace") or ""
        writer.add(
            Event(
                self.component,
                obj.get("apiVersion") or "",
                obj.get("kind") or "",
                namespace,
                metadata.get("name") or "",
                metadata.get("uid") or "",
                metadata.get("resourceVersion") or "",
                type,
                reason,
                message if isinstance(message, str) else message(),
                host or self.host,
                now,
                now,
                namespace or "default",
            )
        )

    @property
    def dropped(self) -> int:
        return sum(count for (component, _), count in self._writer.dropped.items() if component == self.component)

    async def start(self) -> None:
        await self._writer.start()

    async def stop(self) -> None:
        await self._writer.stop()

    async def flush(self) -> None:
        """Wait until every event emitted so far is written or dropped."""
        await self._writer.flush()
