"""Compressed request bodies: inflated after the request was authorised, in steps, and never beyond the limit.

A few kilobytes of gzip can become gigabytes, and inflating holds up everything else in the process; so nobody who may
not send a body gets one inflated, the limit counts inflated bytes, and others have their turn between steps.
"""

from __future__ import annotations

import asyncio
import zlib

from karmada.kube.objects.errors import BadRequest, RequestEntityTooLarge, UnsupportedMediaType

_STEP = 64 * 1024
_WINDOWS = {"gzip": 31, "deflate": 15}
"""Window bits of zlib by encoding, which also say what header the data has."""


async def inflate(body: bytes, encoding: str, limit: int) -> bytes:
    """Return the body without its Content-Encoding."""
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return body
    if encoding not in _WINDOWS:
        raise UnsupportedMediaType(f"the content encoding of the body, {encoding}, is not supported: gzip, deflate")
    unpacker = zlib.decompressobj(_WINDOWS[encoding])
    pieces, length, rest = [], 0, body
    try:
        while not unpacker.eof:
            piece = unpacker.decompress(rest, _STEP)
            if not piece and not unpacker.unconsumed_tail and not unpacker.eof:
                raise BadRequest(f"the {encoding} body ends too early")
            pieces.append(piece)
            length += len(piece)
            if length > limit:
                raise RequestEntityTooLarge(f"Request entity too large: limit is {limit}")
            rest = unpacker.unconsumed_tail
            await asyncio.sleep(0)
    except zlib.error as error:
        raise BadRequest(f"the {encoding} body cannot be inflated: {error}") from error
    return b"".join(pieces)
