"""The rules that protect a viewer from other web sites, and the dashboard from guesses: plain functions of headers.

A browser sends cookies and client certificates along with requests that another site causes. So every unsafe request
must come from a page of ours (Origin, Sec-Fetch-Site) and carry the token of its session; a name that points here
without being ours (DNS rebinding) is refused by its Host header; and no page may run or load what is not served here.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from karmada.kube.objects.clock import Clock
from karmada.kube.objects.memo import Memo

SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
CSRF_HEADER: Final = "X-CSRF-Token"
CSRF_FIELD: Final = "csrf"
MAX_BODY: Final = 1024 * 1024
MAX_LOGIN: Final = 256 * 1024
"""The limit of what is sent by somebody who is not logged in."""
_SEGMENT: Final = re.compile(r"[^/\\%?#\x00-\x20\x7f]+")
_LOCAL: Final = re.compile(r"/(?![/\\])[\x21-\x5b\x5d-\x7e]*")
_HSTS: Final = "max-age=31536000"


def content_security_policy(nonce: str) -> str:
    """Allow only what is served here; `nonce` lets libraries add <style> elements that our own scripts have marked."""
    return "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            f"style-src 'self' 'nonce-{nonce}'",
            "img-src 'self' data:",
            "font-src 'self'",
            "connect-src 'self'",
            "form-action 'self'",
            "base-uri 'none'",
            "frame-ancestors 'none'",
        )
    )


def response_headers(nonce: str, *, host: str) -> dict[str, str]:
    """Return the headers that every response has."""
    headers = {
        "Content-Security-Policy": content_security_policy(nonce),
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "same-origin",
        "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
    }
    if not is_loopback(host):
        headers["Strict-Transport-Security"] = _HSTS
    return headers


def host_of(header: str) -> str:
    """Return the Host header without its port."""
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.partition(":")[0].lower()


def is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def host_refused(header: str, names: Collection[str]) -> str:
    """Return why a request with this Host header is refused; "" if it is not.

    An address cannot be rebound, so any is accepted; a name only if the dashboard is known by it.
    """
    host = host_of(header)
    if not host:
        return "the request has no Host header"
    try:
        ipaddress.ip_address(host)
    except ValueError:
        if host == "localhost" or host in names:
            return ""
        return f'the dashboard is not known as "{host}": add the name with --dashboard-host (component: --host)'
    return ""


def cross_site(method: str, headers: Mapping[str, str], *, navigation: bool = False) -> str:
    """Return why a request seems to be caused by another site; "" if it does not.

    Links from elsewhere may open pages (`navigation`), which shows them to the viewer only.
    """
    site = headers.get("Sec-Fetch-Site", "")
    if method in SAFE:
        if site in ("", "same-origin", "none") or navigation:
            return ""
        return f"the request was made by another site (Sec-Fetch-Site: {site})"
    origin = headers.get("Origin", "")
    if origin:
        if origin.lower() != f"https://{headers.get('Host', '').lower()}":
            return f"the request was made by another site (Origin: {origin})"
        return ""
    if site != "same-origin":
        return "the request says neither by Origin nor by Sec-Fetch-Site that it was made by this site"
    return ""


def path_refused(names: Iterable[str]) -> str:
    """Return why names of a request cannot be parts of an API path, so that they lead elsewhere; "" if they can."""
    for name in names:
        if not _SEGMENT.fullmatch(name) or name in (".", ".."):
            return f"{name!r} is not a name"
    return ""


def local(target: str) -> str:
    """Return where to go after the login: a path here, never another site.

    Browsers drop tabs and newlines in URLs and take a backslash for a slash, so none of them is accepted.
    """
    return target if _LOCAL.fullmatch(target) else "/"


def csrf_matches(expected: str, given: str) -> bool:
    return bool(given) and hmac.compare_digest(expected.encode(), given.encode())


class AttemptLimit:
    """How often an address may try to log in: `burst` at once, then one per `seconds`. Successes do not count."""

    def __init__(self, clock: Clock, *, burst: int = 10, seconds: float = 6.0, kept: int = 10_000) -> None:
        self._clock = clock
        self._burst, self._seconds = burst, seconds
        self._used: Memo[str, tuple[float, float]] = Memo(kept)
        """Attempts not yet forgiven, and when that was computed."""

    def _current(self, address: str) -> float:
        used, then = self._used.get(address) or (0.0, 0.0)
        return max(0.0, used - (self._clock.monotonic() - then) / self._seconds)

    def wait(self, address: str) -> float:
        """Return seconds until the address may try again; 0 if it may now."""
        return max(0.0, (self._current(address) - self._burst + 1) * self._seconds)

    def failed(self, address: str) -> None:
        self._used.put(address, (self._current(address) + 1, self._clock.monotonic()))
