"""Kubernetes' own types in expressions: quantities, URLs, IP addresses and networks, versions, named formats.

Each is a Python class of its own that the registry knows, so a value never passes for another kind of value.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import total_ordering
from typing import Any
from urllib.parse import SplitResult, parse_qsl, quote, urlsplit

from karmada.kube.objects import names
from karmada.kube.objects.quantity import Quantity
from karmada.kube.schema import formats
from karmada.kube.schema.cel import types as t
from karmada.kube.schema.cel.registry import define, define_type
from karmada.kube.schema.cel.values import INT_MAX, INT_MIN, NONE, CelError, Opt

S, INT, BOOL = t.STRING, t.INT, t.BOOL


def _compare(a: Any, b: Any) -> int:
    return int(a > b) - int(a < b)


def _ordering(kind: t.Type) -> None:
    define("isLessThan", (kind, kind), BOOL, lambda a, b: a < b, member=True)
    define("isGreaterThan", (kind, kind), BOOL, lambda a, b: a > b, member=True)
    define("compareTo", (kind, kind), INT, _compare, member=True)


def _succeeds(fn: Callable[..., Any]) -> Callable[..., bool]:
    def test(*args: Any) -> bool:
        try:
            fn(*args)
        except CelError:
            return False
        return True

    return test


def _quantity(text: str) -> Quantity:
    try:
        return Quantity.parse(text)
    except ValueError as error:
        raise CelError(str(error)) from None


_NANO = 10**9


def _is_integer(value: Quantity) -> bool:
    return value.nano % _NANO == 0 and INT_MIN <= value.nano // _NANO <= INT_MAX


def _as_integer(value: Quantity) -> int:
    if not _is_integer(value):
        raise CelError("cannot convert value to integer")
    return value.nano // _NANO


def _quantities() -> None:
    q = t.QUANTITY
    define_type(q, Quantity)
    define("quantity", (S,), q, _quantity)
    define("isQuantity", (S,), BOOL, _succeeds(_quantity))
    define("isInteger", (q,), BOOL, _is_integer, member=True)
    define("asInteger", (q,), INT, _as_integer, member=True)
    define("asApproximateFloat", (q,), t.DOUBLE, lambda v: v.nano / _NANO, member=True)
    define("sign", (q,), INT, lambda v: _compare(v.nano, 0), member=True)
    define("add", (q, q), q, lambda a, b: a + b, member=True)
    define("add", (q, INT), q, lambda a, b: a + Quantity.of(b), member=True)
    define("sub", (q, q), q, lambda a, b: a - b, member=True)
    define("sub", (q, INT), q, lambda a, b: a - Quantity.of(b), member=True)
    _ordering(q)


@dataclass(frozen=True, slots=True)
class Url:
    parts: SplitResult

    @property
    def weight(self) -> int:
        return sum(map(len, self.parts)) >> 6

    @property
    def host(self) -> str:
        return self.parts.netloc.rpartition("@")[2]

    @property
    def hostname(self) -> str:
        host = self.host
        if host.startswith("["):
            return host[1:].partition("]")[0]
        return host.partition(":")[0]

    @property
    def port(self) -> str:
        rest = self.host.rpartition("]")[2]
        return rest.partition(":")[2]

    def query(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for key, value in parse_qsl(self.parts.query, keep_blank_values=True):
            found.setdefault(key, []).append(value)
        return found


def _url(text: str) -> Url:
    if not formats.is_uri(text):
        raise CelError(f'URL parse error during conversion from string: parse "{text}": invalid URI for request')
    return Url(urlsplit(text))


def _urls() -> None:
    u = t.URL
    define_type(u, Url)
    define("url", (S,), u, _url)
    define("isURL", (S,), BOOL, _succeeds(_url))
    define("getScheme", (u,), S, lambda v: v.parts.scheme, member=True)
    define("getHost", (u,), S, lambda v: v.host, member=True)
    define("getHostname", (u,), S, lambda v: v.hostname, member=True)
    define("getPort", (u,), S, lambda v: v.port, member=True)
    define(
        "getEscapedPath", (u,), S, lambda v: quote(v.parts.path, safe="/%:@!$&'()*+,;=~-._"), member=True, sized=True
    )
    define("getQuery", (u,), t.map_of(S, t.list_of(S)), lambda v: v.query(), member=True, sized=True)


IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class Ip:
    address: IpAddress

    def __str__(self) -> str:
        return str(self.address)


@dataclass(frozen=True, slots=True)
class Cidr:
    address: IpAddress
    length: int

    def __str__(self) -> str:
        return f"{self.address}/{self.length}"

    def network(self) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
        return ipaddress.ip_network(str(self), strict=False)

    def holds(self, address: IpAddress) -> bool:
        return address.version == self.address.version and address in self.network()

    def covers(self, other: Cidr) -> bool:
        return other.length >= self.length and self.holds(other.address)


def _ip(text: str) -> Ip:
    if not formats.is_ip(text):
        raise CelError(f'IP Address "{text}" parse error during conversion from string: unable to parse IP')
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise CelError(f'IP Address "{text}" parse error during conversion from string: IPv4-mapped IPv6 address')
    return Ip(address)


def _cidr(text: str) -> Cidr:
    if not formats.is_cidr(text):
        raise CelError(f'network address parse error during conversion from string: invalid CIDR address "{text}"')
    address, _, length = text.partition("/")
    return Cidr(_ip(address).address, int(length))


def _is_canonical(text: str) -> bool:
    return str(_ip(text)) == text


_GLOBAL_EXCLUDED = ("is_unspecified", "is_loopback", "is_multicast", "is_link_local")


def _is_global_unicast(ip: Ip) -> bool:
    if str(ip.address) == "255.255.255.255":
        return False
    return not any(getattr(ip.address, attribute) for attribute in _GLOBAL_EXCLUDED)


_LINK_LOCAL_MULTICAST = (ipaddress.ip_network("224.0.0.0/24"), ipaddress.ip_network("ff02::/16"))


def _is_link_local_multicast(ip: Ip) -> bool:
    return any(ip.address.version == net.version and ip.address in net for net in _LINK_LOCAL_MULTICAST)


def _networks() -> None:
    ip, cidr = t.IP, t.CIDR
    define_type(ip, Ip)
    define_type(cidr, Cidr)
    define("ip", (S,), ip, _ip)
    define("isIP", (S,), BOOL, _succeeds(_ip))
    define("ip.isCanonical", (S,), BOOL, _is_canonical)
    define("family", (ip,), INT, lambda v: v.address.version, member=True)
    define("isUnspecified", (ip,), BOOL, lambda v: v.address.is_unspecified, member=True)
    define("isLoopback", (ip,), BOOL, lambda v: v.address.is_loopback, member=True)
    define("isLinkLocalMulticast", (ip,), BOOL, _is_link_local_multicast, member=True)
    define("isLinkLocalUnicast", (ip,), BOOL, lambda v: v.address.is_link_local, member=True)
    define("isGlobalUnicast", (ip,), BOOL, _is_global_unicast, member=True)
    define("string", (ip,), S, str)
    define("cidr", (S,), cidr, _cidr)
    define("isCIDR", (S,), BOOL, _succeeds(_cidr))
    define("containsIP", (cidr, ip), BOOL, lambda c, v: c.holds(v.address), member=True)
    define("containsIP", (cidr, S), BOOL, lambda c, v: c.holds(_ip(v).address), member=True)
    define("containsCIDR", (cidr, cidr), BOOL, lambda c, v: c.covers(v), member=True)
    define("containsCIDR", (cidr, S), BOOL, lambda c, v: c.covers(_cidr(v)), member=True)
    define("ip", (cidr,), ip, lambda c: Ip(c.address), member=True)
    define("masked", (cidr,), cidr, lambda c: Cidr(c.network().network_address, c.length), member=True)
    define("prefixLength", (cidr,), INT, lambda c: c.length, member=True)
    define("string", (cidr,), S, str)


_SEMVER = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?"
    r"(?:\+([0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*))?",
    re.ASCII,
)


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Semver:
    major: int
    minor: int
    patch: int
    pre: tuple[str, ...]

    def _order(self) -> tuple[Any, ...]:
        """Return the sort key: a release comes after its pre-releases, numbers come before words."""
        parts = tuple((0, int(p), "") if p.isdigit() else (1, 0, p) for p in self.pre)
        return (self.major, self.minor, self.patch, not self.pre, parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Semver) and self._order() == other._order()

    def __lt__(self, other: Semver) -> bool:
        return self._order() < other._order()

    def __hash__(self) -> int:
        return hash(self._order())


def _normalized(text: str) -> str:
    """v1.2 → 1.2.0, leading zeros dropped."""
    core = re.match(r"v?([0-9.]*)(.*)", text, re.DOTALL)
    assert core is not None
    numbers = [number.lstrip("0") or ("0" if number else "") for number in core[1].split(".")]
    numbers += ["0"] * (3 - len(numbers))
    return ".".join(numbers) + core[2]


def _semver(text: str, normalize: bool = False) -> Semver:
    match = _SEMVER.fullmatch(_normalized(text) if normalize else text)
    if match is None:
        raise CelError(f'semver parse error during conversion from string: invalid semantic version "{text}"')
    major, minor, patch, pre, _ = match.groups()
    return Semver(int(major), int(minor), int(patch), tuple(pre.split(".")) if pre else ())


def _versions() -> None:
    v = t.SEMVER
    define_type(v, Semver)
    for params in ((S,), (S, BOOL)):
        define("semver", params, v, _semver)
        define("isSemver", params, BOOL, _succeeds(_semver))
    define("major", (v,), INT, lambda s: s.major, member=True)
    define("minor", (v,), INT, lambda s: s.minor, member=True)
    define("patch", (v,), INT, lambda s: s.patch, member=True)
    _ordering(v)


@dataclass(frozen=True, slots=True)
class Format:
    name: str
    errors: Callable[[str], list[str]]


def _prefix(check: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """Return whether a text is a prefix of a name, which may end with a dash."""
    return lambda text: check(text[:-1] + "a" if text.endswith("-") else text)


def _test(check: Callable[[str], bool], message: str) -> Callable[[str], list[str]]:
    return lambda text: [] if check(text) else [message]


_FORMATS = {
    name: Format(name, errors)
    for name, errors in (
        ("dns1123Label", names.dns1123_label),
        ("dns1123Subdomain", names.dns1123_subdomain),
        ("dns1035Label", names.dns1035_label),
        ("dns1123LabelPrefix", _prefix(names.dns1123_label)),
        ("dns1123SubdomainPrefix", _prefix(names.dns1123_subdomain)),
        ("dns1035LabelPrefix", _prefix(names.dns1035_label)),
        ("qualifiedName", names.qualified_name),
        ("labelValue", names.label_value),
        ("uri", _test(formats.is_uri, "invalid URI")),
        ("uuid", _test(formats.is_uuid, "does not match the UUID format")),
        ("byte", _test(formats.is_base64, "invalid base64")),
        ("date", _test(formats.is_date, "invalid date")),
        ("datetime", _test(formats.is_datetime, "invalid datetime")),
    )
}


def _validate(format: Format, text: str) -> Opt:  # noqa: A002
    errors = format.errors(text)
    return Opt(errors) if errors else NONE


def _formats() -> None:
    f = t.FORMAT
    define_type(f, Format)

    def named(name: str) -> Opt:
        return Opt(_FORMATS[name]) if name in _FORMATS else NONE

    def constant(value: Format) -> Callable[[], Format]:
        return lambda: value

    define("format.named", (S,), t.optional_of(f), named)
    for name, value in _FORMATS.items():
        define(f"format.{name}", (), f, constant(value))
    define("validate", (f, S), t.optional_of(t.list_of(S)), _validate, member=True)


def _pointers() -> None:
    define("jsonpatch.escapeKey", (S,), S, lambda key: key.replace("~", "~0").replace("/", "~1"))


_quantities()
_pointers()
_urls()
_networks()
_versions()
_formats()
