"""The watch cache: all objects in memory, always current, and the source of every watch.

It loads the store at a revision a little in the past and follows it from there, so that even right after a restart
clients can go on watching from where they were. A store inside this process notifies the cache of a write before the
write returns: a client reads its own writes without waiting. Of such a store only small resources are loaded at the
start, and each large one when somebody needs all of it (unloaded.py). A remote store is followed by a task; readers
that must not see less than a revision use `wait_for`. If a remote store has compacted what the cache missed, the cache
loads everything anew and ends all watches; their clients then learn that they are too late.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import logging
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Sequence

from karmada.kube.objects.clock import Clock
from karmada.kube.objects.doc import Compressor, Doc
from karmada.kube.objects.errors import ServiceUnavailable
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.time_slice import in_slices
from karmada.kube.server.storage.interface import (
    Compacted,
    Event,
    Progress,
    PushStore,
    Store,
    StoreUnavailable,
)
from karmada.kube.server.watchcache.collection import Collection, History
from karmada.kube.server.watchcache.entry import encode_value, prefix, split_key, storage_key, stored_doc
from karmada.kube.server.watchcache.subscription import Subscription

__all__ = ["Cache", "Collection", "Subscription", "encode_value", "prefix", "storage_key"]

_PAGE = 5_000
_SMALL = 1_000
"""A resource with no more objects (and versions of them) is loaded at the start."""
_TRIM_SECONDS = 60.0
_RETRY_SECONDS = 1.0
_FRESH_SECONDS = 3.0
_NOWHERE = "\0"  # no key starts with it; reading there returns the store's revision
log = logging.getLogger(__name__)


class Cache:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        keep: History = History(),  # noqa: B008 - it cannot be changed
        *,
        scope: str = "",
        small: int = _SMALL,
        seldom_read: Callable[[GroupResource], bool] = lambda _resource: False,
    ) -> None:
        """`scope` is what all keys begin with that concern this cache.

        Of a store inside this process, resources with more than `small` objects are loaded when they are needed, and
        those that are `seldom_read` are in memory only while they are.
        """
        self._seldom_read = seldom_read
        self._small = small
        self._scope = scope
        self._keep = keep
        self.revision = 0
        """The last revision that is applied."""
        self.started_at = 0
        """Revision of the start: what is newer was written since then."""
        self.store = store
        self._clock = clock
        self._floor = 0
        self._pushed = isinstance(store, PushStore)
        self._collections: dict[GroupResource, Collection] = {}
        self._waiters: list[tuple[int, int, asyncio.Future[None]]] = []
        self._order = itertools.count()
        self._stop_listening: Callable[[], None] = lambda: None
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Load the store and follow it; returns when the cache is as current as the store was at the call."""
        self._loop = asyncio.get_running_loop()
        await self._load()
        if isinstance(self.store, PushStore):
            while self.revision < self.store.revision:
                until = self.store.revision
                self._apply(await self.store.history(self._scope, since=self.revision, until=until))
                self._advance(until)
            self._stop_listening = self.store.listen(self._apply)  # nothing suspended since the comparison
        else:
            latest = self._latest_seen
            self._tasks.append(asyncio.create_task(self._follow(self.store)))
            await self._reach(latest)
        self.started_at = self.revision
        self._tasks.append(asyncio.create_task(self._trim()))

    async def stop(self) -> None:
        self._stop_listening()
        for collection in self._collections.values():
            collection.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        self.end_watches()

    def end_watches(self) -> None:
        """End every watch: the watchers have to resume, elsewhere or later."""
        for collection in self._collections.values():
            collection.end_watches()

    # Reading

    def count(self, resource: GroupResource) -> int:
        """Return how many objects of a resource are in memory, in all namespaces."""
        found = self._collections.get(resource)
        return 0 if found is None else found.count

    def collection(self, resource: GroupResource) -> Collection:
        found = self._collections.get(resource)
        if found is None:
            found = Collection(resource, self.store, self, self._floor, self._keep)
            self._collections[resource] = found
            if self._seldom_read(resource) and isinstance(self.store, PushStore):  # rarely compared: protocols are slow
                found.unload(self.store, seldom_read=True)
        return found

    async def fresh(self, timeout: float = _FRESH_SECONDS) -> bool:
        """Wait until everything that is acknowledged to anybody by now is here; False if that takes too long."""
        if self._pushed:
            return True
        try:
            latest = (await self.store.range(_NOWHERE, limit=1)).revision
        except StoreUnavailable as e:
            raise ServiceUnavailable(f"the store cannot be read: {e}", retry_after=1) from e
        return await self.wait_for(latest, timeout)

    async def catch_up(self) -> bool:
        """Return whether something came that was not here before, now that everything acknowledged anywhere is."""
        if self._pushed:
            return False
        before = self.revision
        await self.fresh()
        return self.revision > before

    async def reach_conflict(self, revision: int, timeout: float) -> bool:
        """Have what a write conflicted with: its revision, or (0) that the key is gone."""
        return await (self.wait_for(revision, timeout) if revision else self.fresh(timeout))

    @property
    def alive(self) -> bool:
        """Return whether it follows the store, and all that was needed of it could be read."""
        unloaded = (collection.unloaded for collection in self._collections.values())
        damaged = any(one is not None and one.damage for one in unloaded)
        return not damaged and not any(task.done() for task in self._tasks)

    async def wait_for(self, revision: int, timeout: float) -> bool:
        """Return whether the cache has reached the revision, waiting for it at most this long."""
        if self.revision >= revision:
            return True
        reached = asyncio.ensure_future(self._reach(revision))
        deadline = asyncio.ensure_future(self._clock.sleep(timeout))
        try:
            await asyncio.wait((reached, deadline), return_when=asyncio.FIRST_COMPLETED)
        finally:
            reached.cancel()
            deadline.cancel()
        return self.revision >= revision

    async def _reach(self, revision: int) -> None:
        if self.revision < revision:
            waiter: asyncio.Future[None] = self._loop.create_future()
            entry = (revision, next(self._order), waiter)
            heapq.heappush(self._waiters, entry)
            try:
                await waiter
            except asyncio.CancelledError:
                if entry in self._waiters:
                    self._waiters.remove(entry)
                    heapq.heapify(self._waiters)
                raise

    # Loading

    async def _load(self) -> None:
        """Replace the whole content by the store's, in one step for readers, and end all watches."""
        newest = await self.store.range(_NOWHERE, limit=1)
        self._latest_seen = newest.revision
        base = max(min(newest.revision, 1), self.store.earlier(newest.revision, self._keep.look_back))
        while True:
            try:
                entries = await self._read(base)
                break
            except Compacted as e:
                base = e.revision
        for collection in self._collections.values():
            collection.reset(base)
        self._floor = base
        for resource, some in itertools.groupby(entries, key=lambda entry: split_key(entry.key).resource):
            self.collection(resource).load(list(some))
        self._advance(base)

    async def _read(self, revision: int) -> Sequence[Doc]:
        store = self.store
        return await self._read_all(revision) if not isinstance(store, PushStore) else self._read_small(store, revision)

    def _read_small(self, store: PushStore, revision: int) -> Sequence[Doc]:
        """Return what is small; the rest is unloaded. Compacted also when everything is."""
        entries = [stored_doc(one) for one in store.scan(_NOWHERE, limit=1, revision=revision)]
        for start, size in store.sizes(self._scope, self._small + 1).items():
            collection = self.collection(split_key(start).resource)
            if size > self._small:
                collection.unload(store)
            if collection.unloaded is None and revision:
                entries += map(stored_doc, store.scan(start, revision=revision))
        return entries

    async def _read_all(self, revision: int) -> Sequence[Doc]:
        """Squeezed on the way: all of them at once, as they are stored, take many times the memory they take later."""
        entries: deque[Doc] = deque()
        compressors: defaultdict[GroupResource, Compressor] = defaultdict(Compressor)
        after, remaining = "", revision  # nothing is written before the first revision
        while remaining:
            page = await self.store.range(self._scope, after=after, limit=_PAGE, revision=revision)
            for stored in page.items:
                entry = stored_doc(stored)
                entries.append(entry)
                compressors[split_key(entry.key).resource].add(entry)
            remaining = page.remaining
            after = page.items[-1].key if page.items else ""
        return entries

    # Following

    def _apply(self, events: list[Event]) -> None:
        now = self._clock.monotonic()
        start, idle = "", None
        for event in events:
            if idle is not None and event.key.startswith(start):
                idle.changed = event.revision
                idle.generation += 1
                continue
            parts = split_key(event.key)
            collection = self.collection(parts.resource)
            if collection.unloaded is not None and collection.is_idle:  # as those of the Events that follow
                start, idle = prefix(parts.resource), collection
                collection.changed = event.revision
                collection.generation += 1
                continue
            collection.apply(event, parts, now)
        if events:
            self._advance(events[-1].revision)

    def _advance(self, revision: int) -> None:
        self.revision = revision
        while self._waiters and self._waiters[0][0] <= revision:
            _, _, waiter = heapq.heappop(self._waiters)
            if not waiter.done():
                waiter.set_result(None)

    async def _follow(self, store: Store) -> None:
        while True:
            try:
                async for events in store.watch(self._scope, since=self.revision):
                    self._apply(events)
                    if isinstance(events, Progress):
                        self._advance(events.revision)
            except Compacted:
                log.warning("the store has compacted what came after revision %d; loading it anew", self.revision)
                await self._reload()
            except StoreUnavailable as e:
                log.warning("lost the store, trying again: %s", e)
                await self._clock.sleep(_RETRY_SECONDS)
            except Exception:
                log.exception("cannot follow the store; loading it anew")
                await self._clock.sleep(_RETRY_SECONDS)
                await self._reload()

    async def _reload(self) -> None:
        try:
            await self._load()
        except StoreUnavailable as e:
            log.warning("could not load the store, trying again: %s", e)
            await self._clock.sleep(_RETRY_SECONDS)

    async def _trim(self) -> None:
        while True:
            await self._clock.sleep(_TRIM_SECONDS)
            now = self._clock.monotonic()
            for collection in self._collections.values():
                collection.trim(now)

    # The Reader of admission and strategies

    def get(self, resource: GroupResource, namespace: str, name: str) -> Obj | None:
        entry = self.collection(resource).get(namespace, name)
        return entry.object() if entry is not None else None

    def list(self, resource: GroupResource, namespace: str = "") -> list[Obj]:
        return [entry.object() for entry in self.collection(resource).list(namespace)]

    async def scan(self, resource: GroupResource, namespace: str = "") -> AsyncIterator[Obj]:
        collection = self.collection(resource)
        await collection.loaded()
        async for entry in in_slices(collection.list(namespace)):
            yield entry.object()
