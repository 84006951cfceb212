"""Something made from all objects of a resource, made again only when one of them changed.

Webhook configurations, policies and APIServices are looked at by nearly every request and hardly ever change. Over the
watch cache a look costs two comparisons; over any other Reader the names and versions are compared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from karmada.kube.kinds.resource import Reader
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.types import Obj
from karmada.kube.server.watchcache.cache import Cache

T = TypeVar("T")


class Followed(Generic[T]):
    def __init__(self, reader: Reader, resource: GroupResource, make: Callable[[list[Obj]], T]) -> None:
        self._reader = reader
        self._resource = resource
        self._make = make
        self._seen: object = None
        self._changed, self._resets = -1, -1
        self._collection = reader.collection(resource) if isinstance(reader, Cache) else None
        self.generation = 0
        """Rises whenever the value was made again."""

    def get(self) -> T:
        collection = self._collection
        if collection is None:
            self._follow_reader()
        elif collection.changed != self._changed or collection.resets != self._resets:
            self._changed, self._resets = collection.changed, collection.resets
            self._remake(self._reader.list(self._resource))
        return self._value

    def _follow_reader(self) -> None:
        objects = self._reader.list(self._resource)
        version = tuple((o["metadata"]["name"], o["metadata"].get("resourceVersion")) for o in objects)
        if version != self._seen:
            self._seen = version
            self._remake(objects)

    def _remake(self, objects: list[Obj]) -> None:
        self._value = self._make(objects)
        self.generation += 1
