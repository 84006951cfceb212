"""Bytes as their difference to a dictionary that resembles them: objects of a kind differ by a few per cent."""

from __future__ import annotations

import zlib
from typing import Final

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
