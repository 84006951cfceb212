"""The store without a disk: for tests and for servers whose state may die with them.

Every key keeps its versions that are not compacted yet, packed: a process may have hundreds of such stores, those of
simulated clusters. A log of which key each revision wrote serves watches; revisions in it have no gaps, so the place of
one is a subtraction.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Iterator
from heapq import nsmallest
from itertools import islice
from operator import attrgetter, itemgetter
from typing import NamedTuple

from karmada.kube.objects.types import Obj
from karmada.kube.server.storage.interface import (
    Event,
    Page,
    RevisionConflict,
    Stored,
    StoreUnavailable,
    prefix_end,
    resource_prefix,
)
from karmada.kube.server.storage.local import LocalStore
from karmada.kube.server.storage.packing import pack, unpack

_CHUNK = 1000
_revision_of = itemgetter(0)


class _Logged(NamedTuple):
    revision: int
    key: str


class MemoryStore(LocalStore):
    def __init__(self) -> None:
        super().__init__()
        self._revision = 0
        self._keys: list[str] = []
        self._versions: dict[str, list[tuple[int, bytes | None]]] = {}
        self._log: list[_Logged] = []

    async def open(self) -> None:
        """Do nothing: it starts empty."""

    async def close(self) -> None:
        self._end()

    @property
    def revision(self) -> int:
        return self._revision

    def peek(self, key: str) -> Stored | None:
        return self._at(key, self._revision)

    def scan(self, prefix: str, *, after: str = "", limit: int = 0, revision: int = 0) -> list[Stored]:
        return list(islice(self._visible(prefix, after, self._readable(revision)), limit or None))

    def oldest(self, prefix: str, *, since: int, limit: int) -> list[Stored]:
        found = (stored for stored in self._visible(prefix, "", self._revision) if stored.revision > since)
        return nsmallest(limit, found, key=attrgetter("revision"))

    def sizes(self, prefix: str, most: int) -> dict[str, int]:
        first, end = bisect_left(self._keys, prefix), prefix_end(prefix)
        keys = islice(self._keys, first, bisect_left(self._keys, end) if end else None)
        counts = Counter(resource_prefix(key) for key in keys)
        return {start: min(count, most) for start, count in counts.items()}

    async def range(self, prefix: str, *, after: str = "", limit: int = 0, revision: int = 0) -> Page:
        revision = self._readable(revision)
        visible = self._visible(prefix, after, revision)
        if not limit:
            return Page(list(visible), revision, 0)
        return Page(list(islice(visible, limit)), revision, sum(1 for _ in visible))

    async def write(self, key: str, value: bytes | None, *, expected: int, obj: Obj | None = None) -> int:
        if self._closed:
            raise StoreUnavailable("the store is closed")
        if value is None and expected == 0:
            raise ValueError(f"{key}: deleting needs the revision of what is deleted")
        versions = self._versions.get(key)
        current = versions[-1][0] if versions and versions[-1][1] is not None else 0
        if current != expected:
            raise RevisionConflict(key, current)
        self._revision += 1
        if versions is None:
            versions = self._versions[key] = []
            insort(self._keys, key)
        versions.append((self._revision, None if value is None else pack(value)))
        self._log.append(_Logged(self._revision, key))
        self._publish([Event(key, value, self._revision, None, obj=obj)])
        return self._revision

    async def history(self, prefix: str, *, since: int, until: int, limit: int = 0) -> list[Event]:
        self._check_compacted(since)
        if not self._log:
            return []
        first = self._log[0].revision
        writes = islice(self._log, max(0, since - first + 1), max(0, until - first + 1))
        return [
            self._event(*logged) for logged in islice((w for w in writes if w.key.startswith(prefix)), limit or None)
        ]

    def _event(self, revision: int, key: str) -> Event:
        written = self._at(key, revision)
        return Event(key, None if written is None else written.value, revision, self._at(key, revision - 1))

    async def compact(self, revision: int) -> None:
        revision = min(revision, self._revision)
        while self._compacted < revision:
            self._compacted = min(revision, self._compacted + _CHUNK)
            count = bisect_right(self._log, self._compacted, key=_revision_of)
            for key in dict.fromkeys(logged.key for logged in self._log[:count]):
                self._forget(key, self._compacted)
            del self._log[:count]
            await asyncio.sleep(0)

    def _at(self, key: str, revision: int) -> Stored | None:
        versions = self._versions.get(key, [])
        place = bisect_right(versions, revision, key=_revision_of) - 1
        if place < 0:
            return None
        written, value = versions[place]
        return None if value is None else Stored(key, unpack(key, value), written)

    def _visible(self, prefix: str, after: str, revision: int) -> Iterator[Stored]:
        end = prefix_end(prefix)
        low = max(bisect_left(self._keys, prefix), bisect_right(self._keys, after))
        high = bisect_left(self._keys, end) if end else len(self._keys)
        for index in range(low, high):
            stored = self._at(self._keys[index], revision)
            if stored is not None:
                yield stored

    def _forget(self, key: str, revision: int) -> None:
        """Keep of the versions up to `revision` only the last one, and that only if it is not a deletion."""
        versions = self._versions.get(key, [])
        superseded = bisect_right(versions, revision, key=_revision_of) - 1
        if superseded >= 0 and versions[superseded][1] is None:
            superseded += 1
        del versions[: max(0, superseded)]
        if not versions and key in self._versions:
            del self._versions[key]
            del self._keys[bisect_left(self._keys, key)]
