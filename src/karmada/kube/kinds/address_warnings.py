"""Warnings about IP addresses and CIDRs that are accepted, but not in canonical form."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

_LATER = "will be considered invalid in a future Kubernetes release"


def ip_warnings(path: str, text: str) -> Iterator[str]:
    plain = _plain_ip(text)
    if plain is None:
        return
    if _is_odd(text):
        yield f'{path}: non-standard IP address "{text}" {_LATER}: use "{plain}"'
    elif ":" in text and plain != text:
        yield f'{path}: IPv6 address "{text}" should be in RFC 5952 canonical format ("{plain}")'


def cidr_warnings(path: str, text: str) -> Iterator[str]:
    address, _, length = text.partition("/")
    plain = _plain_ip(address)
    if plain is None or not length.isdigit():
        return
    try:
        network = ipaddress.ip_network(f"{plain}/{int(length)}", strict=False)
    except ValueError:
        return
    host_bits = str(network.network_address) != plain
    if _is_odd(address) or host_bits or length != str(int(length)):
        yield f'{path}: non-standard CIDR value "{text}" {_LATER}: use "{network}"'
    elif ":" in text and str(network) != text:
        yield f'{path}: IPv6 CIDR value "{text}" should be in RFC 5952 canonical format ("{network}")'


def _is_odd(text: str) -> bool:
    """Leading zeros in IPv4, or an IPv4-mapped IPv6 address."""
    last = text.rpartition(":")[2]
    return ("." in text and ":" in text) or any(
        len(p) > 1 and p.startswith("0") for p in last.split(".") if "." in last
    )


def _plain_ip(text: str) -> str | None:
    prefix, colon, last = text.rpartition(":")
    if "." in last:
        last = ".".join(part.lstrip("0") or "0" for part in last.split("."))
    try:
        address = ipaddress.ip_address(prefix + colon + last)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)
