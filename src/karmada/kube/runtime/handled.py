"""What was acted on: for each key a fingerprint, which says what of an object, and of what else it depends on, counted.

Informers say which state is the newest; this says what was done with it. A state whose fingerprint is still the one
that was recorded needs nothing more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from typing import Generic, TypeAlias, TypeVar

import orjson

from karmada.kube.objects import meta
from karmada.kube.objects.types import Obj

K = TypeVar("K", bound=Hashable)
F = TypeVar("F")
Generation: TypeAlias = tuple[str, int]
"""The uid of an object and its generation."""


def generation_of(obj: Obj) -> Generation:
    """Return the fingerprint of an object's spec, which writes of its status leave as it is."""
    return meta.uid(obj), meta.generation(obj)


def content_of(obj: Obj) -> bytes:
    """Return the fingerprint of an object's spec; a store that went back counts the same generations again."""
    text = orjson.dumps([meta.uid(obj), obj.get("spec")], option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(text, digest_size=16).digest()


class Handled(Generic[K, F]):
    def __init__(self) -> None:
        self._done: dict[K, F] = {}

    def __contains__(self, key: K) -> bool:
        return key in self._done

    def is_done(self, key: K, fingerprint: F) -> bool:
        return self._done.get(key) == fingerprint

    def done(self, key: K, fingerprint: F) -> None:
        self._done[key] = fingerprint

    def take(self, key: K) -> F | None:
        """Return the fingerprint, and forget it: for what is to be skipped once."""
        return self._done.pop(key, None)

    def forget(self, key: K) -> None:
        self._done.pop(key, None)

    def clear(self) -> None:
        self._done.clear()
