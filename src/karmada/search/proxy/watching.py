"""A watch over all clusters: their changes as one stream, each under the positions of all clusters at that moment.

Every event's resourceVersion has the position in each cluster, so a client can resume from any of them. The stream ends
without an error as soon as one of its clusters ends, and when a cluster joins: the client resumes, and the new stream
has the clusters of then. A client that is too slow fills the buffers of its own subscriptions, which end it and nobody
else.

Existing objects of a cluster are sent in the order of their resourceVersions. So a client that breaks off between two
of them resumes with exactly those that it does not have.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final

import orjson

from karmada.kube.kinds.resource import Resource
from karmada.kube.objects.doc import Doc
from karmada.kube.objects.errors import BadRequest, Expired
from karmada.kube.objects.types import Obj
from karmada.kube.server.http.options import ListOptions
from karmada.kube.server.http.results import WatchResult
from karmada.kube.server.http.watch_stream import INITIAL_EVENTS_END
from karmada.kube.server.watchcache.entry import ADDED, Change
from karmada.kube.server.watchcache.subscription import Subscription
from karmada.search.cached_object import stamped
from karmada.search.interfaces import KindCache
from karmada.search.proxy.selecting import Matches, matching
from karmada.search.proxy.versions import ANY, Versions

BATCH: Final = 64
"""Events that are prepared in a row."""
_BOOKMARK: Final = "BOOKMARK"


@dataclass(slots=True, eq=False)
class _Source:
    """A cluster. `existing` are still to be sent; `position` is where it stood then, for a watch that begins there."""

    cluster: str
    subscription: Subscription
    matches: Matches | None = None
    existing: deque[Doc] = field(default_factory=deque)
    position: str = ""
    waiting: deque[Change] = field(default_factory=deque)
    taken: asyncio.Event = field(default_factory=asyncio.Event)
    """Nothing is waiting: the next batch may be read."""


async def open_watch(
    resource: Resource,
    namespace: str,
    options: ListOptions,
    caches: Sequence[KindCache],
    on_cluster_added: Callable[[Callable[[], None]], Callable[[], None]],
    *,
    known: Callable[[str], bool] = lambda _cluster: True,
) -> WatchResult:
    """Raise Expired when a position is too old, or in a cluster that is not `known` any more.

    TooManyRequests before a cache has synced.
    """
    versions = Versions.decode(options.resource_version)
    for cluster in versions:
        if not known(cluster):
            raise Expired(f"cluster {cluster} has left: list again")
    sources: list[_Source] = []
    try:
        for cache in caches:
            source = await _open(cache, resource, namespace, options, versions.get(cache.cluster))
            sources.append(source)
    except BaseException:
        for source in sources:
            source.subscription.close()
        raise
    initial = options.send_initial_events is not False
    merged = MergedWatch(sources, versions, end_of_initial=_end_of_initial(resource, options) if initial else None)
    merged.follow(on_cluster_added)
    return WatchResult(
        resource=resource,
        initial=[],
        subscription=merged,
        revision=0,
        bookmarks=options.bookmarks,
        end_of_initial=False,
        timeout=options.timeout or random.uniform(1800, 3600),
    )


async def _open(cache: KindCache, resource: Resource, namespace: str, options: ListOptions, version: str) -> _Source:
    matches = matching(resource, options)
    name = (options.fields.exact("metadata.name") if options.fields is not None else None) or ""
    synthetic = options.send_initial_events
    if synthetic is None:
        synthetic = version in ("", ANY)
    since = None if synthetic or version in ("", ANY) else _revision(version)
    subscription = await cache.subscribe(since, namespace=namespace, name=name, matches=matches)
    source = _Source(cache.cluster, subscription, matches)
    if since is None:
        source.position = cache.resource_version
    if synthetic:
        source.existing.extend(sorted(cache.list(namespace), key=attrgetter("revision")))
    return source


def _end_of_initial(resource: Resource, options: ListOptions) -> Obj | None:
    if not (options.bookmarks and (options.send_initial_events or options.resource_version in ("", ANY))):
        return None
    metadata = {"annotations": {INITIAL_EVENTS_END: "true"}}
    return {"kind": resource.gvk.kind, "apiVersion": resource.api_version, "metadata": metadata}


def _revision(version: str) -> int:
    if version.isascii() and version.isdigit():
        return int(version)
    raise BadRequest(f'invalid resource version: "{version}" is no position in a cluster')


def _nothing() -> None:
    """Return the error for a watch that follows no cluster."""


class MergedWatch:
    """The changes of all sources. Read by one; ends with the first source that ends."""

    def __init__(self, sources: Sequence[_Source], versions: Versions, *, end_of_initial: Obj | None = None) -> None:
        self._sources = sources
        self._versions = versions
        self._end_of_initial = end_of_initial
        self._initial = deque(sources)
        self._ready: deque[_Source] = deque()
        self._wake = asyncio.Event()
        self._ended = not sources
        self._unfollow: Callable[[], None] = _nothing
        self._pumps = [asyncio.create_task(self._pump(s), name=f"watch of {s.cluster}") for s in sources]

    def follow(self, on_cluster_added: Callable[[Callable[[], None]], Callable[[], None]]) -> None:
        self._unfollow = on_cluster_added(self._end)

    @property
    def progress(self) -> str:
        versions = self._versions.copy()
        for source in self._sources:
            if not source.waiting and not source.existing:
                versions.set(source.cluster, str(source.subscription.progress))
        return versions.encode()

    def close(self) -> None:
        self._end()
        unfollow, self._unfollow = self._unfollow, _nothing
        unfollow()
        for source, pump in zip(self._sources, self._pumps, strict=True):
            pump.cancel()
            source.subscription.close()

    def __aiter__(self) -> MergedWatch:
        return self

    async def __anext__(self) -> list[Change]:
        while True:
            await asyncio.sleep(0)  # others have their turn between two batches, however many there are
            if self._ended:
                raise StopAsyncIteration
            if self._initial or self._end_of_initial is not None:
                if batch := self._existing():
                    return batch
                continue
            if batch := self._changes():
                return batch
            self._wake.clear()
            await self._wake.wait()

    # what the reader gets

    def _existing(self) -> list[Change]:
        """Yield some of the objects that existed when the watch began; at their end a bookmark, if requested."""
        batch: list[Change] = []
        for _ in range(BATCH):
            if not self._initial:
                break
            self._take_existing(self._initial[0], batch)
        if not self._initial and self._end_of_initial is not None:
            batch.append(self._bookmark(self._end_of_initial))
            self._end_of_initial = None
        return batch

    def _take_existing(self, source: _Source, batch: list[Change]) -> None:
        """To match may mean to parse, so objects are matched one by one as they are sent."""
        if source.existing:
            obj = source.existing.popleft()
            if source.matches is None or source.matches(obj):
                batch.append(self._event(source, Change(ADDED, obj, None)))
            return
        self._initial.popleft()
        if source.position:
            self._versions.set(source.cluster, source.position)

    def _changes(self) -> list[Change]:
        """Yield the changes of the source that has waited longest."""
        if not self._ready:
            return []
        source = self._ready[0]
        batch = [self._event(source, source.waiting.popleft()) for _ in range(min(BATCH, len(source.waiting)))]
        if not source.waiting:
            self._ready.popleft()
            source.taken.set()
        return batch

    def _event(self, source: _Source, change: Change) -> Change:
        entry = change.entry
        self._versions.set(source.cluster, str(entry.revision))
        raw = stamped(entry, source.cluster, self._versions.encode())
        return Change(change.type, Doc(entry.key, entry.namespace, entry.name, entry.revision, raw), None)

    def _bookmark(self, obj: Obj) -> Change:
        metadata = {**obj["metadata"], "resourceVersion": self._versions.encode()}
        return Change(_BOOKMARK, Doc("", "", "", 0, orjson.dumps({**obj, "metadata": metadata})), None)

    # what the sources have

    async def _pump(self, source: _Source) -> None:
        """Hands over one batch at a time: what the reader does not take stays in the buffer of the subscription."""
        try:
            async for batch in source.subscription:
                source.waiting.extend(batch)
                source.taken.clear()
                self._ready.append(source)
                self._wake.set()
                await source.taken.wait()
        finally:
            self._end()

    def _end(self) -> None:
        self._ended = True
        self._wake.set()
