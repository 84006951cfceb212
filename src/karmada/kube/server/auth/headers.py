"""The request headers that carry identities, and how keys of extra user attributes are written into header names."""

from __future__ import annotations

import string
from collections.abc import Iterable
from typing import TypeAlias
from urllib.parse import unquote

from multidict import MultiMapping

Headers: TypeAlias = MultiMapping[str]
"""Case-insensitive and multi-valued, like aiohttp's request headers."""

REMOTE_USER, REMOTE_UID, REMOTE_GROUP = "X-Remote-User", "X-Remote-Uid", "X-Remote-Group"
REMOTE_EXTRA = "X-Remote-Extra-"
IMPERSONATE_USER, IMPERSONATE_UID, IMPERSONATE_GROUP = "Impersonate-User", "Impersonate-Uid", "Impersonate-Group"
IMPERSONATE_EXTRA = "Impersonate-Extra-"

_IDENTITY = {"authorization", "x-remote-user", "x-remote-uid", "x-remote-group"}
_IDENTITY_PREFIXES = ("x-remote-extra-", "impersonate-")
_PLAIN = frozenset(string.ascii_lowercase + string.digits + "!#$&'*+-.^_`|~")


def carries_identity(header: str) -> bool:
    """Return True for headers that no handler and no backend may see once the request's user is known."""
    lower = header.lower()
    return lower in _IDENTITY or lower.startswith(_IDENTITY_PREFIXES)


def without_identity(headers: Headers) -> list[tuple[str, str]]:
    return [(name, value) for name, value in headers.items() if not carries_identity(name)]


def escape_key(key: str) -> str:
    """Percent-escape whatever a header name cannot carry; upper case too, since header names do not keep it."""
    return "".join(chr(b) if chr(b) in _PLAIN else f"%{b:02X}" for b in key.encode("utf-8"))


def extras(headers: Headers, prefix: str) -> dict[str, tuple[str, ...]]:
    """Return the values of all `<prefix><escaped key>` headers by key."""
    lower = prefix.lower()
    found: dict[str, list[str]] = {}
    for name, value in headers.items():
        if name.lower().startswith(lower):
            found.setdefault(unquote(name[len(prefix) :].lower()), []).append(value)
    return {key: tuple(values) for key, values in found.items()}


def all_values(headers: Headers, name: str) -> tuple[str, ...]:
    return tuple(headers.getall(name, ()))


def header_lines(prefix: str, extra: Iterable[tuple[str, Iterable[str]]]) -> list[tuple[str, str]]:
    return [(prefix + escape_key(key), value) for key, values in extra for value in values]
