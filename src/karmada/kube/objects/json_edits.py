"""Edits of an object's metadata in its JSON, without parsing the rest.

The JSON starts with apiVersion, kind and metadata, in this order, as the store and the caches of members keep it.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import orjson

from karmada.kube.objects.types import Obj

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
