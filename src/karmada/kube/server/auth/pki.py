"""The keys and certificates of one API server, made on its first start and kept in a private directory.

Two authorities (the cluster's, and the one that front proxies prove themselves with), three leaves (serving, admin,
front-proxy client) and the key that signs service-account tokens. A small index remembers what every leaf was issued
for and by whom; while that still holds, a start only reads files: no key is made and nothing is parsed. A leaf whose
names changed, whose authority changed, whose files were damaged or that nears its end is issued anew, at the start
and (`renewed`) while the server runs.
All keys are EC P-256: made and used in a fraction of a millisecond.
"""

from __future__ import annotations

import datetime
import hashlib
import ipaddress
import json
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from karmada.kube.kinds.signing_requests import alternative_names, load_csr
from karmada.kube.kinds.usages import extended_key_usage, key_usage
from karmada.kube.server.auth.files import locked, private_directory, read_optional, write_private
from karmada.kube.server.auth.frontproxy import FRONT_PROXY_CLIENT

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes

DAY = 86400.0
CA_DAYS = 3650
LEAF_DAYS = 365
RENEW_BEFORE = 30 * DAY
BACKDATE = 300.0
"""Certificates are valid a little before they were made, for clocks that are behind."""

ADMIN_USER = "system:admin"
AUTHORITIES = {"ca": "kubernetes", "front-proxy-ca": "front-proxy-ca"}
"""The files of the authorities, and the common names in their certificates."""
SERVER_USAGES = ("digital signature", "key encipherment", "server auth")
CLIENT_USAGES = ("digital signature", "key encipherment", "client auth")
_SERVICE_NAMES = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")


class PkiError(ValueError):
    """The files on disk cannot be used, and what to do about it."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate (chain) and its private key, both PEM."""

    cert_pem: bytes
    key_pem: bytes = field(repr=False)


def generate_key_pem() -> bytes:
    return _key_pem(new_ec_key())


def new_ec_key() -> EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _key_pem(key: EllipticCurvePrivateKey) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _cert_pem(cert: x509.Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return cert.public_bytes(Encoding.PEM)


def _utc(seconds: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(int(seconds), datetime.UTC)


def subject_name(common_name: str, organizations: Iterable[str] = ()) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization) for organization in organizations]
    parts.append(x509.NameAttribute(NameOID.COMMON_NAME, common_name))
    return x509.Name(parts)


def general_names(sans: Iterable[str]) -> list[x509.GeneralName]:
    """Addresses become IP names, everything else DNS names."""
    from cryptography import x509

    names: list[x509.GeneralName] = []
    for san in sans:
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(san)))
        except ValueError:
            names.append(x509.DNSName(san))
    return names


def _plain_names(request: x509.CertificateSigningRequest) -> list[x509.GeneralName]:
    from cryptography import x509

    kinds = (x509.DNSName, x509.IPAddress, x509.RFC822Name, x509.UniformResourceIdentifier)
    return [name for name in alternative_names(request) if isinstance(name, kinds)]


