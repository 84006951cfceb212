"""The objects of a resource that are in the store only, and how they are loaded when somebody needs all of them.

After a start a server is ready before it has read tens of thousands of objects. Until they are loaded one of them is
read from the store by its key; a list or a watch waits for those of its own resource. They are read in short steps, as
they were at one revision, while others work; writes since then are applied at the end. Whoever cannot wait finishes
what is left at once. Of a resource that is seldom read, pages are read from the store, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from karmada.kube.objects.doc import Doc
from karmada.kube.objects.errors import ServiceUnavailable
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.runtime.time_slice import TimeSlice
from karmada.kube.runtime.waiting import drop_failure
from karmada.kube.server.storage.interface import Compacted, Event, PushStore, StoreDamaged, StoreUnavailable
from karmada.kube.server.watchcache.entry import doc_of, prefix, storage_key, stored_doc

_STEP = 100
"""Objects read in one go: about a millisecond."""


class Unloaded:
    def __init__(
        self,
        store: PushStore,
        resource: GroupResource,
        begin: Callable[[int], None],
        load: Callable[[list[Doc]], None],
        end: Callable[[list[tuple[Event, float]]], None],
    ) -> None:
        """`begin` is called with the revision that objects are read at, `load` with some in key order, then `end`."""
        self._store = store
        self._resource = resource
        self._prefix = prefix(resource)
        self._begin = begin
        self._load = load
        self._end = end
        self._written: list[tuple[Event, float]] = []
        self.steps: Iterator[None] | None = None
        """What is left to do of a load; while there is one, what is written has to be remembered."""
        self._task: asyncio.Task[None] | None = None
        self.damage: StoreDamaged | None = None

    def get(self, namespace: str, name: str) -> Doc | None:
        stored = self._store.peek(storage_key(self._resource, namespace, name))
        return doc_of(*stored) if stored is not None else None

    def has_any(self, namespace: str) -> bool:
        return bool(self._store.scan(prefix(self._resource, namespace), limit=1))

    def page(self, namespace: str, after: str, limit: int, revision: int) -> list[Doc]:
        """Return some objects as they were at a revision, from behind this key, which has no prefix."""
        within = prefix(self._resource, namespace)
        found = self._store.scan(within, after=self._prefix + after, limit=limit, revision=revision)
        return [stored_doc(one) for one in found]

    def has_more_than(self, most: int) -> bool:
        """Return whether there are more objects, or versions of them."""
        return any(size > most for size in self._store.sizes(self._prefix, most + 1).values())

    def write(self, event: Event, time: float) -> None:
        """Remember what is written while objects are loaded."""
        if self.steps is not None:
            self._written.append((event, time))

    async def finish(self) -> None:
        """Until everything is loaded; ServiceUnavailable if the store cannot be read."""
        if self._task is None:
            self._task = asyncio.create_task(self._finish(), name=f"load {self._prefix}")
            self._task.add_done_callback(drop_failure)
        try:
            await asyncio.shield(self._task)  # for all who wait
        except StoreUnavailable as error:
            raise ServiceUnavailable(f"the store cannot be read: {error}", retry_after=1) from error

    async def _finish(self) -> None:
        turn = TimeSlice()
        try:
            while self._step():
                if turn.is_over():
                    await turn.next()
        finally:
            self._task = None

    def finish_now(self) -> None:
        while self._step():
            pass

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _step(self) -> bool:
        """Return whether there is more to load."""
        if self.steps is None:
            self.steps, self.damage = self._read(), None
        try:
            next(self.steps)
        except StopIteration:
            return False
        except BaseException as error:
            self.steps = None  # from the beginning, the next time
            self._written.clear()
            if isinstance(error, StoreDamaged):
                self.damage = error
            raise
        return True

    def _read(self) -> Iterator[None]:
        revision, after = self._store.revision, ""
        self._begin(revision)
        self._written.clear()
        while True:
            try:
                found = self._store.scan(self._prefix, after=after, limit=_STEP, revision=revision)
            except Compacted:  # it took that long
                yield from self._read()
                return
            self._load(list(map(stored_doc, found)))
            if len(found) < _STEP:
                break
            after = found[-1].key
            yield
        self._end(self._written)
