"""Stores under a watch cache: one that writes small objects, one as seen over a network."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from karmada.kube.objects.doc import Doc
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.types import Obj
from karmada.kube.server.storage.interface import Event, Page, Store, Stored, StoreUnavailable
from karmada.kube.server.storage.memory import MemoryStore
from karmada.kube.server.watchcache.cache import encode_value, storage_key
from karmada.kube.server.watchcache.entry import Change
from karmada.kube.server.watchcache.subscription import Subscription
from tests.support.eventually import LIMIT

PODS = GroupResource("", "pods")
NODES = GroupResource("", "nodes")
LEASES = GroupResource("coordination.k8s.io", "leases")


class Writer:
    """Writes small objects and remembers their revisions."""

    def __init__(self, store: Store, resource: GroupResource = PODS) -> None:
        self.store = store
        self.resource = resource
        self.revisions: dict[tuple[str, str], int] = {}

    async def put(self, namespace: str, name: str, **labels: str) -> int:
        metadata = {"name": name, "labels": labels} | ({"namespace": namespace} if namespace else {})
        value = encode_value({"apiVersion": "v1", "kind": "X", "metadata": metadata})
        key = storage_key(self.resource, namespace, name)
        revision = await self.store.write(key, value, expected=self.revisions.get((namespace, name), 0))
        self.revisions[namespace, name] = revision
        return revision

    async def delete(self, namespace: str, name: str) -> int:
        expected = self.revisions.pop((namespace, name))
        return await self.store.write(storage_key(self.resource, namespace, name), None, expected=expected)


class Remote:
    """A store as seen over a network: no watch is notified before the writer, and the connection may break."""

    def __init__(self, store: MemoryStore) -> None:
        self.inner = store
        self.broken = False

    @property
    def revision(self) -> int:
        return self.inner.revision

    @property
    def last_error(self) -> Exception | None:
        return None

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    def has_given(self, revision: int) -> bool:
        return self.inner.has_given(revision)

    def earlier(self, revision: int, writes: int) -> int:
        return self.inner.earlier(revision, writes)

    def is_stale(self, key: str, /) -> bool:
        return self.inner.is_stale(key)

    async def get(self, key: str) -> Stored | None:
        return await self.inner.get(key)

    async def range(self, prefix: str, *, after: str = "", limit: int = 0, revision: int = 0) -> Page:
        return await self.inner.range(prefix, after=after, limit=limit, revision=revision)

    async def write(self, key: str, value: bytes | None, *, expected: int, obj: Obj | None = None) -> int:
        return await self.inner.write(key, value, expected=expected, obj=obj)

    async def history(self, prefix: str, *, since: int, until: int, limit: int = 0) -> list[Event]:
        return await self.inner.history(prefix, since=since, until=until, limit=limit)

    async def compact(self, revision: int) -> None:
        await self.inner.compact(revision)

    async def watch(self, prefix: str, *, since: int) -> AsyncIterator[list[Event]]:
        if self.broken:
            raise StoreUnavailable("no route")
        async for events in self.inner.watch(prefix, since=since):
            if self.broken:
                raise StoreUnavailable("connection lost")
            yield events


def names(entries: list[Doc]) -> list[str]:
    return [f"{e.namespace}/{e.name}" for e in entries]


def seen(changes: list[Change]) -> list[tuple[str, str, int]]:
    return [(c.type, c.entry.name, c.revision) for c in changes]


async def next_batch(subscription: Subscription) -> list[Change]:
    async with asyncio.timeout(LIMIT):
        return await anext(subscription)


def labelled(key: str, value: str) -> Callable[[Doc], bool]:
    return lambda entry: entry.labels.get(key) == value
