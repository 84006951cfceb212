"""One propagated object of a stopped control plane, many times: as if so many had been propagated.

What the control plane has made of the first (its template, binding and a Work in each execution namespace) is read from
the store and written again for each further object, under its name and with identities of its own. So the content is
that which the controllers wrote, and a million Works take minutes instead of hours.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import orjson

from karmada.api.cluster import Cluster
from karmada.api.well_known import work_name
from karmada.api.work import ResourceBinding, Work
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from karmada.kube.server.storage.encryption import read_encryption
from karmada.kube.server.storage.interface import Write
from karmada.kube.server.storage.sqlite import SqliteStore
from karmada.kube.server.watchcache.entry import prefix, split_key, storage_key

_IDENTITY = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PAGE = 1_000


class Original(NamedTuple):
    """A template that has been propagated."""

    kind: GVR
    api_kind: str
    namespace: str
    name: str


async def multiply(folder: Path, original: Original, names: Sequence[str], *, pull: bool) -> None:
    """Write the same again under each of these names, in the store of a control plane that had this data directory.

    With `pull`, all clusters are in mode Pull from now on.
    """
    store = SqliteStore(
        str(database(folder)), synced=False, encryption=read_encryption(folder / "pki" / "encryption.yaml")
    )
    await store.open()
    try:
        if pull:
            await _pulled(store)
        copies = await _Copies.of(store, original)
        for name in names:
            [revision] = await _written(store, [copies.template(name)])
            await _written(store, copies.rest(name, revision))
    finally:
        await store.close()


def database(folder: Path) -> Path:
    return folder / "state.db"


async def _written(store: SqliteStore, writes: Sequence[Write]) -> list[int]:
    revisions = []
    for outcome in await store.write_all(writes):
        if not isinstance(outcome, int):
            raise outcome
        revisions.append(outcome)
    return revisions


async def _pulled(store: SqliteStore) -> None:
    found = await store.range(prefix(Cluster.gvr.group_resource))
    writes = []
    for key, value, revision in found.items:
        cluster: Obj = orjson.loads(value)
        cluster["spec"]["syncMode"] = "Pull"
        writes.append(Write(key, orjson.dumps(cluster), revision))
    await _written(store, writes)


class _Copies:
    def __init__(self, original: Original, template: bytes, binding: bytes, works: Mapping[str, bytes]) -> None:
        self._original = original
        self._template = template
        self._binding = binding
        self._works = works
        shared = set(_IDENTITY.findall(template)) - {_uid(template)}
        own = set(_IDENTITY.findall(b"".join((template, binding, *works.values())))) - shared
        self._identities = sorted(own)
        self._fresh: dict[bytes, bytes] = {}

    @classmethod
    async def of(cls, store: SqliteStore, original: Original) -> _Copies:
        kind, api_kind, namespace, name = original
        where = storage_key(kind.group_resource, namespace, name)
        bound = storage_key(ResourceBinding.gvr.group_resource, namespace, f"{name}-{api_kind.lower()}")
        work, works = work_name(api_kind, name, namespace), {}
        async for key, value in _all(store, prefix(Work.gvr.group_resource)):
            if split_key(key).name == work:
                works[split_key(key).namespace] = value
        template, binding = store.peek(where), store.peek(bound)
        if template is None or binding is None or not works:
            raise ValueError(f"{where} has not been propagated")
        return cls(original, template.value, binding.value, works)

    def template(self, name: str) -> Write:
        self._fresh = {old: str(uuid.uuid4()).encode() for old in self._identities}
        kind, _, namespace, _ = self._original
        return Write(storage_key(kind.group_resource, namespace, name), self._renamed(self._template, name), 0)

    def rest(self, name: str, revision: int) -> list[Write]:
        """Of the template that was made last, and has this revision."""
        _, api_kind, namespace, _ = self._original
        binding: Obj = orjson.loads(self._renamed(self._binding, name))
        binding["spec"]["resource"]["resourceVersion"] = str(revision)
        bound = storage_key(ResourceBinding.gvr.group_resource, namespace, f"{name}-{api_kind.lower()}")
        return [Write(bound, orjson.dumps(binding), 0), *self._renamed_works(name)]

    def _renamed_works(self, name: str) -> Iterator[Write]:
        _, api_kind, namespace, _ = self._original
        work = work_name(api_kind, name, namespace)
        for where, value in self._works.items():
            yield Write(storage_key(Work.gvr.group_resource, where, work), self._renamed(value, name), 0)

    def _renamed(self, value: bytes, name: str) -> bytes:
        _, api_kind, namespace, old = self._original
        was, now = (work_name(api_kind, one, namespace).encode() for one in (old, name))
        renamed = value.replace(was, now).replace(old.encode(), name.encode())
        fresh = self._fresh
        return _IDENTITY.sub(lambda found: fresh.get(found[0], found[0]), renamed)


async def _all(store: SqliteStore, start: str) -> AsyncIterator[tuple[str, bytes]]:
    after, remaining = "", 1
    while remaining:
        page = await store.range(start, after=after, limit=_PAGE)
        for stored in page.items:
            yield stored.key, stored.value
        after, remaining = (page.items[-1].key if page.items else ""), page.remaining


def _uid(value: bytes) -> bytes:
    uid: str = orjson.loads(value)["metadata"]["uid"]
    return uid.encode()
