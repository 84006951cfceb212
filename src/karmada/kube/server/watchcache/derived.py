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
        self._collection = reader.collection(resource) if isinstance(reader, Cache) else None
        self.generation = 0
        """Rises whenever the value was made again."""

    def _version(self) -> object:
        if self._collection is not None:
            return self._collection.changed, self._collection.count
        objects = self._reader.list(self._resource)
        return tuple((o["metadata"]["name"], o["metadata"].get("resourceVersion")) for o in objects)

    def get(self) -> T:
        version = self._version()
        if version != self._seen:
            self._value = self._make(self._reader.list(self._resource))
            self._seen = version
            self.generation += 1
        return self._value
