"""The small hashes in names (pod-template-hash and its like): FNV, written with characters that form no words."""

from __future__ import annotations

from typing import Any

import orjson

from karmada.kube.objects.names import ALPHABET

_SAFE = {ord(digit): ALPHABET[ord(digit) % len(ALPHABET)] for digit in "0123456789"}


def _bytes(data: Any) -> bytes:
    """Text and bytes as they are, anything else as JSON with sorted keys, so that equal data hash alike."""
    if isinstance(data, bytes):
        return data
    if isinstance(data, str):
        return data.encode()
    return orjson.dumps(data, option=orjson.OPT_SORT_KEYS)


def fnv32a(data: str | bytes) -> int:
    """FNV-1a: mix the byte in, then multiply."""
    value = 0x811C9DC5
    for byte in _bytes(data):
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value


def safe_encode(digits: str) -> str:
    """Return a decimal number in the alphabet of generated names."""
    return digits.translate(_SAFE)


def short_hash(data: Any) -> str:
    """Up to ten characters that stand for the data: text, bytes or JSON data."""
    return safe_encode(str(fnv32a(_bytes(data))))
