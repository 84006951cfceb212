"""HTTPS from the API server to others: webhooks and aggregated servers.

One pool of connections, kept open and shared by all who call the same address with the same trust. The name that a
server must prove is apart from the address that is dialled: a Service is called `<name>.<namespace>.svc` wherever its
endpoint is. `why` describes a failure in the words that Kubernetes' own clients use, for these texts reach users.
"""

from __future__ import annotations

import asyncio
import errno
import os
import re
import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from karmada.kube.objects.memo import Memo
from karmada.kube.server.addresses.service_routing import Address
from karmada.kube.server.outbound.cluster_resolver import cluster_resolver
from karmada.kube.server.outbound.socks import SocksConnector

_UNKNOWN_AUTHORITY = frozenset({18, 19, 20, 21})
_EXPIRED = frozenset({9, 10})
_WRONG_NAME = frozenset({62, 64})
_DIALLED = re.compile(r"\('([^']+)', (\d+)")
_CONNECT_SECONDS = 30.0
_MOST_CONTEXTS = 256


class Trust(NamedTuple):
    """Trusted servers: certificates signed by `ca_pem`, by the system's authorities (none given), or anybody."""

    ca_pem: bytes = b""
    insecure: bool = False


class Target(NamedTuple):
    """Where to connect, and which name to expect in the certificate there."""

    address: Address
    server_name: str
    trust: Trust


class BadTrust(ValueError):
    """A caBundle that holds no certificates."""


class Outbound:
    """`client_certificate` (certificate and key file) is the client certificate, sent if the server requests one."""

    def __init__(self, client_certificate: tuple[Path, Path] | None = None) -> None:
        self._client_certificate = client_certificate
        self._contexts: Memo[Trust, ssl.SSLContext] = Memo(_MOST_CONTEXTS)
        self._sessions: dict[str, aiohttp.ClientSession] = {}
        """Sessions by the SOCKS proxy they go through; "" for all that does not."""

    def reload(self) -> None:
        """Read the client certificate again; connections with the former one are not used for new requests."""
        self._contexts.clear()

    def tls(self, trust: Trust) -> ssl.SSLContext:
        context = self._contexts.get(trust)
        if context is None:
            context = self._contexts.put(trust, self._new_context(trust))
        return context

    def _new_context(self, trust: Trust) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        if trust.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif trust.ca_pem:
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
            try:
                context.load_verify_locations(cadata=trust.ca_pem.decode("ascii"))
            except (ssl.SSLError, UnicodeDecodeError) as error:
                raise BadTrust("unable to load root certificates: unable to parse bytes as PEM block") from error
        else:
            context.load_default_certs(ssl.Purpose.SERVER_AUTH)
        if self._client_certificate is not None:
            context.load_cert_chain(*self._client_certificate)
        return context

    def request(
        self,
        method: str,
        target: Target,
        path: str,
        *,
        headers: Iterable[tuple[str, str]] = (),
        data: Any = None,
        seconds: float | None = None,
    ) -> Any:
        """Return an aiohttp request context manager; `path` is encoded and may have a query."""
        url = URL(f"https://{target.address}{path}", encoded=True)
        return self.send(
            method, url, target.trust, headers=headers, data=data, seconds=seconds, server_name=target.server_name
        )

    def send(
        self,
        method: str,
        url: URL,
        trust: Trust | ssl.SSLContext,
        *,
        headers: Iterable[tuple[str, str]] = (),
        data: Any = None,
        seconds: float | None = None,
        server_name: str | None = None,
        proxy: str = "",
        proxy_headers: Iterable[tuple[str, str]] = (),
    ) -> Any:
        """To any URL, directly or through an HTTP or SOCKS5 proxy; an aiohttp request context manager.

        `trust` is a context for those that have a client certificate of their own.
        """
        socks = proxy if proxy.startswith("socks5") else ""
        if socks:
            proxy = ""
        return self._session(socks).request(
            method,
            url,
            headers=CIMultiDict(headers),
            data=data,
            ssl=trust if isinstance(trust, ssl.SSLContext) else self.tls(trust),
            server_hostname=server_name,
            proxy=proxy or None,
            proxy_headers=CIMultiDict(proxy_headers) if proxy else None,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=seconds, sock_connect=_CONNECT_SECONDS),
        )

    def _session(self, socks: str) -> aiohttp.ClientSession:
        session = self._sessions.get(socks)
        if session is None or session.closed:
            connector = (
                SocksConnector(socks, limit=0, keepalive_timeout=30)
                if socks
                else aiohttp.TCPConnector(limit=0, keepalive_timeout=30, ttl_dns_cache=10, resolver=cluster_resolver())
            )
            session = self._sessions[socks] = aiohttp.ClientSession(
                connector=connector,
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
                read_bufsize=1 << 18,
            )
        return session

    async def close(self) -> None:
        for session in self._sessions.values():
            await session.close()
        self._sessions.clear()


def why(error: BaseException, target: Target) -> str:
    """Return what went wrong, as Go's HTTP client puts it."""
    if isinstance(error, TimeoutError | asyncio.TimeoutError):
        return "context deadline exceeded"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"dial tcp: lookup {target.address.host}: no such host"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return _certificate(error.certificate_error, target)
    if isinstance(error, ssl.SSLCertVerificationError):
        return _certificate(error, target)
    if isinstance(error, aiohttp.ClientConnectorSSLError):
        return _tls(error.os_error)
    if isinstance(error, ssl.SSLError):
        return _tls(error)
    if isinstance(error, aiohttp.ClientConnectorError):
        return _dial(error.os_error, target)
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "EOF"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "unexpected EOF"
    if isinstance(error, OSError):
        return _dial(error, target) if error.errno == errno.ECONNREFUSED else _errno(error)
    return str(error) or type(error).__name__


def _certificate(error: Exception, target: Target) -> str:
    prefix = "tls: failed to verify certificate: x509: "
    if not isinstance(error, ssl.SSLCertVerificationError):
        return prefix + str(error)
    if error.verify_code in _UNKNOWN_AUTHORITY:
        return prefix + "certificate signed by unknown authority"
    if error.verify_code in _EXPIRED:
        return prefix + "certificate has expired or is not yet valid"
    if error.verify_code in _WRONG_NAME:
        return f"{prefix}certificate is not valid for {target.server_name}"
    return prefix + error.verify_message


def _tls(error: OSError) -> str:
    reason = getattr(error, "reason", None) or ""
    if reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE"):
        return "http: server gave HTTP response to HTTPS client"
    return f"tls: {reason.replace('_', ' ').lower() or error}"


def _dial(error: OSError, target: Target) -> str:
    dialled = _DIALLED.search(str(error))
    address = Address(dialled[1], int(dialled[2])) if dialled else target.address
    return f"dial tcp {address}: connect: {_errno(error)}"


def _errno(error: OSError) -> str:
    return os.strerror(error.errno).lower() if error.errno else str(error) or type(error).__name__
