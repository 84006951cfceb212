"""Events that are about an object, the latest first."""

from __future__ import annotations

from typing import Final

from karmada.dashboard import reads
from karmada.kube.client.client import Client
from karmada.kube.objects import meta
from karmada.kube.objects.gvrs import EVENTS
from karmada.kube.objects.types import Obj

_READ: Final = 500


def time_of(event: Obj) -> str:
    """Return when an event happened last, as the server has it."""
    series = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return str(next((one for one in times if one), event["metadata"].get("creationTimestamp") or ""))


async def events_of(client: Client, obj: Obj) -> list[Obj] | None:
    """Return the events of an object; None if the viewer may not read them."""
    selector = f"involvedObject.uid={meta.uid(obj)}"
    page = reads.page(client, EVENTS, meta.namespace(obj) or "default", limit=_READ, field_selector=selector)
    found = await reads.allowed(page)
    return None if found is None else sorted(found.items, key=time_of, reverse=True)
