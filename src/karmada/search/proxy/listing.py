"""Lists over all clusters, in the order of their names; a page of one may end in the middle of any of them.

With a limit members are listed until the page is full, a few at once. Without them the list is
streamed: first each cluster is opened, which gives the resourceVersions and most of the errors there can be, then the
objects follow cluster by cluster, a page at a time, so that the whole of them is never in memory.

The resourceVersion of a list has no position in clusters that it does not have: if one comes back, a watch from there
sends all its objects.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from karmada.kube.kinds.resource import Resource
from karmada.kube.objects.doc import Doc
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.time_slice import TimeSlice
from karmada.kube.server.http.options import ListOptions
from karmada.kube.server.http.results import StreamedList
from karmada.search.cached_object import stamped
from karmada.search.interfaces import KindCache
from karmada.search.proxy.live import Page, Reads
from karmada.search.proxy.selecting import Matches, matching
from karmada.search.proxy.versions import ANY, Continue, Versions

PAGE: Final = 500
"""Objects of one request to a member."""
MOST_AT_ONCE: Final = 4_000
"""Objects that may be in memory while all clusters are opened."""
LARGEST_LIMIT: Final = 10_000
"""Most items of a page, however large its limit is: it is put together before it is sent."""
MOST_AHEAD: Final = 16
"""Clusters that are requested at once for a page."""
BATCH: Final = 100
"""Cached objects that are sent in one piece."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The request for a list; `selectors` are the query parameters for members."""

    resource: Resource
    namespace: str
    options: ListOptions
    selectors: Mapping[str, str]


class _Start(NamedTuple):
    """Where a list begins: the clusters that are still to be listed, the token of the first of them."""

    caches: Sequence[KindCache]
    versions: Versions
    token: str


class _Opened(NamedTuple):
    """A cluster whose objects are ready to be sent."""

    cluster: str
    version: str
    batches: AsyncGenerator[Sequence[bytes], None]


