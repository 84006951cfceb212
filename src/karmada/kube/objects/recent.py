"""Objects that stay parsed for a while, because what was just read or written is read again at once.

They are the last ones, bounded in number and in what they are as JSON: parsed they take about five times that, and a
binding to a thousand clusters is as large as a hundred of others.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

from karmada.kube.objects.shared import Packed

T = TypeVar("T")


class Recent(Generic[T]):
    def __init__(self, most: int, most_bytes: int) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._kept: OrderedDict[Packed, tuple[T, int]] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, source: Packed) -> T | None:
        """What was parsed of it, if that is still kept."""
        found = self._kept.get(source)
        return None if found is None else found[0]

    def put(self, source: Packed, parsed: T) -> T:
        """Keep what was parsed of it, for a while."""
        kept, weight = self._kept, source.weight
        before = kept.pop(source, None)
        if before is not None:
            self._bytes -= before[1]
        kept[source] = (parsed, weight)
        self._bytes += weight
        while len(kept) > self._most or (self._bytes > self._most_bytes and len(kept) > 1):
            self._bytes -= kept.popitem(last=False)[1][1]
        return parsed

    def clear(self) -> None:
        self._kept.clear()
        self._bytes = 0
