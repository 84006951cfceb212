"""The serving certificate that a server without one makes for itself, under an authority that it keeps.

Clients trust `ca.crt`, so the authority stays when the certificate is renewed. A pair of files that somebody else has
put into the directory is used as it is and never replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from karmada.kube.runtime.logging import get_logger
from karmada.kube.server.auth.files import locked, private_directory, read_optional
from karmada.kube.server.auth.pki import RENEW_BEFORE, SERVER_USAGES, CertificateAuthority, Leaf, LeafStore

log = get_logger("certificates")
_NAME = "apiserver"


class OwnServing:
    def __init__(self, directory: Path, common_name: str, names: Sequence[str]) -> None:
        self._directory = directory
        self._common_name = common_name
        self._names = tuple(names)
        self.files = directory / f"{_NAME}.crt", directory / f"{_NAME}.key"

    def renew(self, now: float) -> None:
        """Make the pair if there is none, and a new one before its certificate ends."""
        private_directory(self._directory)
        with locked(self._directory):
            store = LeafStore(self._directory, now)
            certificate, key = (read_optional(path) for path in self.files)
            if certificate is not None and key is not None and not store.made(_NAME, certificate, key):
                if not self._made_without_a_key(certificate) or _days_left(certificate, now):
                    return
                log.warning(
                    "The authority is new, since the key of the former one was not kept: publish the new ca.crt"
                )
                (self._directory / "ca.crt").unlink()
            authority = CertificateAuthority.load_or_create(
                self._directory, "ca", common_name=f"{self._common_name}-ca"
            )
            store.obtain(Leaf(_NAME, authority, self._common_name, (), self._names, SERVER_USAGES))

    def _made_without_a_key(self, certificate: bytes) -> bool:
        """Return whether an earlier version made it, which did not keep the key of its authority."""
        from cryptography import x509

        ours = read_optional(self._directory / "ca.crt")
        if ours is None or (self._directory / "ca.key").exists():
            return False
        authority = x509.load_pem_x509_certificate(ours)
        issuer = x509.load_pem_x509_certificate(certificate).issuer
        return authority.subject == issuer and f"CN={self._common_name}-ca" in issuer.rfc4514_string()


def _days_left(certificate: bytes, now: float) -> bool:
    from cryptography import x509

    return x509.load_pem_x509_certificate(certificate).not_valid_after_utc.timestamp() - now > RENEW_BEFORE
