"""The context of a describer: the cluster of the object, its events, and the current time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from karmada.cli.output.describing.sheet import NONE, Sheet
from karmada.cli.output.describing.words import at, since

if TYPE_CHECKING:
    from karmada.kube.client.client import Client
    from karmada.kube.objects.gvk import GVR
    from karmada.kube.objects.types import Obj

_MIRROR = "kubernetes.io/config.mirror"
"""The annotation of a mirror pod: the kubelet's events have its value as uid."""


def resource(name: str) -> GVR:
    """`pods.v1`, `replicasets.v1.apps`."""
    from karmada.kube.objects.gvk import GVR

    plural, version, *group = name.split(".", 2)
    return GVR(group[0] if group else "", version, plural)


@dataclass(frozen=True, slots=True)
class Around:
    client: Client
    now: float
    show_events: bool = True
    chunk: int = 500

    async def get(self, kind: str, name: str, namespace: str = "") -> Obj:
        return await self.client.get(resource(kind), name, namespace)

    async def listed(self, kind: str, namespace: str = "", *, labels: str = "", fields: str = "") -> list[Obj]:
        found = await self.client.list_all(
            resource(kind), namespace, label_selector=labels, field_selector=fields, page_size=self.chunk
        )
        return found.items

    async def if_allowed(self, kind: str, namespace: str = "", **selectors: str) -> list[Obj] | None:
        """Return None when the server does not have them, or not for the caller: then they are left out."""
        from karmada.kube.objects.errors import ApiError

        try:
            return await self.listed(kind, namespace, **selectors)
        except ApiError:
            return None

    # events

    async def events_of(self, obj: Obj, *, uid: str = "") -> list[Obj] | None:
        """Return None when they are not requested or not accessible."""
        if not self.show_events:
            return None
        metadata = obj["metadata"]
        namespace = metadata.get("namespace") or ""
        uid = uid or at(metadata, "annotations", {}).get(_MIRROR) or metadata.get("uid") or ""
        terms = {"name": metadata["name"], "namespace": namespace, "kind": obj["kind"], "uid": uid}
        fields = ",".join(f"involvedObject.{term}={value}" for term, value in terms.items() if value)
        return await self.if_allowed("events.v1", namespace, fields=fields)

    async def write_events(self, sheet: Sheet, obj: Obj) -> None:
        events(sheet, await self.events_of(obj), self.now)


def events(sheet: Sheet, found: list[Obj] | None, now: float) -> None:
    """Add the section at the end of a description, by the time of each event's last occurrence."""
    if found is None:
        return
    if not found:
        sheet.field("Events", NONE)
        return
    sheet.row(0, "Events:")
    sheet.row(1, "Type", "Reason", "Age", "From", "Message")
    sheet.row(1, "----", "------", "----", "----", "-------")
    for event in sorted(found, key=_last):
        source = at(event, "source.component") or event.get("reportingComponent") or ""
        sheet.row(1, event.get("type", ""), event.get("reason", ""), _age(event, now), source, _message(event))


def _last(event: Obj) -> float:
    from karmada.kube.objects.times import parse_time

    text = event.get("lastTimestamp")
    return parse_time(text) if text else 0.0


def _message(event: Obj) -> str:
    return str(event.get("message") or "").strip()


def _age(event: Obj, now: float) -> str:
    """Return how long ago; of a repeated event also how often, and since when."""
    first: Any = event.get("firstTimestamp") or event.get("eventTime") or ""
    series = event.get("series")
    if series:
        return f"{since(at(series, 'lastObservedTime'), now)} (x{at(series, 'count', 0)} over {since(first, now)})"
    count = event.get("count") or 0
    if count > 1:
        return f"{since(event.get('lastTimestamp') or '', now)} (x{count} over {since(first, now)})"
    return since(first, now)
