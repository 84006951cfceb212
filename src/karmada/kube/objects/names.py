"""Names, label keys and label values, and the hashes in names.

Each check returns the messages of what is wrong, empty when all is well. They are those that Kubernetes prints, regular
expressions included, because users search for them.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable
from typing import Any

import orjson

ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""Characters of generated names: no vowels, so no words, and nothing that is easily mistaken for another."""

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_WILDCARD = rf"\*\.{_SUBDOMAIN}"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_QUALIFIED})?"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"


def _matching(pattern: str) -> Callable[[str], re.Match[str] | None]:
    """Without the groups of the pattern, which nobody reads: a fourth less work."""
    return re.compile(pattern.replace("(", "(?:")).fullmatch


_label = _matching(_LABEL)
_subdomain = _matching(_SUBDOMAIN)
_label_1035 = _matching(_LABEL_1035)
_wildcard = _matching(_WILDCARD)
_qualified = _matching(_QUALIFIED)
_value = _matching(_VALUE)
_config_key = _matching(_CONFIG_KEY)
_port_characters = _matching("[-a-z0-9]+")
_letter = re.compile("[a-z]").search


def _pattern_message(rule: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {shown}regex used for validation is '{pattern}')"


_LABEL_MESSAGE = _pattern_message(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character",
    _LABEL, "my-name", "123-abc",
)  # fmt: skip
_SUBDOMAIN_MESSAGE = _pattern_message(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character",
    _SUBDOMAIN, "example.com",
)  # fmt: skip
_LABEL_1035_MESSAGE = _pattern_message(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
    "start with an alphabetic character, and end with an alphanumeric character",
    _LABEL_1035, "my-name", "abc-123",
)  # fmt: skip
_WILDCARD_MESSAGE = _pattern_message(
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
    "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
    _WILDCARD, "*.example.com",
)  # fmt: skip
_QUALIFIED_MESSAGE = _pattern_message(
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
    _QUALIFIED, "MyName", "my.name", "123-abc",
)  # fmt: skip
_VALUE_MESSAGE = _pattern_message(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character",
    _VALUE, "MyValue", "my_value", "12345",
)  # fmt: skip
_CONFIG_KEY_MESSAGE = _pattern_message(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    _CONFIG_KEY, "key.name", "KEY_NAME", "key-name",
)  # fmt: skip


def _too_long(text: str, limit: int) -> bool:
    return len(text) > limit or (not text.isascii() and len(text.encode()) > limit)


def length_message(limit: int) -> str:
    return f"must be no more than {limit} bytes"


is_dns1123_subdomain = re.compile("(?!.{254})" + _SUBDOMAIN.replace("(", "(?:")).fullmatch
"""Matches each name for which `dns1123_subdomain` has no messages."""


def dns1123_subdomain(name: str) -> list[str]:
    if is_dns1123_subdomain(name):
        return []
    messages = [length_message(253)] if _too_long(name, 253) else []
    return messages if _subdomain(name) else [*messages, _SUBDOMAIN_MESSAGE]


def dns1123_label(name: str) -> list[str]:
    if _label(name) and len(name) <= 63:
        return []
    messages = [length_message(63)] if _too_long(name, 63) else []
    if _label(name):
        return messages
    return [*messages, "must not contain dots" if _subdomain(name) else _LABEL_MESSAGE]


def dns1035_label(name: str) -> list[str]:
    if _label_1035(name) and len(name) <= 63:
        return []
    messages = [length_message(63)] if _too_long(name, 63) else []
    return messages if _label_1035(name) else [*messages, _LABEL_1035_MESSAGE]


def wildcard_dns1123_subdomain(name: str) -> list[str]:
    messages = [length_message(253)] if _too_long(name, 253) else []
    return messages if _wildcard(name) else [*messages, _WILDCARD_MESSAGE]


def path_segment(name: str) -> list[str]:
    """Names that only have to fit between two slashes of a URL."""
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{part}'" for part in ("/", "%") if part in name]


