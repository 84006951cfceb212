"""The bytes of an object: as their difference to a dictionary that resembles them, and edited without being parsed.

Objects of a kind differ by a few per cent. Their JSON starts with apiVersion, kind and metadata, in this order, as the
store and the caches of members keep it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Final

import msgspec
import orjson

from karmada.kube.objects.types import Obj

WORTHWHILE: Final = 512
"""Bytes below which nothing is gained."""
_LEVEL, _WINDOW = 3, 14
_MEMORY = 9
"""Number that, subtracted from the window, gives zlib's level of memory."""


class ZlibDictionary:
    """Never changes. Its own part of the work is done once: 4 kB become 150 bytes in 10 µs, and are back in 5.

    `window`: it and what is compared with it have 2 to this power bytes together. The smaller, the less is copied for
    each difference: 80 kB for one of 14, 24 kB for one of 12.
    """

    __slots__ = ("_started", "_window", "text")

    def __init__(self, text: bytes, window: int = _WINDOW) -> None:
        self._window = window
        self.text = text[-(1 << window) * 15 // 16 :]
        self._started = zlib.compressobj(
            _LEVEL, zlib.DEFLATED, -window, window - _MEMORY, zlib.Z_DEFAULT_STRATEGY, self.text
        )

    def difference(self, raw: bytes) -> bytes:
        compressor = self._started.copy()
        return compressor.compress(raw) + compressor.flush()

    def restored(self, small: bytes) -> bytes:
        """Return the bytes again; ValueError if this is no difference to this dictionary."""
        reader = zlib.decompressobj(-self._window, self.text)
        try:
            raw = reader.decompress(small)
        except zlib.error as error:
            raise ValueError(str(error)) from error
        if not reader.eof:
            raise ValueError("the difference ends too early")
        return raw

    def unpacked(self, _doc: object, packed: bytes) -> bytes:
        """Return the JSON of an object that was packed as a whole."""
        return self.restored(packed)


def pays(small: bytes, raw: bytes) -> bool:
    """Return whether the difference is worth storing instead of the bytes."""
    return len(small) < len(raw) * 3 // 4


def resembles(small: bytes, raw: bytes) -> bool:
    """Return whether the dictionary was a good one for these bytes."""
    return len(small) < len(raw) // 4


# edits of the metadata

_METADATA = b'"metadata":{'


class _Head(msgspec.Struct):
    metadata: msgspec.Raw


_head = msgspec.json.Decoder(_Head).decode


def with_revision(value: bytes, revision: int) -> bytes:
    """Return a stored value with its resourceVersion, which it lacks, as the first field of its metadata.

    Made for each write, though few are read as bytes: what is kept must be of its exact size, which the bytes that
    were encoded are not. Their block was larger, and what is given back of it leaves memory in pieces.
    """
    at = value.index(_METADATA) + len(_METADATA)
    comma = b"" if value[at : at + 1] == b"}" else b","
    return b'%b"resourceVersion":"%d"%b%b' % (value[:at], revision, comma, value[at:])


def with_version(raw: bytes, revision: int, version: str) -> bytes:
    """Return the JSON with another resourceVersion in place of this revision."""
    start, end = metadata_span(raw)
    old = b'"resourceVersion":"%d"' % revision
    if raw.count(old, start, end) != 1:
        return with_metadata(raw, lambda metadata: metadata.update(resourceVersion=version))
    at = raw.index(old, start, end)
    return b'%b"resourceVersion":%b%b' % (raw[:at], orjson.dumps(version), raw[at + len(old) :])


def metadata_span(raw: bytes) -> tuple[int, int]:
    """Return where the metadata begins and ends; it is the first that an object has after apiVersion and kind."""
    start = raw.index(b'"metadata":') + len(b'"metadata":')
    return start, start + len(memoryview(_head(raw).metadata))


def with_metadata(raw: bytes, change: Callable[[Obj], None]) -> bytes:
    """Return the JSON with changed metadata, parsed and written again: where bytes alone do not show what is what."""
    obj = orjson.loads(raw)
    change(obj["metadata"])
    return orjson.dumps(obj)
