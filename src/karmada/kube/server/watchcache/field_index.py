"""Objects of a resource by the value of one of their fields, for field selectors that many clients use.

The index follows the changes that its collection remembers, when somebody looks: a look costs what has changed since
the last one. After a gap it is made again from all objects. `follow` does that with pauses for others, and leaves
little for a look that comes after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from karmada.kube.objects.doc import Doc
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.time_slice import in_slices
from karmada.kube.server.watchcache.collection import Collection
from karmada.kube.server.watchcache.derived import NewChanges
from karmada.kube.server.watchcache.entry import DELETED, Change


class FieldIndex:
    def __init__(self, collection: Collection, value_of: Callable[[Obj], str]) -> None:
        self._collection = collection
        self._new = NewChanges(collection)
        self._value_of = value_of
        self._values: dict[tuple[str, str], str] = {}
        """Values by namespace and name."""
        self._entering: Iterator[None] | None = None
        self._having: dict[str, set[tuple[str, str]]] = {}

    async def follow(self) -> None:
        """Do what a look has to do first, with pauses for others."""
        async for _ in in_slices(self._steps()):
            pass

    def find(self, value: str) -> list[Doc]:
        """Return the objects that have the value now, in the order of lists."""
        for _ in self._steps():
            pass
        found = (self._collection.get(*where) for where in sorted(self._having.get(value, ())))
        return [entry for entry in found if entry is not None]

    def _steps(self) -> Iterator[None]:
        """Yield the steps until the index is up to date, which are shared by all who take them at the same time."""
        while True:
            if self._entering is None:
                changes = self._new.take()
                if changes is not None and not changes:
                    return
                self._entering = self._enter(changes)
            try:
                next(self._entering)
            except StopIteration:
                self._entering = None
            except BaseException:
                self._entering, self._new = None, NewChanges(self._collection)
                raise
            yield

    def _enter(self, changes: Iterable[Change] | None) -> Iterator[None]:
        """Take the changes into the index; with None, make it again."""
        if changes is None:
            self._values.clear()
            self._having.clear()
            for entry in self._collection.list():
                self._put(entry)
                yield
            return
        for change in changes:
            self._drop(change.entry)
            if change.type != DELETED:
                self._put(change.entry)
            yield

    def _put(self, entry: Doc) -> None:
        where = (entry.namespace, entry.name)
        value = self._values[where] = self._value_of(entry.object())
        self._having.setdefault(value, set()).add(where)

    def _drop(self, entry: Doc) -> None:
        where = (entry.namespace, entry.name)
        value = self._values.pop(where, None)
        if value is not None:
            having = self._having[value]
            having.discard(where)
            if not having:
                del self._having[value]
