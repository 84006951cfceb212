"""RSA keys of tests are a few that take turns: making one of 3072 bits takes a quarter of a second."""

from __future__ import annotations

from itertools import count
from typing import Any

from cryptography.hazmat.primitives.asymmetric import rsa

_MOST = 3
"""Of each size: those who meet in a test have keys of their own."""
_generate = rsa.generate_private_key
_keys: dict[tuple[int, int], list[rsa.RSAPrivateKey]] = {}
_turns = count()


def reuse_keys() -> None:
    """For all that runs in this process."""
    rsa.generate_private_key = _next


def _next(public_exponent: int, key_size: int, backend: Any = None) -> rsa.RSAPrivateKey:
    keys = _keys.setdefault((public_exponent, key_size), [])
    if len(keys) < _MOST:
        keys.append(_generate(public_exponent, key_size))
        return keys[-1]
    return keys[next(_turns) % _MOST]
