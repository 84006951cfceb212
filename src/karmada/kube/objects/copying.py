"""Deep copies of JSON data.

msgspec rebuilds every dict and list in C and shares the strings and numbers in them, which is faster than a round trip
through JSON text and, because a copy of a cached object brings no new strings, also smaller.
"""

from __future__ import annotations

from typing import TypeVar, cast

import msgspec

T = TypeVar("T")

_rebuild = msgspec.to_builtins


def copy_json(value: T) -> T:
    """Return a copy that shares no dict and no list with the original."""
    return cast(T, _rebuild(value))
