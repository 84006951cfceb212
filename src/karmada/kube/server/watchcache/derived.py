"""Something made from all objects of a resource, made again only when one of them changed.

Webhook configurations, policies and APIServices are looked at by nearly every request and hardly ever change. Over the
watch cache a look costs a comparison; over any other Reader the names and versions are compared.
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
