"""A bounded cache whose hit costs one dict lookup.

Entries live in a young generation; when that is full it becomes the old one and the former old one is forgotten. A hit
in the old generation moves the entry back to the young one, so whatever is in use survives and nothing is counted or
re-ordered per access.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class GenerationCache(Generic[K, V]):
    """Holds at most 2 × `size` entries. Values must not be None."""

    __slots__ = ("_old", "_size", "_young")

    def __init__(self, size: int) -> None:
        self._size = size
        self._young: dict[K, V] = {}
        self._old: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        value = self._young.get(key)
        if value is None and self._old:
            value = self._old.pop(key, None)
            if value is not None:
                self.put(key, value)
        return value

    def put(self, key: K, value: V) -> None:
        if len(self._young) >= self._size:
            self._old = self._young
            self._young = {}
        self._young[key] = value

    def clear(self) -> None:
        self._young.clear()
        self._old.clear()

    def __len__(self) -> int:
        return len(self._young) + len(self._old)
