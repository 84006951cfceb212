"""Events that recorders have emitted."""

from __future__ import annotations

from collections.abc import Iterable

from karmada.kube.client.client import Client
from karmada.kube.objects.gvrs import EVENTS
from karmada.kube.runtime.events import EventRecorder


async def events_of(
    recorders: Iterable[EventRecorder], client: Client, name: str, namespace: str
) -> list[tuple[str, str, str]]:
    """(type, reason, message) of the events of objects of this name, oldest first."""
    for recorder in recorders:
        await recorder.flush()
    emitted = (await client.list_all(EVENTS, namespace)).items
    emitted.sort(key=lambda event: int(event["metadata"]["resourceVersion"]))
    return [(e["type"], e["reason"], e["message"]) for e in emitted if e["involvedObject"]["name"] == name]
