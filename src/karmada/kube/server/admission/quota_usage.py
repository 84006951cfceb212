"""What the objects in the watch cache use of ResourceQuotas, without counting them for each request.

A ledger is opened by one count when a quota is first looked at. From then on a look applies the changes that the cache
has had since the last one: each once for a resource, whatever the number of namespaces and objects. If the cache has
forgotten some of them or was loaded anew, the ledgers are void and are opened again. So nothing runs while there is no
quota, and a write itself costs nothing more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from karmada.kube.kinds.quota import constrained
from karmada.kube.kinds.quota_ledger import DETAILED, Ledger
from karmada.kube.kinds.resource import Reader, Resource
from karmada.kube.objects.doc import Doc
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.time_slice import TimeSlice
from karmada.kube.server.watchcache.cache import Cache
from karmada.kube.server.watchcache.collection import Collection
from karmada.kube.server.watchcache.entry import DELETED, MODIFIED, Change

_UNREAD: Obj = {}
"""Stands for an object of which only the number counts."""


class LiveUsage:
    """Any other Reader than the watch cache has no changes to follow: its objects are counted each time."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.followed: dict[GroupResource, _Followed] = {}
        """The resources that quotas have been looked at for."""
        self._opening = asyncio.Lock()

    async def open(self, quotas: Sequence[Obj], resource: Resource, namespace: str) -> bool:
        """Count what has to be counted, with pauses for others, so that `ledger` need not; whether there was any."""
        followed = self._follow(resource) if quotas else None
        if followed is None or all(followed.ledger(quota, namespace) is not None for quota in quotas):
            return False
        async with self._opening:  # of many who come at once, one counts
            for quota in quotas:
                if followed.ledger(quota, namespace) is None:
                    await followed.open(quota, namespace)
        return True

    def ledger(self, quota: Obj, resource: Resource, namespace: str) -> Ledger:
        """Return the usage under a quota, by the objects of this resource, as of now."""
        followed = self._follow(resource)
        if followed is not None:
            return followed.ledger(quota, namespace) or followed.open_now(quota, namespace)
        objects = self._reader.list(resource.storage_resource, namespace)
        return Ledger(_enforced(quota), {resource.group_resource: objects}, 0.0)

    def forget(self, namespace: str, quotas: Iterable[Obj] = ()) -> None:
        """Drop the ledgers of a namespace but those of these quotas."""
        names = {quota["metadata"]["name"] for quota in quotas}
        for followed in self.followed.values():
            followed.forget(namespace, names)

    def _follow(self, resource: Resource) -> _Followed | None:
        if not isinstance(self._reader, Cache):
            return None
        found = self.followed.get(resource.group_resource)
        if found is None:
            collection = self._reader.collection(resource.storage_resource)
            found = self.followed[resource.group_resource] = _Followed(resource.group_resource, collection)
        return found


class _Followed:
    """The ledgers of one resource, by namespace and name of the quota, all as of the same revision."""

    def __init__(self, resource: GroupResource, collection: Collection) -> None:
        self._resource = resource
        self._collection = collection
        self._reads = resource in DETAILED
        self._ledgers: dict[str, dict[str, Ledger]] = {}
        self._seen = (collection.changed, collection.resets)

    def ledger(self, quota: Obj, namespace: str) -> Ledger | None:
        """Return None when there is none for the quota as it is now."""
        self._catch_up()
        metadata = quota["metadata"]
        found = self._ledgers.get(namespace, {}).get(metadata["name"])
        if found is None or found.uid != metadata["uid"] or found.spec != _enforced(quota)["spec"]:
            return None
        return found

    def open_now(self, quota: Obj, namespace: str) -> Ledger:
        self._catch_up()
        objects = map(self._object, self._collection.list(namespace))
        return self._keep(namespace, Ledger(_enforced(quota), {self._resource: objects}, 0.0), quota)

    async def open(self, quota: Obj, namespace: str) -> None:
        """As `open_now`, in slices; what changes in the meantime is applied at the end."""
        await self._collection.loaded()
        begun, resets, turn = self._collection.changed, self._collection.resets, TimeSlice()
        ledger = Ledger(_enforced(quota), {}, 0.0)
        for entry in self._collection.list(namespace):
            ledger.change(self._resource, None, self._object(entry))
            if turn.is_over():
                await turn.next()
        missed = self._collection.changes_since(begun)
        if missed is None or resets != self._collection.resets:
            return  # `ledger` has to count
        self._catch_up()
        for change in missed:
            if change.entry.namespace == namespace:
                self._apply(change, ledger)
        self._keep(namespace, ledger, quota)

    def forget(self, namespace: str, but: set[str]) -> None:
        ledgers = self._ledgers.get(namespace)
        for name in [name for name in ledgers or () if name not in but]:
            del self._ledgers[namespace][name]
        if ledgers is not None and not ledgers:
            del self._ledgers[namespace]

    def _keep(self, namespace: str, ledger: Ledger, quota: Obj) -> Ledger:
        self._ledgers.setdefault(namespace, {})[quota["metadata"]["name"]] = ledger
        return ledger

    def _catch_up(self) -> None:
        collection = self._collection
        revision, resets = self._seen
        now = (collection.changed, collection.resets)
        if now == self._seen:
            return
        changes = collection.changes_since(revision) if self._ledgers and resets == collection.resets else None
        self._seen = now
        if changes is None:
            self._ledgers.clear()
        for change in changes or ():
            namespace = change.entry.namespace
            for ledger in self._ledgers.get(namespace, {}).values():
                self._apply(change, ledger)
            if change.type == DELETED and not collection.has_any(namespace):
                self._ledgers.pop(namespace, None)  # to count nothing is free, and the namespace may be gone

    def _apply(self, change: Change, ledger: Ledger) -> None:
        if change.type == MODIFIED and not self._reads:
            return
        old = self._object(change.previous) if change.previous is not None else None
        new = self._object(change.entry) if change.type != DELETED else None
        ledger.change(self._resource, old, new)

    def _object(self, entry: Doc) -> Obj:
        return entry.object() if self._reads else _UNREAD


def _enforced(quota: Obj) -> Obj:
    """With the limits of its status: only those are enforced."""
    return {**quota, "spec": {**(quota.get("spec") or {}), "hard": constrained(quota)}}