class Lists:
    def __init__(self, live: Reads) -> None:
        self._live = live

    async def list(self, wanted: Wanted, caches: Sequence[KindCache]) -> StreamedList:
        """Make it; `caches` are those of the clusters that may be read, by the name of the cluster."""
        if not caches:
            return _nothing(wanted.resource)
        start = _start(wanted.options, caches)
        start = start._replace(versions=start.versions.only({cache.cluster for cache in caches}))
        if wanted.options.limit:
            return await self._page(wanted, start, caches)
        return await self._whole(wanted, start, caches)

    # pages

    async def _page(self, wanted: Wanted, start: _Start, caches: Sequence[KindCache]) -> StreamedList:
        versions, items = start.versions.copy(), list[bytes]()
        following, remaining = Continue(), None
        left = min(wanted.options.limit, LARGEST_LIMIT)
        ahead = _Ahead(self._live, wanted, start)
        for at, cache in enumerate(start.caches):
            page = await ahead.first(at, left)
            remaining = page.remaining if at == 0 else remaining
            items += page.items
            left -= len(page.items)
            while left > 0 and page.token:
                page = await self._live.page(cache, wanted.namespace, _query(wanted, "", left, page.token))
                items += page.items
                left -= len(page.items)
            versions.set(cache.cluster, page.version)
            if left <= 0:
                following = _following(cache, page.token, start.caches[at + 1 :])
                break
        for cluster, version in ahead.positions():
            if cluster not in versions:
                versions.set(cluster, version)
        await self._complete(wanted, versions, caches)
        metadata: Obj = {"resourceVersion": versions.encode()}
        if following.cluster:
            metadata["continue"] = following._replace(versions=versions.encode()).encode()
        if remaining is not None:
            metadata["remainingItemCount"] = remaining
        return StreamedList(wanted.resource, metadata, _one(items))

    async def _complete(self, wanted: Wanted, versions: Versions, caches: Sequence[KindCache]) -> None:
        """Add the positions of clusters that were not listed: a watch begins, and the list goes on."""
        missing = [cache for cache in caches if cache.cluster not in versions]
        one = {"limit": "1"}
        pages: list[Page] = await asyncio.gather(*(self._live.page(c, wanted.namespace, one) for c in missing))
        for cache, page in zip(missing, pages, strict=True):
            versions.set(cache.cluster, page.version)

    # streams

    async def _whole(self, wanted: Wanted, start: _Start, caches: Sequence[KindCache]) -> StreamedList:
        versions = start.versions.copy()
        first = max(1, min(PAGE, MOST_AT_ONCE // max(1, len(start.caches))))
        tokens = [start.token, *[""] * len(start.caches)]
        opened: list[_Opened] = await asyncio.gather(
            *(
                self._open(wanted, cache, "" if token else start.versions.get(cache.cluster), token, first)
                for cache, token in zip(start.caches, tokens, strict=False)
            )
        )
        for each in opened:
            versions.set(each.cluster, each.version)
        await self._complete(wanted, versions, caches)
        return StreamedList(wanted.resource, {"resourceVersion": versions.encode()}, _in_turn(opened))

    async def _open(self, wanted: Wanted, cache: KindCache, version: str, token: str, first: int) -> _Opened:
        if version == ANY and cache.synced:
            objects = cache.list(wanted.namespace)
            selected = _cached(objects, cache.cluster, matching(wanted.resource, wanted.options))
            return _Opened(cache.cluster, cache.resource_version, selected)
        query = _query(wanted, "" if version == ANY else version, first, token)
        if query.get("resourceVersion") and "resourceVersionMatch" not in query:
            query["resourceVersionMatch"] = "NotOlderThan"  # with a limit, none would mean just this version
        page = await self._live.page(cache, wanted.namespace, query)
        return _Opened(cache.cluster, page.version, self._pages(wanted, cache, page))

    async def _pages(self, wanted: Wanted, cache: KindCache, page: Page) -> AsyncGenerator[Sequence[bytes], None]:
        while True:
            yield page.items
            if not page.token:
                return
            page = await self._live.page(cache, wanted.namespace, _query(wanted, "", PAGE, page.token))


class _Ahead:
    """The first page of each cluster, requested for several clusters at once: twice as many with every request.

    One after another, many clusters with few objects each would take the time of as many requests.
    """

    def __init__(self, live: Reads, wanted: Wanted, start: _Start) -> None:
        self._live = live
        self._wanted = wanted
        self._start = start
        self._pages: dict[int, Page] = {}
        self._limit = 0
        self._width = 1

    async def first(self, at: int, left: int) -> Page:
        """Return the cluster in this place; not for more than is left, or its end would not be known."""
        if at not in self._pages:
            places = range(at, min(at + self._width, len(self._start.caches)))
            pages = await asyncio.gather(*(self._request(place, left) for place in places))
            self._pages = dict(zip(places, pages, strict=True))
            self._limit, self._width = left, min(self._width * 2, MOST_AHEAD)
        page = self._pages.pop(at)
        fits = len(page.items) <= left or self._limit == left
        return page if fits else await self._request(at, left)

    def positions(self) -> list[tuple[str, str]]:
        """Return the positions of the clusters that were requested and not needed."""
        return [(self._start.caches[at].cluster, page.version) for at, page in self._pages.items()]

    async def _request(self, at: int, limit: int) -> Page:
        cache = self._start.caches[at]
        token = self._start.token if at == 0 else ""
        version = "" if token else self._start.versions.get(cache.cluster)
        return await self._live.page(cache, self._wanted.namespace, _query(self._wanted, version, limit, token))


def _start(options: ListOptions, caches: Sequence[KindCache]) -> _Start:
    if not options.token:
        return _Start(caches, Versions.decode(options.resource_version), "")
    position = Continue.decode(options.token)
    left = [cache for cache in caches if cache.cluster >= position.cluster] if position.cluster else list(caches)
    there = bool(left) and left[0].cluster == position.cluster
    return _Start(left, Versions.decode(position.versions), position.token if there else "")


def _following(cache: KindCache, token: str, behind: Sequence[KindCache]) -> Continue:
    if token:
        return Continue("", cache.cluster, token)
    return Continue("", behind[0].cluster) if behind else Continue()


def _query(wanted: Wanted, version: str, limit: int, token: str) -> dict[str, str]:
    query = {**wanted.selectors, "limit": str(limit)}
    if token:
        return {**query, "continue": token}
    if version:
        query["resourceVersion"] = version
        if wanted.options.match:
            query["resourceVersionMatch"] = wanted.options.match
    return query


def _nothing(resource: Resource) -> StreamedList:
    """Return the error for a list when no cluster was listed that could have named the kind."""
    return StreamedList(replace(resource, gvk=GVK("", "v1", ""), list_kind="List"), {"resourceVersion": ""}, _one([]))


async def _one(items: list[bytes]) -> AsyncGenerator[Sequence[bytes], None]:
    yield items


async def _in_turn(opened: Iterable[_Opened]) -> AsyncGenerator[Sequence[bytes], None]:
    for each in opened:
        async with aclosing(each.batches) as batches:
            async for batch in batches:
                yield batch


async def _cached(objects: list[Doc], cluster: str, matches: Matches | None) -> AsyncGenerator[Sequence[bytes], None]:
    """Return a list as it was when the cluster was opened."""
    turn = TimeSlice()
    for start in range(0, len(objects), BATCH):
        batch = objects[start : start + BATCH]
        yield [stamped(obj, cluster) for obj in batch if matches is None or matches(obj)]
        if turn.is_over():
            await turn.next()