def _plain_subject(subject: x509.Name) -> x509.Name:
    """Return the subject without attributes that no signer looks at: one of them would set the user's uid."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID as O

    known = {
        O.COUNTRY_NAME, O.ORGANIZATION_NAME, O.ORGANIZATIONAL_UNIT_NAME, O.LOCALITY_NAME, O.STATE_OR_PROVINCE_NAME,
        O.STREET_ADDRESS, O.POSTAL_CODE, O.SERIAL_NUMBER, O.COMMON_NAME,
    }  # fmt: skip
    return x509.Name([attribute for attribute in subject if attribute.oid in known])


class CertificateAuthority:
    """Issues certificates; its key is parsed when the first one is requested."""

    def __init__(self, pair: KeyPair) -> None:
        self.pair = pair
        self.cert_pem = pair.cert_pem
        self._key_pem = pair.key_pem

    @classmethod
    def create(cls, common_name: str, *, now: float | None = None, days: int = CA_DAYS) -> CertificateAuthority:
        from cryptography import x509
        from cryptography.hazmat.primitives.hashes import SHA256

        start = time.time() if now is None else now
        key = new_ec_key()
        name = subject_name(common_name)
        usage = key_usage(("digital signature", "key encipherment", "cert sign", "crl sign"))
        assert usage is not None
        cert = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(_utc(start - DAY))
            .not_valid_after(_utc(start + days * DAY))
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, SHA256())
        )
        return cls(KeyPair(_cert_pem(cert), _key_pem(key)))

    @classmethod
    def load_or_create(cls, directory: Path, name: str, *, common_name: str = "") -> CertificateAuthority:
        """Return the authority in `<name>.crt` and `<name>.key`; made there if the certificate does not exist yet."""
        private_directory(directory)
        cert_path, key_path = directory / f"{name}.crt", directory / f"{name}.key"
        cert, key = read_optional(cert_path), read_optional(key_path)
        if cert is not None and key is not None:
            return cls(KeyPair(cert, key))
        if cert is not None:
            raise PkiError(f"{cert_path} exists but {key_path} does not: restore the key or remove the certificate")
        made = cls.create(common_name or name)
        write_private(key_path, made._key_pem)
        write_private(cert_path, made.cert_pem)
        return made

    @cached_property
    def certificate(self) -> x509.Certificate:
        from cryptography import x509

        return x509.load_pem_x509_certificate(self.cert_pem)

    @cached_property
    def _key(self) -> EllipticCurvePrivateKey | RSAPrivateKey:
        from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        key = load_pem_private_key(self._key_pem, None)
        if not isinstance(key, EllipticCurvePrivateKey | RSAPrivateKey):
            raise PkiError("the key of a certificate authority must be an EC or RSA key")
        return key

    def issue(
        self,
        common_name: str,
        organizations: Sequence[str] = (),
        sans: Sequence[str] = (),
        usages: Sequence[str] = CLIENT_USAGES,
        days: float = LEAF_DAYS,
        *,
        now: float | None = None,
    ) -> KeyPair:
        """Return a new key with a certificate for it."""
        start = time.time() if now is None else now
        key = new_ec_key()
        subject = subject_name(common_name, organizations)
        names = general_names(sans)
        cert = self.sign(
            key.public_key(),
            subject,
            names,
            usages,
            not_before=start - BACKDATE,
            not_after=start + days * DAY,
        )
        return KeyPair(cert, _key_pem(key))

    def sign_csr(self, csr_pem: bytes, usages: Sequence[str], *, not_before: float, not_after: float) -> bytes:
        """Return a certificate as requested: its key, subject and alternative names; ValueError if bad."""
        request = load_csr(csr_pem)
        return self.sign(
            request.public_key(),
            _plain_subject(request.subject),
            _plain_names(request),
            usages,
            not_before=not_before,
            not_after=not_after,
        )

    def sign(
        self,
        public_key: CertificatePublicKeyTypes,
        subject: x509.Name,
        names: Sequence[x509.GeneralName],
        usages: Sequence[str],
        *,
        not_before: float,
        not_after: float,
    ) -> bytes:
        """Return the certificate as PEM; it never outlives the authority."""
        from cryptography import x509
        from cryptography.hazmat.primitives.hashes import SHA256

        ca = self.certificate
        end = min(_utc(not_after), ca.not_valid_after_utc)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(ca.subject)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(_utc(not_before))
            .not_valid_after(end)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(self._authority_key_id(), critical=False)
        )
        basic = key_usage(usages)
        if basic is not None:
            builder = builder.add_extension(basic, critical=True)
        extended = extended_key_usage(usages)
        if extended is not None:
            builder = builder.add_extension(extended, critical=False)
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return _cert_pem(builder.sign(self._key, SHA256()))

    def _authority_key_id(self) -> x509.AuthorityKeyIdentifier:
        from cryptography import x509

        try:
            own = self.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
        except x509.ExtensionNotFound:
            return x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own.value)


def serving_names(host_name: str, service_ip: str, extra: Iterable[str] = ()) -> list[str]:
    """Return every name and address the API server answers to."""
    names = ["localhost", "127.0.0.1", "::1", host_name, *_SERVICE_NAMES, service_ip, *extra]
    return list(dict.fromkeys(name for name in names if name))


@dataclass(frozen=True, slots=True)
class Leaf:
    """The properties of a leaf; a change of any of them means a new certificate."""

    name: str
    authority: CertificateAuthority
    common_name: str
    organizations: tuple[str, ...]
    sans: tuple[str, ...]
    usages: tuple[str, ...]

    def identity(self) -> dict[str, object]:
        return {
            "commonName": self.common_name,
            "organizations": list(self.organizations),
            "sans": list(self.sans),
            "usages": list(self.usages),
            "authority": _fingerprint(self.authority.cert_pem),
        }


def _fingerprint(*contents: bytes) -> str:
    return hashlib.sha256(b"\0".join(contents)).hexdigest()


class LeafStore:
    """The leaves of a directory and the index of what they were issued for."""

    def __init__(self, directory: Path, now: float) -> None:
        self._directory = directory
        self._index_path = directory / "index.json"
        self._now = now
        raw = read_optional(self._index_path)
        try:
            self._index: dict[str, dict[str, object]] = json.loads(raw) if raw else {}
        except ValueError:
            self._index = {}

    def obtain(self, leaf: Leaf) -> KeyPair:
        cert_path, key_path = self._directory / f"{leaf.name}.crt", self._directory / f"{leaf.name}.key"
        cert, key = read_optional(cert_path), read_optional(key_path)
        if cert is not None and key is not None and self._still_good(leaf, cert, key):
            return KeyPair(cert, key)
        pair = leaf.authority.issue(leaf.common_name, leaf.organizations, leaf.sans, leaf.usages, now=self._now)
        write_private(key_path, pair.key_pem)
        write_private(cert_path, pair.cert_pem)
        self._index[leaf.name] = {
            "identity": leaf.identity(),
            "notAfter": min(self._now + LEAF_DAYS * DAY, leaf.authority.certificate.not_valid_after_utc.timestamp()),
            "files": _fingerprint(pair.cert_pem, pair.key_pem),
        }
        write_private(self._index_path, json.dumps(self._index, indent=2).encode())
        return pair

    def made(self, name: str, cert: bytes, key: bytes) -> bool:
        """Return whether it was issued here, and is not somebody else's."""
        return self._index.get(name, {}).get("files") == _fingerprint(cert, key)

    def _still_good(self, leaf: Leaf, cert: bytes, key: bytes) -> bool:
        entry = self._index.get(leaf.name)
        if entry is None or entry.get("identity") != leaf.identity() or entry.get("files") != _fingerprint(cert, key):
            return False
        not_after = entry.get("notAfter")
        if not isinstance(not_after, int | float):
            return False
        return RENEW_BEFORE < not_after - self._now <= LEAF_DAYS * DAY + BACKDATE  # more: it is not valid yet


