"""Objects of one cluster into one OpenSearch: what is pending is read from the caches and sent in bulk.

While OpenSearch is down, what changed is remembered by names, up to a limit, and beyond it as "everything": then its
documents are compared with the cache. So once it is back, the documents equal the cache, whatever happened meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import orjson

from karmada.kube.objects.clock import Clock
from karmada.kube.objects.doc import Doc
from karmada.kube.runtime.back_off import Attempts, BackOff
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.time_slice import TimeSlice
from karmada.kube.runtime.waiting import cancel_and_wait
from karmada.search.interfaces import Caches, KindCache
from karmada.search.opensearch.documents import document, is_of
from karmada.search.opensearch.routes import Route
from karmada.search.opensearch.store import Action, Store, Unavailable
from karmada.search.pending import Part, Pending, Source
from karmada.search.registries import covers

BATCH: Final = 500
BATCH_BYTES: Final = 4 << 20
MOST_PENDING: Final = 10_000
log = get_logger("search-opensearch")


class Identified(NamedTuple):
    namespace: str
    name: str
    uid: str


class Writer:
    """`routes` are those of this cluster to this OpenSearch, replaced as a whole when they change."""

    def __init__(self, cluster: str, store: Store, caches: Caches, clock: Clock) -> None:
        self._store = store
        self._caches = caches
        self._routes: Mapping[Source, Route] = {}
        self._leaving: dict[Source, Route] = {}
        self._pending: Pending[Identified] = Pending(MOST_PENDING)
        self._attempts = Attempts(clock, BackOff(1.0, 60.0))
        self._down = False
        self._log = log.bind(cluster=cluster, opensearch=str(store.destination))
        self._task: asyncio.Task[None] | None = None
        self._busy = False
        self.refused = 0
        """Objects that are not there for good: OpenSearch refused their documents, or they could not be read."""

    @property
    def waiting(self) -> int:
        """Objects that are not there yet; all of a resource count as one."""
        return len(self._pending)

    @property
    def idle(self) -> bool:
        """Return whether everything was sent."""
        return not self._busy and not len(self._pending)

    def route(self, routes: Mapping[Source, Route]) -> None:
        for source, before in self._routes.items():
            if source not in routes:
                self._leaving[source] = before
                self._pending.everything(source)
        for source, now in routes.items():
            self._leaving.pop(source, None)
            if self._routes.get(source) != now:
                self._pending.everything(source)
        self._routes = dict(routes)
        self._start()

    def note(self, source: Source, namespace: str, name: str, uid: str) -> None:
        route = self._routes.get(source)
        if route is not None and covers(route.namespaces, namespace):
            self._pending.note(source, Identified(namespace, name, uid))

    def compare(self, source: Source) -> None:
        """With a list that was completed."""
        if source in self._routes:
            self._pending.everything(source)

    @property
    def finished(self) -> bool:
        """Return whether nothing is routed here any more, and what was is removed."""
        return self._task is not None and self._task.done()

    async def stop(self) -> None:
        if self._task is not None:
            await cancel_and_wait(self._task)

    def _start(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._work(), name="opensearch")

    # work

    async def _work(self) -> None:
        while self._routes or len(self._pending):
            await self._pending.wait()
            part = self._pending.take(BATCH)
            if part is None:
                continue
            self._busy = True
            try:
                await self._hand_on(part)
                self._is_back()
            except Unavailable as error:
                self._again(part)
                await self._wait_after(str(error))
            except Exception as error:  # noqa: BLE001 - logged; without this task nothing would arrive any more
                self._again(part)
                self._log.exception("Objects could not be handed on and will be tried again", error)
                await self._attempts.pause()
            finally:
                self._busy = False

    async def _hand_on(self, part: Part[Identified]) -> None:
        source = part.source
        if source in self._leaving:
            if await self._remove(source, self._leaving[source], frozenset()):
                self._leaving.pop(source, None)
            else:
                self._pending.everything(source)
            return
        route, cache = self._routes.get(source), self._caches.cache(*source)
        if route is None or cache is None or not cache.synced:
            return  # a cache that comes back, or syncs, is compared as a whole
        if part.keys is None:
            await self._compare(source, route, cache)
        else:
            await self._send(source, await self._changes(source, route, cache, part.keys))

    async def _changes(
        self, source: Source, route: Route, cache: KindCache, keys: Sequence[Identified]
    ) -> list[tuple[Identified, Action]]:
        index = await self._store.ensure(route.kind)
        actions = []
        for key in keys:
            obj = cache.get(key.namespace, key.name)
            if obj is None or obj.uid != key.uid:
                actions.append((key, Action(index, key.uid, None)))
            elif (body := self._encoded(obj, source)) is not None:
                actions.append((key, Action(index, key.uid, body)))
        return actions

    async def _compare(self, source: Source, route: Route, cache: KindCache) -> None:
        """Write all documents anew, and delete those without an object."""
        index = await self._store.ensure(route.kind)
        objects = [obj for obj in cache.list() if covers(route.namespaces, obj.namespace)]
        uids = set()
        turn = TimeSlice()
        batch: list[tuple[Identified, Action]] = []
        for obj in objects:
            key = _identified(obj)
            uids.add(key.uid)
            if (body := self._encoded(obj, source)) is not None:
                batch.append((key, Action(index, key.uid, body)))
            if len(batch) >= BATCH:
                await self._send(source, batch)
                batch = []
            if turn.is_over():
                await turn.next()
        await self._send(source, batch)
        await self._remove(source, route, frozenset(uids))

    def _encoded(self, obj: Doc, source: Source) -> bytes | None:
        """Return None for one that cannot be read: it must not hold up the others."""
        try:
            return orjson.dumps(document(obj.object(), source.cluster))
        except ValueError as error:
            self._lost(str(error), _identified(obj))
            return None

    async def _remove(self, source: Source, route: Route, except_for: frozenset[str]) -> bool:
        """Documents of the source, but for these; False if some were refused for now."""
        index = await self._store.ensure(route.kind)
        gone = [
            uid
            async for uid, fields in self._store.scan(index)
            if uid not in except_for and is_of(fields, source.cluster, source.gvr.group)
        ]
        done = True
        for start in range(0, len(gone), BATCH):
            keys = [Identified("", "", uid) for uid in gone[start : start + BATCH]]
            done &= await self._send(source, [(key, Action(index, key.uid, None)) for key in keys])
        return done

    async def _send(self, source: Source, actions: Sequence[tuple[Identified, Action]]) -> bool:
        """Return what is refused for now is noted again (False); what is refused for good is logged and left out."""
        done = True
        keys = {action.id: key for key, action in actions}
        for batch in _by_size([action for _, action in actions]):
            refused = await self._store.bulk(batch)
            for each in refused:
                if each.again:
                    self._pending.note(source, keys[each.action.id])
                else:
                    self._lost(each.why, keys[each.action.id])
            later = [each for each in refused if each.again]
            if later:
                done = False
                await self._wait_after(later[0].why)
        return done

    def _again(self, part: Part[Identified]) -> None:
        if part.keys is None:
            self._pending.everything(part.source)
        else:
            for key in part.keys:
                self._pending.note(part.source, key)

    # back-off

    async def _wait_after(self, why: str) -> None:
        if not self._down:
            self._down = True
            self._log.error("OpenSearch does not take objects; they are sent when it does", err=why)
        await self._attempts.pause()

    def _is_back(self) -> None:
        """Once nothing is left: a part may have been taken between two that were not."""
        if self._down and not len(self._pending):
            self._down = False
            self._attempts.reset()
            self._log.info("OpenSearch has everything again")

    def _lost(self, why: str, key: Identified) -> None:
        self.refused += 1
        self._log.error("An object does not get into OpenSearch", namespace=key.namespace, name=key.name, err=why)


def _identified(obj: Doc) -> Identified:
    return Identified(obj.namespace, obj.name, obj.uid)


def _by_size(actions: Sequence[Action]) -> Iterator[list[Action]]:
    """Yield requests of limited size; a single document may be larger."""
    batch: list[Action] = []
    size = 0
    for action in actions:
        more = len(action.document or b"")
        if batch and size + more > BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(action)
        size += more
    if batch:
        yield batch
