"""Objects that stay parsed for a while, because what was just read or written is read again at once.

They are the last ones, bounded in number and in what they are as JSON: parsed they take about five times that, and a
binding to a thousand clusters is as large as a hundred of others.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class Recent(Generic[K, T]):
    def __init__(self, most: int, most_bytes: int) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._kept: OrderedDict[K, tuple[T, int]] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: K) -> T | None:
        """What was kept under it, if that is still there."""
        found = self._kept.get(key)
        return None if found is None else found[0]

    def put(self, key: K, parsed: T, weight: int) -> T:
        """Keep what was parsed, for a while; `weight`: bytes of JSON."""
        kept = self._kept
        before = kept.pop(key, None)
        if before is not None:
            self._bytes -= before[1]
        kept[key] = (parsed, weight)
        self._bytes += weight
        while len(kept) > self._most or (self._bytes > self._most_bytes and len(kept) > 1):
            self._bytes -= kept.popitem(last=False)[1][1]
        return parsed

    def drop(self, key: K) -> None:
        before = self._kept.pop(key, None)
        if before is not None:
            self._bytes -= before[1]

    def clear(self) -> None:
        self._kept.clear()
        self._bytes = 0
