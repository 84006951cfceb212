"""Conversion between the version of a request and the version that is stored.

Most kinds have one version and pass through untouched. Others convert by a function (HPA, Event, custom resources
with conversion None) or, for custom resources with a conversion webhook, by an awaited batch call.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import orjson

from karmada.kube.kinds.resource import Resource
from karmada.kube.objects.doc import Doc
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.time_slice import in_slices


class Versions:
    def same(self, resource: Resource) -> bool:
        """Return whether stored objects are served as they are."""
        return resource.from_storage is None and resource.convert is None

    def presenter(self, resource: Resource) -> Callable[[Obj], Obj]:
        """For field selectors: the request's version of a stored object, without awaiting."""
        return resource.from_storage or (lambda obj: obj)

    async def present(self, resource: Resource, entries: list[Doc]) -> list[Obj]:
        """Return the objects in the request's version; shared where nothing had to be converted."""
        objects: list[Obj] = [entry.object() async for entry in in_slices(entries)]
        if resource.convert is not None:
            return await self.converter(resource)(objects)
        read = resource.from_storage
        return objects if read is None else [read(obj) async for obj in in_slices(objects)]

    def converter(self, resource: Resource) -> Callable[[list[Obj]], Awaitable[list[Obj]]]:
        async def convert(objects: list[Obj]) -> list[Obj]:
            if resource.convert is not None:
                objects = await resource.convert(objects, resource.gvk.api_version)
            if resource.from_storage is not None:
                read = resource.from_storage
                objects = [read(obj) async for obj in in_slices(objects)]
            return objects

        return convert

    async def fresh(self, resource: Resource, entry: Doc) -> Obj:
        """Return a private copy in the request's version, to be changed."""
        obj: Obj = orjson.loads(entry.raw)
        if self.same(resource):
            return obj
        [converted] = await self.converter(resource)([obj])
        return converted

    def stores_as_it_is(self, resource: Resource) -> bool:
        """Return whether objects are stored in the request's version."""
        return resource.to_storage is None and (resource.convert is None or resource.gvk == resource.storage)

    async def store(self, resource: Resource, obj: Obj) -> Obj:
        """Return the object in the version that is stored."""
        if resource.convert is not None and resource.gvk != resource.storage:
            [obj] = await resource.convert([obj], resource.storage.api_version)
        return resource.to_storage(obj) if resource.to_storage is not None else obj
