"""Reads from members themselves, where a cache would not do: the latest state, pages, and caches that have not synced.

They use the credentials of the cluster's secretRef, as the caches do; what the caller may read was decided before. A
member that requests a retry requests it from the caller: nobody can make us wait in its place, with others behind it.
Items stay the bytes that the member sent, in the form in which objects are cached.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple, Protocol

import msgspec

from karmada.apiserver.members import plain
from karmada.kube.client.client import resource_path
from karmada.kube.client.limits import LIST_BYTES
from karmada.kube.client.transport import Call, ConnectionFailed
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvk import GVK
from karmada.members.access import NoAccess
from karmada.search.cached_object import Form, marked
from karmada.search.interfaces import Caches, KindCache
from karmada.search.proxy.reaching import reach

AT_ONCE: Final = 16
"""Reads for callers that a member has at a time: the caches and the reviews of rights share its client with them."""


class Page(NamedTuple):
    """A part of a member's list: objects that are marked with their cluster, and where it goes on."""

    items: list[bytes]
    version: str
    token: str = ""
    remaining: int | None = None


class Reads(Protocol):
    async def get(self, cache: KindCache, namespace: str, name: str, version: str = "") -> bytes: ...

    async def page(self, cache: KindCache, namespace: str, query: Mapping[str, str]) -> Page: ...


class _ListMeta(msgspec.Struct, rename={"version": "resourceVersion", "token": "continue"}):
    version: str = ""
    token: str = ""
    remainingItemCount: int | None = None  # noqa: N815 - the API's name


class _List(msgspec.Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


class _Place(msgspec.Struct):
    namespace: str = ""


class _Placed(msgspec.Struct):
    metadata: _Place


_list = msgspec.json.Decoder(_List).decode
_placed = msgspec.json.Decoder(_Placed).decode
_form = lru_cache(maxsize=256)(Form)


class Live:
    def __init__(self, caches: Caches) -> None:
        self._caches = caches
        self._turns: dict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(AT_ONCE))

    async def get(self, cache: KindCache, namespace: str, name: str, version: str = "") -> bytes:
        """Return the object as the member has it; its error if it has none."""
        query = {"resourceVersion": version} if version else {}
        path = resource_path(cache.kind.gvr, namespace, name)
        body = await self._body(cache, Call("GET", path, query, retried=False))
        return _form(cache.kind.gvk).normal(body)

    async def page(self, cache: KindCache, namespace: str, query: Mapping[str, str]) -> Page:
        """Return a list of a namespace ("" is all), limited to what is cached of the cluster."""
        where = reach(cache.namespaces, namespace)
        if where is None:
            return Page([], cache.resource_version)
        path = resource_path(cache.kind.gvr, where.namespace)
        body = await self._body(cache, Call("GET", path, query, most=LIST_BYTES, retried=False))
        try:
            listed = _list(body)
        except msgspec.DecodeError as error:
            raise plain(f"cluster {cache.cluster} responded with what is no list: {error}") from error
        items = _normal(listed.items or (), cache.kind.gvk, cache.cluster)
        if where.filtered:
            items = [item for item in items if _placed(item).metadata.namespace in cache.namespaces]
        meta = listed.metadata
        return Page(items, meta.version, meta.token, meta.remainingItemCount)

    async def _body(self, cache: KindCache, call: Call) -> bytes:
        try:
            transport = self._caches.client(cache.cluster).transport
            async with self._turns[cache.cluster]:
                return await transport.body(call)
        except (ConnectionFailed, NoAccess) as error:
            raise plain(f"cluster {cache.cluster} cannot be read: {error}") from error


def _normal(items: list[msgspec.Raw] | tuple[()], gvk: GVK, cluster: str) -> list[bytes]:
    form = _form(gvk)
    return [marked(form.normal(memoryview(item)), cluster) for item in items]


def lookup_error(error: ApiError, cluster: str, namespace: str, name: str) -> ApiError:
    """Return the error for an object that could not be looked for in a cluster: where it is remains unknown."""
    return plain(f"fail to get {namespace} {name} from {cluster}: {error}")
