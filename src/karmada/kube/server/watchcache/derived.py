"""What is derived from all objects of a resource: made again only when one of them changed, or by what has changed.

Webhook configurations, policies and APIServices are looked at by nearly every request and hardly ever change. Over the
watch cache a look costs a comparison; over any other Reader the names and versions are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from karmada.kube.kinds.resource import Reader
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.types import Obj
from karmada.kube.server.watchcache.cache import Cache
from karmada.kube.server.watchcache.collection import Collection
from karmada.kube.server.watchcache.entry import Change

T = TypeVar("T")


class Followed(Generic[T]):
    def __init__(self, reader: Reader, resource: GroupResource, make: Callable[[list[Obj]], T]) -> None:
        self._reader = reader
        self._resource = resource
        self._make = make
        self._seen: object = None
        self.sources = (reader.collection(resource),) if isinstance(reader, Cache) else ()
        """Where changes show; nowhere over another Reader."""
        self.generation = 0
        """Rises whenever the value was made again."""

    def get(self) -> T:
        objects: list[Obj] | None = None
        if self.sources:
            seen: object = self.sources[0].generation
        else:
            objects = self._reader.list(self._resource)
            seen = tuple((o["metadata"]["name"], o["metadata"].get("resourceVersion")) for o in objects)
        if seen != self._seen:
            self._seen = seen
            self._value = self._make(self._reader.list(self._resource) if objects is None else objects)
            self.generation += 1
        return self._value


class NewChanges:
    """Gives the changes of a collection since they were last taken."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._taken: tuple[int, int] | None = None
        """How often the collection was reset, and its last change, when they were last taken."""

    def take(self) -> Sequence[Change] | None:
        """Return them, oldest first; None for the first time and after a gap, when anything may have changed."""
        collection, taken = self._collection, self._taken
        now = self._taken = (collection.resets, collection.changed)
        if taken == now:
            return ()
        return collection.changes_since(taken[1]) if taken is not None and taken[0] == now[0] else None
