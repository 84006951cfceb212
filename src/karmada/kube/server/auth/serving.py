"""TLS of a server whose certificate and client authorities change while it listens.

A listening socket keeps the context it was opened with, and OpenSSL can add authorities to a context but not take one
away. So every change makes a whole new context, and the SNI callback (called for each handshake, with a name or
without) moves the connection over to it. Connections that are open stay as they are.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from karmada.kube.objects.clock import Clock
from karmada.kube.runtime.logging import get_logger

FILES_SECONDS = 60.0
"""How often files that somebody else writes are looked at."""
TLS_VERSIONS: Final = {
    "VersionTLS10": ssl.TLSVersion.TLSv1,
    "VersionTLS11": ssl.TLSVersion.TLSv1_1,
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}
log = get_logger("certificates")


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsConfig:
    """Certificates that are given in files; without them, those of the data directory are used."""

    cert_file: Path | None = None
    key_file: Path | None = None
    client_ca_file: Path | None = None
    """Authorities of client certificates, besides the server's own."""
    minimum: str = "VersionTLS12"

    def __post_init__(self) -> None:
        if (self.cert_file is None) is not (self.key_file is None):
            raise ValueError("--tls-cert-file and --tls-private-key-file are needed together")
        if self.minimum not in TLS_VERSIONS:
            raise ValueError(f'--tls-min-version: "{self.minimum}" is not one of {", ".join(TLS_VERSIONS)}')

    @property
    def files(self) -> tuple[Path, ...]:
        return tuple(path for path in (self.cert_file, self.key_file, self.client_ca_file) if path is not None)


def server_context(minimum: ssl.TLSVersion) -> ssl.SSLContext:
    """Without tickets: Kubernetes' clients resume no sessions, and they are a third of a handshake."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = minimum
    context.num_tickets = 0
    return context


class ServingTls:
    def __init__(self, minimum: str = "VersionTLS12") -> None:
        self._minimum = TLS_VERSIONS[minimum]
        self._current: ssl.SSLContext | None = None
        self._listening: ssl.SSLContext | None = None

    @property
    def context(self) -> ssl.SSLContext:
        """Return what to listen with, once something is loaded."""
        assert self._listening is not None, "nothing is loaded yet"
        return self._listening

    def load(self, certificate: Path, key: Path, client_ca_pem: bytes) -> None:
        """For the connections from now on; OSError or ValueError for unusable files, and the former ones stay."""
        fresh = self._new(certificate, key, client_ca_pem)
        if self._listening is None:
            self._listening = fresh
            fresh.sni_callback = self._move_to_current
        self._current = fresh

    def _new(self, certificate: Path, key: Path, client_ca_pem: bytes) -> ssl.SSLContext:
        context = server_context(self._minimum)
        context.load_cert_chain(certificate, key)
        context.verify_mode = ssl.CERT_OPTIONAL
        if client_ca_pem:
            context.load_verify_locations(cadata=client_ca_pem.decode("ascii"))
        context.set_alpn_protocols(["http/1.1"])
        return context

    def _move_to_current(self, tls: ssl.SSLSocket | ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        if self._current is not None:
            tls.context = self._current


class FollowedServing:
    """A server's certificate in two files, which `renew` or somebody else renews; `trust` says who its clients are."""

    def __init__(
        self, certificate: Path, key: Path, minimum: str, clock: Clock, renew: Callable[[float], None] | None = None
    ) -> None:
        """OSError or ValueError for files that cannot be used."""
        self._files = certificate, key
        self._clock = clock
        self._renew = renew
        if renew is not None:
            renew(clock.now())
        self._tls = ServingTls(minimum)
        self._client_ca_pem = b""
        self._contents: tuple[bytes, ...] = ()
        self._load()
        self.context = self._tls.context

    def trust(self, client_ca_pem: bytes) -> None:
        """From now on, client certificates of these authorities and no others."""
        self._client_ca_pem = client_ca_pem
        self._contents = ()
        self._refresh()

    def _load(self) -> None:
        contents = self._read()
        self._tls.load(*self._files, self._client_ca_pem)
        self._contents = contents

    def _read(self) -> tuple[bytes, ...]:
        return tuple(path.read_bytes() for path in self._files)

    def _refresh(self) -> None:
        """Load changed files; what cannot be loaded now is tried again at the next look."""
        try:
            if self._renew is not None:
                self._renew(self._clock.now())
            if self._read() != self._contents:
                self._load()
                log.info("The serving certificate and the authorities of clients were reloaded")
        except (OSError, ValueError) as error:
            log.error("Certificates cannot be reloaded; the former ones stay in use", error)

    async def follow(self) -> None:
        """For as long as the server runs."""
        while True:
            await self._clock.sleep(FILES_SECONDS)
            self._refresh()
