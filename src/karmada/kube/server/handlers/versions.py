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
from karmada.kube.server.http.results import ObjectResult


def same(resource: Resource) -> bool:
    """Return whether stored objects are served as they are."""
    return resource.from_storage is None and resource.convert is None


def presenter(resource: Resource) -> Callable[[Obj], Obj]:
    """For field selectors: the request's version of a stored object, without awaiting."""
    return resource.from_storage or (lambda obj: obj)


async def present(resource: Resource, entries: list[Doc]) -> list[Obj]:
    """Return the objects in the request's version; shared where nothing had to be converted."""
    objects: list[Obj] = [entry.object() async for entry in in_slices(entries)]
    return objects if same(resource) else await converter(resource)(objects)


async def shown(resource: Resource, entry: Doc, status: int = 200) -> ObjectResult:
    """Return a stored object as the result of a request."""
    if resource.from_storage is None and resource.convert is None:
        return ObjectResult(entry=entry, status=status, resource=resource)
    [obj] = await present(resource, [entry])
    return ObjectResult(obj=obj, status=status, resource=resource)


def converter(resource: Resource) -> Callable[[list[Obj]], Awaitable[list[Obj]]]:
    async def convert(objects: list[Obj]) -> list[Obj]:
        if resource.convert is not None:
            objects = await resource.convert(objects, resource.api_version)
        if resource.from_storage is not None:
            read = resource.from_storage
            objects = [read(obj) async for obj in in_slices(objects)]
        return objects

    return convert


async def fresh(resource: Resource, entry: Doc) -> Obj:
    """Return a private copy in the request's version, to be changed."""
    obj: Obj = orjson.loads(entry.raw)
    if same(resource):
        return obj
    [converted] = await converter(resource)([obj])
    return converted


async def store(resource: Resource, obj: Obj) -> Obj:
    """Return the object in the version that is stored."""
    if resource.convert is not None and resource.gvk != resource.storage:
        [obj] = await resource.convert([obj], resource.storage.api_version)
    return resource.to_storage(obj) if resource.to_storage is not None else obj
