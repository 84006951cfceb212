"""Addresses that several servers give out from one range: each is claimed in the store before it is used.

A claim is a key named after the address, made by compare-and-swap, that says which Service it is for and when it was
made. Of two servers that choose the same address at the same moment one gets the claim, the other chooses again. A
claim whose Service does not exist was left by a write that failed (or by a deletion); once it is older than any write
can take, it may be taken over, and `sweep` removes it.
"""

from __future__ import annotations

from karmada.kube.objects.clock import Clock
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.times import parse_time, rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.server.storage.interface import RevisionConflict
from karmada.kube.server.watchcache.cache import Cache
from karmada.kube.server.watchcache.entry import doc_of, encode_value, prefix, storage_key

CLAIMS = GroupResource("internal", "claims")
SERVICES = GroupResource("", "services")
STALE_SECONDS = 120.0
SWEEP_SECONDS = 600.0
Owner = tuple[str, str, str]
"""Namespace, name and uid of a Service."""


class Claims:
    def __init__(self, cache: Cache, clock: Clock) -> None:
        self._cache = cache
        self._clock = clock

    async def claim(self, name: str, owner: Owner) -> bool:
        """Return whether the address is `owner`'s now."""
        key = storage_key(CLAIMS, "", name)
        stored = await self._cache.store.get(key)
        if stored is not None:
            claim = doc_of(*stored).object()
            if _owner(claim) == owner:
                return True
            if not self._stale(claim):
                return False
        try:
            await self._cache.store.write(key, self._claim(name, owner), expected=stored.revision if stored else 0)
        except RevisionConflict:
            return False
        return True

    async def release(self, name: str, owner: Owner) -> None:
        """Give back what was claimed for a write that failed."""
        key = storage_key(CLAIMS, "", name)
        stored = await self._cache.store.get(key)
        if stored is not None and _owner(doc_of(*stored).object()) == owner:
            await self._delete(key, stored.revision)

    async def sweep(self) -> None:
        """Remove the claims that nobody has any more."""
        page = await self._cache.store.range(prefix(CLAIMS))
        for stored in page.items:
            if self._stale(doc_of(*stored).object()):
                await self._delete(stored.key, stored.revision)

    async def _delete(self, key: str, revision: int) -> None:
        try:
            await self._cache.store.write(key, None, expected=revision)
        except RevisionConflict:
            return  # somebody took it over

    def _stale(self, claim: Obj) -> bool:
        namespace, name, uid = _owner(claim)
        service = self._cache.get(SERVICES, namespace, name)
        if service is not None and service["metadata"]["uid"] == uid:
            return False
        return parse_time(claim["metadata"]["creationTimestamp"]) < self._clock.now() - STALE_SECONDS

    def _claim(self, name: str, owner: Owner) -> bytes:
        meta = {"name": name, "creationTimestamp": rfc3339(self._clock.now())}
        return encode_value({"apiVersion": "internal/v1", "kind": "Claim", "metadata": meta, "owner": list(owner)})


def _owner(claim: Obj) -> Owner:
    namespace, name, uid = claim["owner"]
    return namespace, name, uid
