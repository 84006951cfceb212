"""Pins of certificate authorities: `sha256:` and the hash of the public key, by which a client knows one beforehand."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

_FORMAT: Final = "sha256"
_SIZE: Final = 32


def pins_of(pem: bytes) -> list[str]:
    """Return one for each certificate; ValueError when there is none to read."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
    from cryptography.x509 import load_pem_x509_certificates

    keys = (certificate.public_key() for certificate in load_pem_x509_certificates(pem))
    infos = (key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo) for key in keys)
    return [f"{_FORMAT}:{hashlib.sha256(info).hexdigest()}" for info in infos]


def parse_pins(texts: Sequence[str]) -> frozenset[str]:
    """ValueError for a text that is not a pin."""
    return frozenset(_parse(text) for text in texts)


def _parse(text: str) -> str:
    kind, colon, value = text.partition(":")
    if not colon:
        raise ValueError(f'invalid hash, expected "format:value". Known format(s) are: {_FORMAT}')
    if kind.lower() != _FORMAT:
        raise ValueError(f'unknown hash format "{kind}". Known format(s) are: {_FORMAT}')
    try:
        digest = bytes.fromhex(value)
    except ValueError as error:
        raise ValueError(f'could not decode SHA-256 from hex: "{value}"') from error
    if len(digest) != _SIZE:
        raise ValueError(f"expected a {_SIZE} byte SHA-256 hash, found {len(digest)} bytes")
    return f"{_FORMAT}:{digest.hex()}"


def check_pinned(pem: bytes, pins: frozenset[str]) -> None:
    """ValueError unless the key of at least one certificate is pinned."""
    found = pins_of(pem)
    if not pins.intersection(found):
        listed = " ".join(f'"{pin}"' for pin in found)
        raise ValueError(f"none of the public keys [{listed}] are pinned")
