"""Objects of one resource in list order.

They lie by namespace: a dict for lookups and the sorted names for lists. Sorting namespaces as `namespace + "/"` and
names within them gives the byte order of the whole keys, the order in which the store pages.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from itertools import groupby
from operator import attrgetter

from karmada.kube.objects.doc import Doc
from karmada.kube.server.watchcache.entry import split_key


class SortedObjects:
    def __init__(self) -> None:
        self.count = 0
        self._objects: dict[str, dict[str, Doc]] = {}
        self._names: dict[str, list[str]] = {}
        self._namespaces: list[str] = []
        """Each with a slash behind it."""

    def get(self, namespace: str, name: str) -> Doc | None:
        objects = self._objects.get(namespace)
        return None if objects is None else objects.get(name)

    def has_any(self, namespace: str) -> bool:
        return namespace in self._objects

    def put(self, doc: Doc) -> None:
        namespace, name = doc.namespace, doc.name
        objects = self._objects.get(namespace)
        if objects is None:
            objects = self._add(namespace)
        if name not in objects:
            insort(self._names[namespace], name)
            self.count += 1
        objects[name] = doc

    def append(self, docs: Iterable[Doc]) -> None:
        """Add objects that come in key order and after all others."""
        for namespace, some in groupby(docs, attrgetter("namespace")):
            objects = self._objects.get(namespace)
            if objects is None:
                objects = self._add(namespace)
            names = self._names[namespace]
            for doc in some:
                objects[doc.name] = doc
                names.append(doc.name)
                self.count += 1

    def remove(self, namespace: str, name: str) -> None:
        objects, names = self._objects[namespace], self._names[namespace]
        if objects.pop(name, None) is None:
            return
        del names[bisect_left(names, name)]
        self.count -= 1
        if not objects:
            del self._objects[namespace], self._names[namespace]
            del self._namespaces[self._position(namespace)]

    def clear(self) -> None:
        self._objects.clear()
        self._names.clear()
        self._namespaces.clear()
        self.count = 0

    def page(self, namespace: str, after: str, limit: int) -> tuple[list[Doc], int]:
        """Return at most `limit` objects whose keys come after this one, and how many there are behind those.

        The others are not looked at: a list that is read in pages must not cost its length for each page.
        """
        last = split_key(after)
        found: list[Doc] = []
        behind = 0
        for one in self._from(namespace, last.namespace):
            names = self._names[one]
            start = bisect_right(names, last.name) if one == last.namespace else 0
            end = min(len(names), start + limit - len(found))
            found += map(self._objects[one].__getitem__, names[start:end])
            behind += len(names) - end
        return found, behind

    def _from(self, namespace: str, first: str) -> Iterable[str]:
        """Return this namespace, if it has objects; with "" all of them, beginning with the first."""
        if namespace:
            return (namespace,) if namespace in self._objects else ()
        return (one[:-1] for one in self._namespaces[self._position(first) :])

    def _position(self, namespace: str) -> int:
        return bisect_left(self._namespaces, namespace + "/")

    def _add(self, namespace: str) -> dict[str, Doc]:
        insort(self._namespaces, namespace + "/")
        self._names[namespace] = []
        objects = self._objects[namespace] = {}
        return objects

    def list(self, namespace: str = "") -> list[Doc]:
        """Return the objects of a namespace, or with "" of all (and of a cluster-scoped resource)."""
        found: list[Doc] = []
        for one in self._from(namespace, namespace):
            found += map(self._objects[one].__getitem__, self._names[one])
        return found
