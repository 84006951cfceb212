"""Events as a timeline: of the control plane or of one member, the newest first, with their number per minute."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final

from aiohttp import web

from karmada.dashboard import reads
from karmada.dashboard.object_events import time_of
from karmada.dashboard.view import LIVE_HEADER, PageModule, Route, View
from karmada.kube.client.client import Client
from karmada.kube.objects.gvrs import EVENTS
from karmada.kube.objects.times import parse_time
from karmada.kube.objects.types import Obj

READ: Final = 20_000
"""Events are listed by name, not by time, so all of them are read; of more than this the page wants a namespace."""
_PAGE: Final = 1000
_KEPT: Final = ("type", "reason", "message", "count", "reportingComponent", "source", "involvedObject")
SHOWN: Final = 200
MINUTES: Final = 60


@dataclass(frozen=True, slots=True)
class Minute:
    """A minute of the histogram; `ago` 0 is the current one."""

    ago: int
    normal: int
    warnings: int


@dataclass(frozen=True, slots=True)
class Listed:
    """The events of a place, without what is not shown of them."""

    place: tuple[str, str]
    """Cluster and namespace."""
    events: Sequence[Obj]
    version: str
    cut: bool


async def _listed(view: View, cluster: str, namespace: str) -> Listed:
    """Return the events of a place; the viewer's last one is kept while it may not be read again for a change."""
    client = view.viewer.member(cluster) if cluster else view.client
    place = (cluster, namespace)

    async def read() -> Listed:
        return await listed(client, place)

    wait = LIVE_HEADER in view.request.headers
    return await view.viewer.paced("events", read, wait=wait, suits=lambda found: found.place == place)


async def listed(client: Client, place: tuple[str, str], most: int = READ) -> Listed:
    found: list[Obj] = []
    token = version = ""
    while len(found) < most:
        page = await reads.page(client, EVENTS, place[1], limit=_PAGE, token=token)
        found += map(slim, page.items)
        token, version = page.token, version or page.version
        if not token:
            break
    return Listed(place, found, version, bool(token))


def slim(event: Obj) -> Obj:
    return {"at": time_of(event), **{key: event[key] for key in _KEPT if event.get(key)}}


def newest(events: Sequence[Obj], *, words: Sequence[str] = (), warnings: bool = False) -> list[Obj]:
    """Return the events that are wanted; every word must occur in the object, the reason or the message."""
    found = [one for one in events if (not warnings or one.get("type") == "Warning") and _has(one, words)]
    return sorted(found, key=itemgetter("at"), reverse=True)


def _has(event: Obj, words: Sequence[str]) -> bool:
    about = event.get("involvedObject") or {}
    parts = (about.get("kind"), about.get("namespace"), about.get("name"), event.get("reason"), event.get("message"))
    text = " ".join(str(part) for part in parts if part).lower()
    return all(word in text for word in words)


def histogram(events: Sequence[Obj], now: float) -> list[Minute]:
    """Return the last hour, oldest minute first."""
    counts: dict[bool, Counter[int]] = {True: Counter(), False: Counter()}
    for event in events:
        ago = int((now - _seconds(event["at"])) // 60)
        if 0 <= ago < MINUTES:
            counts[event.get("type") == "Warning"][ago] += 1
    return [Minute(ago, counts[False][ago], counts[True][ago]) for ago in reversed(range(MINUTES))]


def _seconds(stamp: str) -> float:
    try:
        return parse_time(stamp)
    except ValueError:
        return 0.0


async def events(view: View) -> web.StreamResponse:
    query = view.query
    cluster, namespace = query.get("cluster", ""), query.get("namespace", "")
    place = await _listed(view, cluster, namespace)
    words, warnings = query.get("q", "").lower().split(), bool(query.get("warnings"))
    found = await asyncio.to_thread(newest, place.events, words=words, warnings=warnings)
    bars = await asyncio.to_thread(histogram, found, view.clock.now())
    data: dict[str, Any] = {
        "events": found[:SHOWN],
        "total": len(found),
        "bars": bars,
        "most": max((bar.normal + bar.warnings for bar in bars), default=0) or 1,
        "cut": place.cut,
        "read": READ,
        "url": str(view.request.rel_url),
        "topics": [reads.topic(EVENTS, namespace, cluster=cluster, since=place.version)],
        "cluster": cluster,
    }
    if view.request.headers.get("HX-Request"):
        return view.part("partials/events.html", **data)
    clusters = await reads.allowed(view.clusters())
    names = [one["metadata"]["name"] for one in clusters.items] if clusters is not None else []
    return view.page("events.html", title="Events", names=names, query=query, **data)


PAGE: Final = PageModule(routes=(Route("GET", "/events", events),), nav=("/events", "Events"))
