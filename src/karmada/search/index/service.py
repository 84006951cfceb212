"""The index at work: a sink that notes what changed, one task that reads it from the caches, one thread that writes it.

The thread owns the connection to SQLite, which releases the interpreter lock while it works. Changes go to it in small
batches, one at a time, so a search waits for at most one of them. Nothing runs before the first object is cached.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple, TypeVar

import orjson

from karmada.kube.objects.clock import SYSTEM, Clock
from karmada.kube.objects.doc import Doc
from karmada.kube.objects.gvk import GVR
from karmada.kube.runtime.back_off import Attempts, BackOff
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.time_slice import TimeSlice
from karmada.kube.runtime.waiting import cancel_and_wait
from karmada.search.index.database import Database, Named
from karmada.search.index.query import Query
from karmada.search.index.searching import Page, Scope, namespaces, search
from karmada.search.index.terms import Words, words
from karmada.search.interfaces import Caches, KindCache
from karmada.search.pending import Part, Pending, Source

BATCH: Final = 200
MOST_NAMES: Final = 5_000
"""Changed objects of a resource that are noted by name; with more, all of them are looked at."""
_IN_A_ROW: Final = 16
_FILLED_SECONDS: Final = 30.0
_LOOK_SECONDS: Final = 0.1
_START: Final = Named("", "")
log = get_logger("search-index")
T = TypeVar("T")


class Change(NamedTuple):
    """Objects of one source, by their ids: written, and gone."""

    source: Source
    written: Sequence[int]
    gone: Sequence[int]


class SearchIndex:
    """A Sink. `changed` are called with what was indexed, on the event loop."""

    def __init__(self, caches: Caches, clock: Clock = SYSTEM, *, filled: Callable[[], bool] = lambda: True) -> None:
        """Run; `filled`: whether all caches have their objects. Until then they come first, for some time."""
        self._caches = caches
        self._clock = clock
        self._filled = filled
        self._pending: Pending[Named] = Pending(MOST_NAMES)
        self._sources: set[Source] = set()
        self._thread: ThreadPoolExecutor | None = None
        self._database: Database | None = None
        self._working: asyncio.Task[None] | None = None
        self._busy = False
        self.changed: list[Callable[[Change], None]] = []

    @property
    def indexing(self) -> bool:
        """Return whether what a search finds lags behind the caches."""
        return self._busy or len(self._pending) > 0

    @property
    def waiting(self) -> int:
        """Objects that changed and are not indexed yet; all of a resource count as one."""
        return len(self._pending)

    # the sink

    def upsert(self, cluster: str, gvr: GVR, obj: Doc) -> None:
        self._note(Source(cluster, gvr), Named(obj.namespace, obj.name))

    def delete(self, cluster: str, gvr: GVR, namespace: str, name: str, uid: str) -> None:  # noqa: ARG002 - the name is enough
        self._note(Source(cluster, gvr), Named(namespace, name))

    def replaced(self, cluster: str, gvr: GVR) -> None:
        self._note(Source(cluster, gvr))

    def forget(self, cluster: str, gvr: GVR | None = None) -> None:
        for source in list(self._sources):
            if source.cluster == cluster and gvr in (None, source.gvr):
                self._note(source)

    def _note(self, source: Source, named: Named | None = None) -> None:
        if named is None:
            self._pending.everything(source)
        else:
            self._pending.note(source, named)
        self._sources.add(source)
        if self._working is None:
            self._working = asyncio.get_running_loop().create_task(self._work(), name="search index")

    # searches

    async def sources(self) -> dict[int, tuple[Source, str]]:
        return await self._run(Database.sources) if self._database else {}

    async def search(self, query: Query, scope: Scope, ids: Sequence[int] | None = None) -> Page:
        return await self._run(lambda database: search(database, query, scope, ids)) if scope else Page((), None)

    async def namespaces(self, query: Query, sources: Sequence[int]) -> list[tuple[int, str]]:
        return await self._run(lambda database: namespaces(database, query, sources)) if sources else []

    async def stop(self) -> None:
        if self._working is not None:
            await cancel_and_wait(self._working)
        if self._thread is not None:
            if self._database is not None:
                await self._run(Database.close)
            self._thread.shutdown()

    async def _run(self, work: Callable[[Database], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._on_thread, work)

    def _on_thread(self, work: Callable[[Database], T]) -> T:
        if self._database is None:
            self._database = Database()
        return work(self._database)

    # indexing

    async def _work(self) -> None:
        self._thread = ThreadPoolExecutor(1, "search-index")
        attempts = Attempts(self._clock, BackOff(1.0, 60.0))
        await self._until_filled()
        while True:
            await self._pending.wait()
            part = self._pending.take(BATCH)
            if part is None:
                continue
            self._busy = True
            try:
                await self._index(part)
            except Exception as error:
                log.exception(
                    "Objects could not be indexed and will be tried again", error, cluster=part.source.cluster
                )
                await attempts.pause()
                self._pending.everything(part.source)
            finally:
                self._busy = False

    async def _until_filled(self) -> None:
        """At the start both take all there is of a core, and more wait for the lists than for the index."""
        patience = self._clock.monotonic() + _FILLED_SECONDS
        while not self._filled() and self._clock.monotonic() < patience:
            await self._clock.sleep(_LOOK_SECONDS)

    async def _index(self, part: Part[Named]) -> None:
        cache = self._caches.cache(*part.source)
        if cache is None:
            if part.keys is None:
                self._sources.discard(part.source)
                await self._remove_others(part.source, "", lambda _named: False)
        elif cache.synced:
            await self._read(part, cache)

    async def _read(self, part: Part[Named], cache: KindCache) -> None:
        kind = cache.kind.gvk.kind
        if part.keys is not None:
            found = {named: cache.get(*named) for named in part.keys}
            gone = [named for named, obj in found.items() if obj is None]
            await self._apply(part.source, kind, [obj for obj in found.values() if obj is not None], gone)
            return
        objects = cache.list()
        for start in range(0, len(objects), BATCH):
            await self._apply(part.source, kind, objects[start : start + BATCH], ())
        await self._remove_others(part.source, kind, lambda named: cache.get(*named) is not None)

    async def _remove_others(self, source: Source, kind: str, stays: Callable[[Named], bool]) -> None:
        after = _START
        while names := await self._run(lambda database, after=after: database.names(source, after, BATCH)):  # type: ignore[misc]
            gone = [named for named in names if not stays(named)]
            if gone:
                await self._apply(source, kind, (), gone)
            after = names[-1]

    async def _apply(self, source: Source, kind: str, objects: Sequence[Doc], gone: Iterable[Named]) -> None:
        turn = TimeSlice()
        raw: list[tuple[Named, bytes]] = []
        for obj in objects:
            raw.append((Named(obj.namespace, obj.name), obj.raw))  # here: caches compress objects on this thread
            if turn.is_over():
                await turn.next()
        written, removed = await self._run(
            lambda database: database.apply(source, kind, _read_words(raw, source.cluster), gone)
        )
        change = Change(source, written, removed)
        for call in self.changed:
            call(change)


def _read_words(raw: Iterable[tuple[Named, bytes]], cluster: str) -> list[tuple[Named, Words]]:
    """Lets go of the interpreter lock now and then: the event loop would wait for it 5 ms at a time."""
    found = []
    for number, (named, body) in enumerate(raw):
        if number % _IN_A_ROW == 0:
            time.sleep(0)
        try:
            found.append((named, words(orjson.loads(body), cluster)))
        except (ValueError, TypeError, AttributeError) as error:
            log.error("An object cannot be read and is found by its name only", error, cluster=cluster, name=named.name)
            found.append((named, Words(named.name, "", "", "", f"{named.namespace} {cluster}", "", "")))
    return found
