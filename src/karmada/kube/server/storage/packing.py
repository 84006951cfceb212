"""Stored values are compressed, with a dictionary of what objects usually contain.

The dictionary is a part of the program, so that a value needs nothing else to be read: of a Work of 4.7 kB, 370 bytes
are stored. A value is compressed before it is encrypted, since what is encrypted cannot be. Its first byte says how it
is read: PACKED, or the `{` of the JSON that it is.

The dictionary never changes. Another one would be another file, with a mark of its own, beside this one.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Final

from karmada.kube.objects.differences import WORTHWHILE, Sample, pays
from karmada.kube.server.storage.interface import StoreUnavailable

PACKED: Final = b"\x01"


@cache
def _dictionary() -> Sample:
    return Sample((files(__package__) / "dictionary.txt").read_bytes())


def pack(value: bytes) -> bytes:
    """What is stored for a value."""
    marked = value.startswith(PACKED)  # no JSON does, but it must not be taken for what it is not
    if len(value) < WORTHWHILE and not marked:
        return value
    small = _dictionary().difference(value)
    return PACKED + small if marked or pays(small, value) else value


def unpack(key: str, stored: bytes) -> bytes:
    """The value; StoreUnavailable if it was not packed by `pack`."""
    if not stored.startswith(PACKED):
        return stored
    try:
        return _dictionary().restored(stored[1:])
    except ValueError as error:
        raise StoreUnavailable(f"the value of {key} cannot be unpacked: {error}") from error
