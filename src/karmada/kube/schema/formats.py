"""String formats that a custom resource's schema may require: a table from the format's name to its check.

Dashes in a format's name do not count ("date-time" is "datetime"). A format that is not in the table is not enforced.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import ipaddress
import re
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from karmada.kube.objects import names
from karmada.kube.objects.times import parse_duration_ns

Check = Callable[[str], bool]


def _pattern(text: str) -> Check:
    match = re.compile(text, re.ASCII).fullmatch
    return lambda value: match(value) is not None


_OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_CONTROL = re.compile(r"[\x00-\x20\x7f]")
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:")
_BAD_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")


def is_uri(value: str) -> bool:
    """Return what may stand in an HTTP request line: an absolute URI or an absolute path."""
    if not value or _CONTROL.search(value):
        return False
    if value.startswith("/"):
        return _BAD_ESCAPE.search(value.partition("?")[0]) is None
    if not _SCHEME.match(value) or _BAD_ESCAPE.search(value.partition("?")[0]):
        return False
    try:
        parts = urlsplit(value)
        return parts.port is None or parts.port >= 0
    except ValueError:
        return False


_HOSTNAME = re.compile(
    r"[a-zA-Z](?:(?:[-0-9a-zA-Z]+)?[0-9a-zA-Z])?(?:\.[a-zA-Z](?:(?:[-0-9a-zA-Z]+)?[0-9a-zA-Z])?)*", re.ASCII
)


def _is_hostname(value: str) -> bool:
    return len(value) <= 255 and _HOSTNAME.fullmatch(value) is not None and all(len(p) <= 63 for p in value.split("."))


_LOCAL = re.compile(r"""(?:[^\s"(),:;<>@\[\\\]]+|"(?:[^"\\]|\\.)*")""")
_ADDRESS = re.compile(r"(?:[^<>]*<([^<>]+)>|([^<>]+))")


def _is_email(value: str) -> bool:
    match = _ADDRESS.fullmatch(value.strip())
    if match is None:
        return False
    local, at, domain = (match[1] or match[2]).rpartition("@")
    dotted = local and not local.startswith(".") and not local.endswith(".") and ".." not in local
    return bool(at and domain and dotted and _LOCAL.fullmatch(local) and re.fullmatch(r"[^\s()<>@,;:\\\"]+", domain))


def is_ip(value: str) -> bool:
    if "%" in value:
        return False
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return False
    return True


def is_cidr(value: str) -> bool:
    address, slash, length = value.partition("/")
    if not slash or not is_ip(address) or not length.isdigit() or not length.isascii():
        return False
    limit = 128 if ":" in address else 32
    return int(length) <= limit and (length == "0" or not length.startswith("0"))


_MAC = re.compile(
    r"(?:[0-9a-f]{2}(?::[0-9a-f]{2}){5}|[0-9a-f]{2}(?:-[0-9a-f]{2}){5}|[0-9a-f]{4}(?:\.[0-9a-f]{4}){2}"
    r"|[0-9a-f]{2}(?::[0-9a-f]{2}){7}|[0-9a-f]{2}(?:-[0-9a-f]{2}){7}|[0-9a-f]{4}(?:\.[0-9a-f]{4}){3}"
    r"|[0-9a-f]{2}(?::[0-9a-f]{2}){19}|[0-9a-f]{2}(?:-[0-9a-f]{2}){19}|[0-9a-f]{4}(?:\.[0-9a-f]{4}){9})",
    re.IGNORECASE,
)


def _uuid(version: str, variant: str = "[0-9a-f]") -> Check:
    match = re.compile(
        rf"[0-9a-f]{{8}}-?[0-9a-f]{{4}}-?{version}[0-9a-f]{{3}}-?{variant}[0-9a-f]{{3}}-?[0-9a-f]{{12}}", re.IGNORECASE
    ).fullmatch
    return lambda value: match(value) is not None


is_uuid: Final[Check] = _uuid("[0-9a-f]")


def _digits(value: str) -> str:
    return value.replace("-", "").replace(" ", "")


def _is_isbn10(value: str) -> bool:
    digits = _digits(value)
    if not re.fullmatch(r"\d{9}[\dX]", digits, re.ASCII):
        return False
    return sum((i + 1) * (10 if c == "X" else int(c)) for i, c in enumerate(digits)) % 11 == 0


def _is_isbn13(value: str) -> bool:
    digits = _digits(value)
    if not re.fullmatch(r"\d{13}", digits, re.ASCII):
        return False
    return sum(int(c) * (3 if i % 2 else 1) for i, c in enumerate(digits)) % 10 == 0


_CARD = re.compile(
    r"(?:4\d{12}(?:\d{3})?|5[1-5]\d{14}|6(?:011|5\d\d)\d{12}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|(?:2131|1800|35\d{3})\d{11})"
)


def _is_credit_card(value: str) -> bool:
    digits = re.sub(r"[^0-9]+", "", value)
    if not _CARD.fullmatch(digits):
        return False
    doubled = (int(c) * 2 if i % 2 else int(c) for i, c in enumerate(reversed(digits)))
    return sum(n - 9 if n > 9 else n for n in doubled) % 10 == 0


def is_base64(value: str) -> bool:
    try:
        base64.b64decode(value.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_TIME = re.compile(r"(\d{2}):(\d{2}):(\d{2})(?:\.\d+)?(?:z|[+-]\d{2}:\d{2})", re.ASCII)


def is_date(value: str) -> bool:
    if not _DATE.fullmatch(value):
        return False
    try:
        datetime.date.fromisoformat(value)
    except ValueError:
        return False
    return True


def is_datetime(value: str) -> bool:
    date, _, time = value.lower().partition("t")
    match = _TIME.fullmatch(time)
    return match is not None and is_date(date) and int(match[1]) < 24 and int(match[2]) < 60 and int(match[3]) < 60


_WORDED = re.compile(
    r"\s*\d+\s*(?:nanoseconds?|ns|microseconds?|us|µs|milliseconds?|ms|seconds?|s|minutes?|m|hours?|h|days?|d|weeks?|w)"
    r"(?:\s*\d+\s*(?:nanoseconds?|ns|microseconds?|us|µs|milliseconds?|ms|seconds?|s|minutes?|m|hours?|h|days?|d|weeks?|w))*\s*"
)


def is_duration(value: str) -> bool:
    """Return a Go duration, or amounts with worded units ("3 days")."""
    try:
        parse_duration_ns(value)
    except ValueError:
        return _WORDED.fullmatch(value) is not None
    return True


_CHECKS: Final[dict[str, Check]] = {
    "bsonobjectid": _pattern(r"[0-9a-fA-F]{24}"),
    "uri": is_uri,
    "email": _is_email,
    "hostname": _is_hostname,
    "ipv4": lambda value: "." in value and is_ip(value),
    "ipv6": lambda value: ":" in value and is_ip(value),
    "cidr": is_cidr,
    "mac": lambda value: _MAC.fullmatch(value) is not None,
    "uuid": is_uuid,
    "uuid3": _uuid("3"),
    "uuid4": _uuid("4", "[89ab]"),
    "uuid5": _uuid("5", "[89ab]"),
    "isbn": lambda value: _is_isbn10(value) or _is_isbn13(value),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "creditcard": _is_credit_card,
    "ssn": _pattern(r"\d{3}[- ]?\d{2}[- ]?\d{4}"),
    "hexcolor": _pattern(r"#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "rgbcolor": _pattern(rf"rgb\(\s*{_OCTET}\s*,\s*{_OCTET}\s*,\s*{_OCTET}\s*\)"),
    "byte": is_base64,
    "date": is_date,
    "duration": is_duration,
    "datetime": is_datetime,
    "k8sshortname": lambda value: not names.dns1123_label(value),
    "k8slongname": lambda value: not names.dns1123_subdomain(value),
}


def check_of(name: str) -> Check | None:
    """Return the check of a format; None when the format is not enforced."""
    return _CHECKS.get(name.replace("-", "")) if name else None
