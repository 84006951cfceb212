"""The reads of pages: counts instead of lists, pages instead of all, once for all parts that need the same.

Everything is read with the viewer's own client, so `Forbidden` is an ordinary outcome: `allowed` turns it into None,
and the page leaves that part out with a note.
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Final, TypeVar
from urllib.parse import urlencode

from karmada.api.cluster import Cluster
from karmada.kube.client.client import Client, Listing, resource_path
from karmada.kube.objects.errors import Forbidden, NotFound
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.shapes import METADATA, WHOLE, Shape
from karmada.kube.objects.types import Obj

T = TypeVar("T")
PAGE: Final = 50


async def allowed(reading: Awaitable[T]) -> T | None:
    """Return what is read; None if the viewer may not read it."""
    try:
        return await reading
    except Forbidden:
        return None


async def existing(reading: Awaitable[T]) -> T | None:
    """Return what is read; None if it is not there, or its kind is not."""
    try:
        return await reading
    except NotFound:
        return None


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a list; `token` continues it, `more` is how many follow if the server says so."""

    items: list[Obj]
    version: str
    token: str = ""
    more: int | None = None


async def page(
    client: Client,
    gvr: GVR,
    namespace: str = "",
    *,
    limit: int = PAGE,
    token: str = "",
    label_selector: str = "",
    field_selector: str = "",
    shape: Shape = WHOLE,
) -> Page:
    """Return a page of a list; Expired when the token has become too old: begin again without one."""
    answer = await client.list(
        gvr,
        namespace,
        limit=limit,
        continue_=token,
        label_selector=label_selector,
        field_selector=field_selector,
        shape=shape,
    )
    metadata = answer.get("metadata") or {}
    more = metadata.get("remainingItemCount")
    follows = metadata.get("continue") or ""
    return Page(answer.get("items") or [], metadata.get("resourceVersion") or "", follows, more if follows else 0)


async def count(client: Client, gvr: GVR, namespace: str = "") -> int:
    """Return how many there are, by a list of one."""
    first = await page(client, gvr, namespace, limit=1, shape=METADATA)
    if first.token and first.more is None:  # a server that does not say
        return len((await client.list_all(gvr, namespace, shape=METADATA)).items)
    return len(first.items) + (first.more or 0)


async def clusters(client: Client) -> Listing:
    """Return all, sorted by name. Pages get them from their View, which reads them once for all of its parts."""
    found = await client.list_all(Cluster.gvr)
    return Listing(sorted(found.items, key=lambda one: str(one["metadata"]["name"])), found.resource_version)


def topic(
    gvr: GVR,
    namespace: str = "",
    *,
    cluster: str = "",
    name: str = "",
    label_selector: str = "",
    field_selector: str = "",
    since: str = "",
) -> str:
    """Return the topic of a list (see live.py) of the control plane or a member. `since`: the version that is shown."""
    path = resource_path(gvr, namespace)
    if cluster:
        path = resource_path(Cluster.gvr, "", cluster, "proxy") + path
    if name:
        field_selector = f"metadata.name={name}"
    query = {"labelSelector": label_selector, "fieldSelector": field_selector, "resourceVersion": since}
    given = {key: value for key, value in query.items() if value}
    return f"{path}?{urlencode(given)}" if given else path
