"""Who a client certificate stands for.

The TLS layer has verified the chain against both authorities at once; here the issuing key shows which of the two it
was, and so whether the certificate names a user or vouches for a front proxy. All that is read from a certificate is
kept by its bytes; a request with a known certificate costs one lookup and two comparisons with the clock.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from karmada.kube.kinds.usages import ANY_OID, CLIENT_AUTH_OID
from karmada.kube.objects.memo import Memo
from karmada.kube.server.auth.identity import authenticated
from karmada.kube.server.auth.user import User

if TYPE_CHECKING:
    from cryptography import x509

CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"
_UID_OID = "1.3.6.1.4.1.57683.2"
_KEPT = 4096


@dataclass(frozen=True, slots=True)
class Peer:
    """`user` is set for a user's certificate, `proxy` for one of a front proxy; neither when it is of no use here."""

    common_name: str
    user: User | None
    proxy: bool
    not_before: float
    not_after: float

    def valid_at(self, now: float) -> bool:
        return self.not_before <= now <= self.not_after


class PeerCertificates:
    def __init__(self, client_ca_pem: bytes, front_proxy_ca_pem: bytes = b"") -> None:
        self._peers: Memo[bytes, Peer] = Memo(_KEPT)
        self.trust(client_ca_pem, front_proxy_ca_pem)

    def trust(self, client_ca_pem: bytes, front_proxy_ca_pem: bytes) -> None:
        """From now on only these: a connection that another authority's certificate opened names nobody any more."""
        self._client_ca_pem = client_ca_pem
        self._front_proxy_ca_pem = front_proxy_ca_pem
        self._cas: tuple[list[x509.Certificate], list[x509.Certificate]] | None = None
        self._peers.clear()

    def identify(self, der: bytes) -> Peer:
        peer = self._peers.get(der)
        if peer is None:
            peer = self._read(der)
            self._peers.put(der, peer)
        return peer

    def _authorities(self) -> tuple[list[x509.Certificate], list[x509.Certificate]]:
        from cryptography import x509

        def load(pem: bytes) -> list[x509.Certificate]:
            return x509.load_pem_x509_certificates(pem) if pem.strip() else []

        if self._cas is None:
            self._cas = load(self._client_ca_pem), load(self._front_proxy_ca_pem)
        return self._cas

    def _read(self, der: bytes) -> Peer:
        from cryptography import x509
        from cryptography.x509.oid import NameOID

        unreadable = (ValueError, x509.DuplicateExtension, x509.UnsupportedGeneralNameType)
        try:
            cert = x509.load_der_x509_certificate(der)
            names = [str(a.value) for a in cert.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
            usable = _for_clients(cert)
        except unreadable:
            return Peer("", None, False, 0.0, 0.0)
        clients, proxies = self._authorities()
        common_name = names[-1] if names else ""
        return Peer(
            common_name=common_name,
            user=_user(cert, common_name, der) if usable and common_name and _issued_by(cert, clients) else None,
            proxy=usable and _issued_by(cert, proxies),
            not_before=cert.not_valid_before_utc.timestamp(),
            not_after=cert.not_valid_after_utc.timestamp(),
        )


def _issued_by(cert: x509.Certificate, authorities: list[x509.Certificate]) -> bool:
    from cryptography.exceptions import InvalidSignature

    for authority in authorities:
        try:
            cert.verify_directly_issued_by(authority)
        except (ValueError, TypeError, InvalidSignature):
            continue
        return True
    return False


def _for_clients(cert: x509.Certificate) -> bool:
    """Return whether a certificate is for clients; one without extended usages may be used for anything."""
    from cryptography import x509

    try:
        usages = cert.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return True
    return any(usage.dotted_string in (CLIENT_AUTH_OID, ANY_OID) for usage in usages)


def _user(cert: x509.Certificate, common_name: str, der: bytes) -> User | None:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    organizations = [str(a.value) for a in cert.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
    uids = [str(a.value) for a in cert.subject.get_attributes_for_oid(x509.ObjectIdentifier(_UID_OID))]
    if len(uids) > 1:
        return None
    credential = f"X509SHA256={hashlib.sha256(der).hexdigest()}"
    uid = uids[0] if uids else ""
    return authenticated(User(common_name, uid, tuple(organizations), {CREDENTIAL_ID: (credential,)}))
