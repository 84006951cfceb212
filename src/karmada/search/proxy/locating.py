"""In which cluster an object is: in exactly one, or the request cannot be answered."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from karmada.apiserver.members import plain
from karmada.kube.objects.errors import ApiError, Conflict, NotFound
from karmada.kube.objects.gvk import GVR
from karmada.search.interfaces import Caches, KindCache
from karmada.search.proxy.live import Reads, lookup_error
from karmada.search.registries import covers


class Locating:
    def __init__(self, caches: Caches, live: Reads) -> None:
        self._caches = caches
        self._live = live

    async def holders(self, gvr: GVR, namespace: str, name: str, clusters: Iterable[str]) -> list[str]:
        """Return those of these clusters that have the object, according to their caches."""
        caches = [cache for cluster in clusters if (cache := self._caches.cache(cluster, gvr)) is not None]
        if caches and not name:
            raise plain(f"fail to get {namespace} {name} from {caches[0].cluster}: Name parameter required.")
        found = await asyncio.gather(*(self._has(cache, namespace, name) for cache in caches))
        return [cache.cluster for cache, has in zip(caches, found, strict=True) if has]

    async def _has(self, cache: KindCache, namespace: str, name: str) -> bool:
        if not covers(cache.namespaces, namespace):
            return False
        if cache.synced:
            return cache.get(namespace, name) is not None
        try:
            await self._live.get(cache, namespace, name)
        except NotFound:
            return False
        except ApiError as error:
            raise lookup_error(error, cache.cluster, namespace, name) from error
        return True


def the_one(gvr: GVR, name: str, holders: Sequence[str]) -> str:
    """Return the cluster that has the object; NotFound, Conflict."""
    if not holders:
        raise NotFound.of(gvr.group_resource, name)
    if len(holders) > 1:
        raise Conflict.of(gvr.group_resource, name, f"ambiguous objects in clusters [{', '.join(holders)}]")
    return holders[0]