def qualified_name(key: str) -> list[str]:
    """Return a label key, an annotation key or a finalizer: [prefix/]name."""
    prefix, slash, name = key.partition("/")
    if not slash:
        return _name_part(key)
    if "/" in name:
        return [
            f"a qualified name {_QUALIFIED_MESSAGE} "
            "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    return [f"prefix part {message}" for message in _prefix_part(prefix)] + _name_part(name)


def _prefix_part(prefix: str) -> list[str]:
    return dns1123_subdomain(prefix) if prefix else ["must be non-empty"]


def _name_part(name: str) -> list[str]:
    if _qualified(name) and len(name) <= 63:
        return []
    if not name:
        messages = ["name part must be non-empty"]
    else:
        messages = [f"name part {length_message(63)}"] if _too_long(name, 63) else []
    return messages if _qualified(name) else [*messages, f"name part {_QUALIFIED_MESSAGE}"]


is_label_value = re.compile("(?!.{64})" + _VALUE.replace("(", "(?:")).fullmatch
"""Matches each value for which `label_value` has no messages."""


def label_value(value: str) -> list[str]:
    if is_label_value(value):
        return []
    messages = [length_message(63)] if _too_long(value, 63) else []
    return messages if _value(value) else [*messages, _VALUE_MESSAGE]


def config_key(key: str) -> list[str]:
    """Return a key of a ConfigMap or a Secret."""
    messages = [length_message(253)] if _too_long(key, 253) else []
    if not _config_key(key):
        messages.append(_CONFIG_KEY_MESSAGE)
    if key in (".", ".."):
        messages.append(f"must not be '{key}'")
    elif key.startswith(".."):
        messages.append("must not start with '..'")
    return messages


def port_name(name: str) -> list[str]:
    """Return the name of a container's port."""
    messages = [length_message(15)] if _too_long(name, 15) else []
    if not _port_characters(name):
        messages.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not _letter(name):
        messages.append("must contain at least one letter (a-z)")
    if "--" in name:
        messages.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        messages.append("must not begin or end with a hyphen")
    return messages


_identities = random.Random(os.urandom(64))
os.register_at_fork(after_in_child=lambda: _identities.seed(os.urandom(64)))  # as `random` does: no uid comes twice


def random_suffix(n: int = 5) -> str:
    return "".join(random.choices(ALPHABET, k=n))


_VERSION_4, _FREE_BITS = 0x4 << 76 | 0x2 << 62, ~(0xF << 76 | 0x3 << 62)


def random_uuid_bytes() -> bytes:
    """Return a version 4 UUID: unique, but not a secret. Generated without a system call each time."""
    return (_identities.getrandbits(128) & _FREE_BITS | _VERSION_4).to_bytes(16, "big")


def random_uuid() -> str:
    return uuid_text(random_uuid_bytes())


def uuid_text(binary: bytes) -> str:
    """Return the canonical form of 16 bytes."""
    digits = binary.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


# the small hashes in names (pod-template-hash and its like): FNV, written with characters that form no words

_SAFE = {ord(digit): ALPHABET[ord(digit) % len(ALPHABET)] for digit in "0123456789"}


def fnv32a(data: Any) -> int:
    """Return the FNV-1a hash of text, bytes or JSON data, whose keys are sorted so that equal data hash alike."""
    if isinstance(data, str):
        data = data.encode()
    elif not isinstance(data, bytes):
        data = orjson.dumps(data, option=orjson.OPT_SORT_KEYS)
    value = 0x811C9DC5
    for byte in data:
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value


def safe_encode(digits: str) -> str:
    """Return a decimal number in the alphabet of generated names."""
    return digits.translate(_SAFE)


def short_hash(data: Any) -> str:
    """Up to ten characters that stand for the data: text, bytes or JSON data."""
    return safe_encode(str(fnv32a(data)))
