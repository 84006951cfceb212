"""Parsed objects that many readers share, and the detector of those who change them.

A `SharedObject` is a plain dict that can be referred to weakly: a cache entry parses its bytes when somebody asks and
forgets the result when nobody holds it any more. Everything in it is read-only by agreement. With the detector on (the
environment variable KARMADA_MUTATION_DETECTOR, or `detect_mutations`) every shared object remembers the bytes it was
made from; it is compared with them when it dies and, if still alive, by `assert_unmutated`.
"""

from __future__ import annotations

import os
import weakref
from typing import Any

import orjson


class SharedObject(dict[str, Any]):
    __slots__ = ("__weakref__",)


class _Observed(SharedObject):
    __slots__ = ("raw",)
    raw: bytes

    def __del__(self) -> None:
        _alive.pop(id(self), None)
        _examine(self)


_detecting = bool(os.environ.get("KARMADA_MUTATION_DETECTOR"))
_alive: dict[int, weakref.ref[_Observed]] = {}
_mutated: list[str] = []


def parse(raw: bytes) -> SharedObject:
    if not _detecting:
        return SharedObject(orjson.loads(raw))
    observed = _Observed(orjson.loads(raw))
    observed.raw = raw
    _alive[id(observed)] = weakref.ref(observed)
    return observed


def detect_mutations(on: bool = True) -> None:
    """Watch over the objects that are parsed from now on."""
    global _detecting
    _detecting = on


def assert_unmutated() -> None:
    """AssertionError if a shared object was changed since the last call."""
    for reference in list(_alive.values()):
        observed = reference()
        if observed is not None:
            _examine(observed)
    found = list(_mutated)
    _mutated.clear()
    assert not found, "shared objects were changed:\n" + "\n".join(found)


def _examine(observed: _Observed) -> None:
    now = orjson.dumps(observed)
    if now != observed.raw and orjson.loads(now) != orjson.loads(observed.raw):
        _mutated.append(f"was {observed.raw.decode()}\nis  {now.decode()}")
        observed.raw = now  # told once
