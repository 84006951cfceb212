"""The certificates of a running server: leaves are renewed before they end, files are read again when they change.

Everything that holds a certificate is notified through `changed`: TLS by itself, and whoever verifies callers, writes
the kubeconfig, publishes the authorities or shows the front-proxy certificate. A file that cannot be used is reported
and changes nothing: a half-written pair is complete at the next look.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from karmada.kube.objects.clock import Clock
from karmada.kube.runtime.logging import get_logger
from karmada.kube.server.auth.frontproxy import FrontProxy, FrontProxyConfig
from karmada.kube.server.auth.pki import Pki
from karmada.kube.server.auth.serving import FILES_SECONDS, ServingTls, TlsConfig

log = get_logger("certificates")


class Credentials:
    def __init__(
        self,
        pki: Pki,
        config: TlsConfig,
        front_proxy: FrontProxyConfig,
        clock: Clock,
        changed: Callable[[], Awaitable[None]],
    ) -> None:
        self._config = config
        self._front_proxy = front_proxy
        self._files = (*config.files, *front_proxy.files)
        self._clock = clock
        self._changed = changed
        self._tls = ServingTls(config.minimum)
        self._contents: tuple[bytes, ...] = ()
        self.client_ca_pem = b""
        """Authorities of users' certificates: the server's own, and those of --client-ca-file."""
        self.root_pem = b""
        """Certificates that clients verify this server by: its authority, and the serving certificate given to it."""
        self.proxies = FrontProxy()
        """The front proxies that may name users."""
        self._load(pki)
        self.context = self._tls.context

    async def follow(self) -> None:
        """For as long as the server runs."""
        while True:
            await self._clock.sleep(FILES_SECONDS)  # also without files: the time of day may be set
            try:
                if self.refresh():
                    await self._changed()
            except (OSError, ValueError) as error:
                log.error("Certificates cannot be reloaded; the former ones stay in use", error)

    def refresh(self) -> bool:
        """Renew what nears its end and read what changed; whether there was anything."""
        renewed = self.pki.renewed(self._clock.now())
        if renewed is self.pki and self._read() == self._contents:
            return False
        self._load(renewed)
        log.info("Certificates were reloaded")
        return True

    @property
    def front_proxy_client_files(self) -> tuple[Path, Path]:
        """Certificate and key by which aggregated servers know this one."""
        given = self._front_proxy
        if given.cert_file is not None and given.key_file is not None:
            return given.cert_file, given.key_file
        return self.pki.front_proxy_client_files

    def _read(self) -> tuple[bytes, ...]:
        return tuple(path.read_bytes() for path in self._files)

    def _load(self, pki: Pki) -> None:
        config = self._config
        contents = self._read()
        added = _certificates(config.client_ca_file) if config.client_ca_file is not None else b""
        client_ca = b"\n".join(part for part in (pki.ca.cert_pem, added) if part)
        proxies = self._front_proxy.trusted(pki.front_proxy_ca.cert_pem)
        serving = pki.serving_files
        if config.cert_file is not None and config.key_file is not None:
            serving = config.cert_file, config.key_file
        self._tls.load(*serving, client_ca + b"\n" + proxies.ca_pem)
        given = config.cert_file.read_bytes() if config.cert_file is not None else b""
        self.client_ca_pem, self.proxies = client_ca, proxies
        self.root_pem = b"\n".join(part for part in (pki.ca.cert_pem, given) if part)
        self.pki, self._contents = pki, contents


def _certificates(path: Path) -> bytes:
    """Return the file, if certificates are in it: TLS would take anything behind the first one."""
    from cryptography import x509

    pem = path.read_bytes()
    try:
        x509.load_pem_x509_certificates(pem)
    except ValueError as error:
        raise ValueError(f"{path}: {error}: give the certificates of authorities in PEM") from error
    return pem