@dataclass(frozen=True, slots=True)
class Pki:
    """Everything an API server starts with. The `.crt` and `.key` files are named after the fields."""

    directory: Path
    ca: CertificateAuthority
    front_proxy_ca: CertificateAuthority
    serving: KeyPair
    admin: KeyPair
    front_proxy_client: KeyPair
    serving_sans: tuple[str, ...]
    signing_key_pem: bytes = field(repr=False)

    @property
    def serving_files(self) -> tuple[Path, Path]:
        """Certificate and key, for ssl.SSLContext.load_cert_chain."""
        return self.directory / "apiserver.crt", self.directory / "apiserver.key"

    @property
    def front_proxy_client_files(self) -> tuple[Path, Path]:
        """Certificate and key by which aggregated servers know this one."""
        return self.directory / "front-proxy-client.crt", self.directory / "front-proxy-client.key"

    @property
    def client_ca_pem(self) -> bytes:
        """Return the certificates of both authorities, which sign all client certificates made here."""
        return self.ca.cert_pem + self.front_proxy_ca.cert_pem

    @classmethod
    def open(
        cls,
        directory: Path,
        *,
        service_ip: str = "10.96.0.1",
        extra_sans: Iterable[str] = (),
        host_name: str | None = None,
        now: Callable[[], float] = time.time,
    ) -> Pki:
        private_directory(directory)
        with locked(directory):
            ca, proxy_ca = (
                CertificateAuthority.load_or_create(directory, name, common_name=common)
                for name, common in AUTHORITIES.items()
            )
            names = tuple(serving_names(host_name or socket.gethostname(), service_ip, extra_sans))
            serving, admin, proxy = _leaves(directory, ca, proxy_ca, names, now())
            return cls(
                directory=directory,
                ca=ca,
                front_proxy_ca=proxy_ca,
                serving=serving,
                admin=admin,
                front_proxy_client=proxy,
                serving_sans=names,
                signing_key_pem=_signing_key(directory / "sa.key"),
            )

    def renewed(self, now: float) -> Pki:
        """Return new leaves in place of those that near their end; itself while none does."""
        with locked(self.directory):
            serving, admin, proxy = _leaves(self.directory, self.ca, self.front_proxy_ca, self.serving_sans, now)
        if (serving, admin, proxy) == (self.serving, self.admin, self.front_proxy_client):
            return self
        return replace(self, serving=serving, admin=admin, front_proxy_client=proxy)


def _leaves(
    directory: Path, ca: CertificateAuthority, proxy_ca: CertificateAuthority, names: tuple[str, ...], now: float
) -> tuple[KeyPair, KeyPair, KeyPair]:
    """Return the serving, the administrator's and the front proxy's certificate."""
    store = LeafStore(directory, now)
    return (
        store.obtain(Leaf("apiserver", ca, "kube-apiserver", (), names, SERVER_USAGES)),
        store.obtain(Leaf("admin", ca, ADMIN_USER, ("system:masters",), (), CLIENT_USAGES)),
        store.obtain(Leaf("front-proxy-client", proxy_ca, FRONT_PROXY_CLIENT, (), (), CLIENT_USAGES)),
    )


def _signing_key(path: Path) -> bytes:
    pem = read_optional(path)
    if pem is None:
        pem = generate_key_pem()
        write_private(path, pem)
    return pem
