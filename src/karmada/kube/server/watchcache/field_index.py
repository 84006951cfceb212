"""Objects of a resource by the value of one of their fields, for field selectors that many clients use.

The index follows the changes that its collection remembers, when somebody looks: a look costs what has changed since
the last one. After a gap it is made again from all objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from karmada.kube.objects.doc import Doc
from karmada.kube.objects.types import Obj
from karmada.kube.server.watchcache.collection import Collection
from karmada.kube.server.watchcache.entry import DELETED
from karmada.kube.server.watchcache.new_changes import NewChanges


class FieldIndex:
    def __init__(self, collection: Collection, value_of: Callable[[Obj], str]) -> None:
        self._collection = collection
        self._new = NewChanges(collection)
        self._value_of = value_of
        self._values: dict[tuple[str, str], str] = {}
        """By namespace and name."""
        self._having: dict[str, set[tuple[str, str]]] = {}

    def find(self, value: str) -> list[Doc]:
        """Those that have it now, in the order of lists."""
        self._follow()
        found = (self._collection.get(*where) for where in sorted(self._having.get(value, ())))
        return [entry for entry in found if entry is not None]

    def _follow(self) -> None:
        changes = self._new.take()
        if changes is None:
            self._make_again(self._collection.list())
            return
        for change in changes:
            self._drop(change.entry)
            if change.type != DELETED:
                self._put(change.entry)

    def _make_again(self, entries: Iterable[Doc]) -> None:
        self._values.clear()
        self._having.clear()
        for entry in entries:
            self._put(entry)

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
