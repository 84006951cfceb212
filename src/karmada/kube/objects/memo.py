"""One bounded cache for all that is computed, read or received once and wanted again soon.

It is bounded by a number of entries, and where that matters by what they weigh together (bytes of JSON, mostly: parsed
objects take about five times that) and by the seconds for which an entry counts. What was not used for the longest goes
first; the last entry stays, however heavy it is.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from hashlib import blake2b
from math import inf
from typing import Any, Generic, TypeVar

import orjson

from karmada.kube.objects.clock import SYSTEM, Clock

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Memo(Generic[K, V]):
    """A bounded cache; None cannot be a value."""

    __slots__ = ("_clock", "_entries", "_most", "_most_weight", "_seconds", "_weight")

    def __init__(
        self, most: int, *, most_weight: float = inf, seconds: float | None = None, clock: Clock = SYSTEM
    ) -> None:
        self._most = most
        self._most_weight = most_weight
        self._seconds = seconds
        self._clock = clock
        self._entries: OrderedDict[K, tuple[V, int, float]] = OrderedDict()
        """The value, its weight, and when it was put; those used last at the end."""
        self._weight = 0

    def __len__(self) -> int:
        return len(self._entries)

    def values(self) -> Iterator[V]:
        return (value for value, _, _ in self._entries.values())

    def get(self, key: K) -> V | None:
        found = self._entries.get(key)
        if found is None:
            return None
        if self._seconds is not None and self._clock.monotonic() - found[2] >= self._seconds:
            self.drop(key)
            return None
        try:
            self._entries.move_to_end(key)
        except KeyError:  # another thread has just dropped it
            return None
        return found[0]

    def put(self, key: K, value: V, weight: int = 0) -> V:
        """Keep a value in the place of an earlier one, and return it."""
        entries, now = self._entries, 0.0 if self._seconds is None else self._clock.monotonic()
        before = entries.pop(key, None)
        self._weight += weight if before is None else weight - before[1]
        entries[key] = value, weight, now
        while len(entries) > self._most or (self._weight > self._most_weight and len(entries) > 1):
            self._weight -= entries.popitem(last=False)[1][1]
        if self._seconds is not None:
            while entries and now - next(iter(entries.values()))[2] >= self._seconds:
                self._weight -= entries.popitem(last=False)[1][1]
        return value

    def drop(self, key: K) -> None:
        found = self._entries.pop(key, None)
        if found is not None:
            self._weight -= found[1]

    def clear(self) -> None:
        self._entries.clear()
        self._weight = 0


_RECOGNISED = 32
_SMALL = 16 << 10
"""Size up to which the bytes of a value are kept; of larger ones a digest is."""


class Recognised:
    """JSON values that were found in order a moment ago, by their bytes, which are made in a tenth of the time.

    An object is checked several times on its way, and in every cluster that gets a copy.
    """

    __slots__ = ("_recent",)

    def __init__(self) -> None:
        self._recent: set[bytes] = set()

    def unknown(self, value: Any) -> bytes | None:
        """Return what stands for a value that is not known, empty for one that cannot be; None for one that is."""
        try:
            raw = orjson.dumps(value)
        except TypeError:
            return b""
        if len(raw) > _SMALL:
            raw = blake2b(raw).digest()
        return None if raw in self._recent else raw

    def add(self, raw: bytes) -> None:
        """Remember a value by what `unknown` has returned for it."""
        if len(self._recent) >= _RECOGNISED:
            self._recent.clear()
        if raw:
            self._recent.add(raw)
