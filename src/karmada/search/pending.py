"""What changed and was not handed on yet: names per resource of a cluster, never objects.

Many changes of one object are one entry, and what is handed on is read from the cache at that time. A resource with
more entries than a limit becomes "everything of it": a sink that is down for a while costs a bounded amount of memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Generic, NamedTuple, TypeVar

from karmada.kube.objects.gvk import GVR

K = TypeVar("K", bound=Hashable)


class Source(NamedTuple):
    """One resource of one cluster."""

    cluster: str
    gvr: GVR


class Part(NamedTuple, Generic[K]):
    """The keys to hand on next; `keys` None is everything of the source."""

    source: Source
    keys: list[K] | None


class Pending(Generic[K]):
    def __init__(self, most: int) -> None:
        self._most = most
        self._keys: dict[Source, dict[K, None] | None] = {}
        self._some = asyncio.Event()

    def __len__(self) -> int:
        """Entries; everything of a source counts as one."""
        return sum(1 if keys is None else len(keys) for keys in self._keys.values())

    def note(self, source: Source, key: K) -> None:
        keys = self._keys.setdefault(source, {})
        if keys is not None:
            keys[key] = None
            if len(keys) > self._most:
                self._keys[source] = None
        self._some.set()

    def everything(self, source: Source) -> None:
        self._keys[source] = None
        self._some.set()

    def drop(self, chosen: Callable[[Source], bool]) -> None:
        for source in [source for source in self._keys if chosen(source)]:
            del self._keys[source]

    def take(self, count: int) -> Part[K] | None:
        """Return the next part, of at most so many keys; sources take turns.

        What fails to be handed on is noted again.
        """
        if not self._keys:
            self._some.clear()
            return None
        source = next(iter(self._keys))
        keys = self._keys.pop(source)
        if keys is None:
            return Part(source, None)
        taken = list(keys)[:count]
        if len(taken) < len(keys):
            for key in taken:
                del keys[key]
            self._keys[source] = keys
        return Part(source, taken)

    async def wait(self) -> None:
        """Until there is something."""
        while not self._keys:
            self._some.clear()
            await self._some.wait()
