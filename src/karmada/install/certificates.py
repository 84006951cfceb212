"""The certificates of an installation: what exists is kept, what is missing or nears its end is issued.

An authority is never replaced: whoever trusts it would be cut off. A leaf is judged by itself, not by a record of how
it was issued, so files that come back from the cluster's Secret, or from Karmada's own installer, are used as they are.
A renewed leaf keeps its key, since the one of `karmada` also signs the tokens of ServiceAccounts.
Keys are EC P-256, where Karmada's are RSA: every TLS client of this decade has them, and they take no time to make.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from karmada.install.names import AGGREGATED, API_SERVER, ETCD, WEBHOOK, service_host
from karmada.install.options import InstallError, Options
from karmada.install.stores import etcd_host, etcd_members
from karmada.kube.server.auth.files import locked, private_directory, read_optional, write_private
from karmada.kube.server.auth.pki import (
    BACKDATE,
    DAY,
    CertificateAuthority,
    KeyPair,
    general_names,
    generate_key_pem,
    subject_name,
)

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

CA, FRONT_PROXY_CA, ETCD_CA = "ca", "front-proxy-ca", "etcd-ca"
ADMIN, SERVING, FRONT_PROXY_CLIENT = "karmada", "apiserver", "front-proxy-client"
ETCD_SERVER, ETCD_CLIENT = "etcd-server", "etcd-client"
NAMES: Final = (CA, ETCD_CA, ETCD_SERVER, ETCD_CLIENT, ADMIN, SERVING, FRONT_PROXY_CA, FRONT_PROXY_CLIENT)
USAGES: Final = ("digital signature", "key encipherment", "server auth", "client auth")
RENEW_BEFORE: Final = 30 * DAY
_AUTHORITIES: Final = {CA: "karmada", FRONT_PROXY_CA: "front-proxy-ca", ETCD_CA: "etcd-ca"}
Certificates = Mapping[str, KeyPair]
Report = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """The purposes of a certificate."""

    name: str
    authority: str
    common_name: str
    organizations: tuple[str, ...] = ()
    sans: tuple[str, ...] = ()
    with_authority: bool = False
    """True if the authority's certificate follows it in its file, for clients that get only the file."""


def server_names(options: Options, addresses: Sequence[str]) -> tuple[str, ...]:
    """Names and addresses by which anyone reaches a server of the control plane."""
    namespace, domain = options.namespace, options.domain
    names = {
        "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
        API_SERVER, WEBHOOK, AGGREGATED,
        *(service_host(service, namespace, domain) for service in (API_SERVER, WEBHOOK, AGGREGATED, "*")),
        f"{WEBHOOK}.{namespace}.svc", f"*.{namespace}.svc",
        *options.certificates.names,
    }  # fmt: skip
    ips = dict.fromkeys([*options.certificates.ips, "127.0.0.1", *addresses])
    return (*sorted(names), *ips)


def leaves(options: Options, addresses: Sequence[str]) -> list[Leaf]:
    everywhere = server_names(options, addresses)
    masters = ("system:masters",)
    found = [
        Leaf(name=ADMIN, authority=CA, common_name="system:admin", organizations=masters, sans=everywhere),
        Leaf(name=SERVING, authority=CA, common_name=API_SERVER, sans=everywhere, with_authority=True),
        Leaf(name=FRONT_PROXY_CLIENT, authority=FRONT_PROXY_CA, common_name=FRONT_PROXY_CLIENT),
    ]
    if options.local_etcd:
        members = tuple(etcd_host(options, member) for member in etcd_members(options))
        hosts = ("localhost", *members, "127.0.0.1")
        found.append(Leaf(name=ETCD_SERVER, authority=ETCD_CA, common_name=f"karmada-{ETCD}-server", sans=hosts))
        found.append(Leaf(name=ETCD_CLIENT, authority=ETCD_CA, common_name=f"karmada-{ETCD}-client"))
    return found


def issue(
    options: Options,
    addresses: Sequence[str],
    existing: Certificates,
    now: float,
    report: Report = lambda _text: None,
) -> dict[str, KeyPair]:
    """Return all certificates, those of `existing` as far as they are good; `report` gets a line for each new one."""
    found = dict(existing)
    wanted = leaves(options, addresses)
    for name in dict.fromkeys(leaf.authority for leaf in wanted):
        if name not in found:
            found[name] = _new_authority(name, options, now)
            report(f"Issued certificate authority {name}")
        _check_authority(name, found[name], now)
    _check_given_authority(options, found[CA])
    for leaf in wanted:
        authority = CertificateAuthority(found[leaf.authority])
        problem = _problem(leaf, found.get(leaf.name), authority.certificate, options.certificates.seconds, now)
        if problem:
            found[leaf.name] = _issue(leaf, authority, found.get(leaf.name), options.certificates.seconds, now)
            report(f"Issued certificate {leaf.name}: {problem}")
    if options.external_etcd is not None:
        found |= _of_external_etcd(options, existing)
    return found


def _new_authority(name: str, options: Options, now: float) -> KeyPair:
    if name == CA and options.certificates.ca_cert_file:
        return _given_authority(options)
    return CertificateAuthority.create(_AUTHORITIES[name], now=now).pair


def _given_authority(options: Options) -> KeyPair:
    given = options.certificates
    return KeyPair(_read("ca-cert-file", given.ca_cert_file), _read("ca-key-file", given.ca_key_file))


def _check_given_authority(options: Options, found: KeyPair) -> None:
    """InstallError when the flags name another authority than the one in use."""
    if options.certificates.ca_cert_file and _given_authority(options).cert_pem != found.cert_pem:
        raise InstallError(
            "--ca-cert-file is not the certificate authority of this installation, which is never replaced: leave it "
            "out, or install anew into another --namespace with another --karmada-data"
        )


def _check_authority(name: str, pair: KeyPair, now: float) -> None:
    certificate = _certificate(pair, f"{name}.crt")
    end = certificate.not_valid_after_utc
    if end.timestamp() <= now:
        raise InstallError(
            f"the certificate authority {name} expired on {end:%Y-%m-%d}: move {name}.crt and {name}.key away for "
            "a new one, with which every member has to join again"
        )
    key = _key(pair.key_pem)
    if key is None or not _matches(key, certificate):
        raise InstallError(f"{name}.key is not the key of {name}.crt: restore it from a backup")


def _problem(leaf: Leaf, pair: KeyPair | None, authority: x509.Certificate, seconds: float, now: float) -> str:
    """Why a certificate has to be issued; empty for one that is good."""
    if pair is None:
        return "there was none"
    certificate, key = _certificate(pair, f"{leaf.name}.crt"), _key(pair.key_pem)
    if key is None or not _matches(key, certificate):
        return "its key is another"
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, _invalid_signature()):
        return f"it is not of the authority {leaf.authority}"
    end = certificate.not_valid_after_utc
    if end.timestamp() - now < min(RENEW_BEFORE, seconds / 3):
        return f"it ends on {end:%Y-%m-%d}"
    if certificate.subject != subject_name(leaf.common_name, leaf.organizations):
        return "it is of another subject"
    missing = [name for name in leaf.sans if name not in _names_of(certificate)]
    return f"it lacks {', '.join(missing)}" if missing else ""


def _issue(leaf: Leaf, authority: CertificateAuthority, former: KeyPair | None, seconds: float, now: float) -> KeyPair:
    key_pem = former.key_pem if former is not None and _key(former.key_pem) is not None else generate_key_pem()
    key = _key(key_pem)
    assert key is not None
    certificate = authority.sign(
        key.public_key(),  # type: ignore[arg-type]
        subject_name(leaf.common_name, leaf.organizations),
        general_names(leaf.sans),
        USAGES,
        not_before=now - BACKDATE,
        not_after=now + seconds,
    )
    return KeyPair(certificate + (authority.cert_pem if leaf.with_authority else b""), key_pem)


def _of_external_etcd(options: Options, existing: Certificates) -> dict[str, KeyPair]:
    """From the files that the flags name; a machine without them takes what is in the cluster."""
    external = options.external_etcd
    assert external is not None
    known = {name: existing.get(name, KeyPair(b"", b"")) for name in (ETCD_CA, ETCD_CLIENT)}
    found = {}
    if external.ca_file:
        found[ETCD_CA] = KeyPair(_read("external-etcd-ca-cert-path", external.ca_file, known[ETCD_CA].cert_pem), b"")
    if external.cert_file:
        client = known[ETCD_CLIENT]
        certificate = _read("external-etcd-client-cert-path", external.cert_file, client.cert_pem)
        key = _read("external-etcd-client-key-path", external.key_file, client.key_pem)
        found[ETCD_CLIENT] = KeyPair(certificate, key)
    return found


def _read(flag: str, path: str, instead: bytes = b"") -> bytes:
    """Return a file, or what to take `instead` where there is none."""
    try:
        return Path(path).expanduser().read_bytes()
    except FileNotFoundError as error:
        if instead:
            return instead
        raise InstallError(f"--{flag}: {path}: {error.strerror}") from error
    except OSError as error:
        raise InstallError(f"--{flag}: {path}: {error.strerror}") from error


# files


def load(folder: Path) -> dict[str, KeyPair]:
    """Return the certificates in a folder; one without its key is one of somebody else, or damaged."""
    found = {}
    for name in NAMES:
        certificate, key = read_optional(folder / f"{name}.crt"), read_optional(folder / f"{name}.key")
        if certificate is not None:
            found[name] = KeyPair(certificate, key or b"")
    return found


def save(folder: Path, certificates: Certificates) -> None:
    """Write what differs; a file is replaced as a whole or not at all, a key before its certificate."""
    private_directory(folder)
    with locked(folder):
        for name, pair in certificates.items():
            for suffix, content in (("key", pair.key_pem), ("crt", pair.cert_pem)):
                path = folder / f"{name}.{suffix}"
                if content and read_optional(path) != content:
                    write_private(path, content)


def combined(local: Certificates, cluster: Certificates, folder: Path) -> dict[str, KeyPair]:
    """Return the certificates of the cluster and of this machine; InstallError for two authorities."""
    for name in _AUTHORITIES:
        if name in local and name in cluster and local[name].cert_pem != cluster[name].cert_pem:
            raise InstallError(
                f"{folder}/{name}.crt is not the certificate authority of the installation in the cluster: name the "
                "folder of that installation with --karmada-data (an empty one is filled from the cluster), or remove "
                "the installation with 'karmadactl deinit'"
            )
    return {**local, **cluster}


# parsing


def _certificate(pair: KeyPair, file: str) -> x509.Certificate:
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificate(pair.cert_pem)
    except ValueError as error:
        raise InstallError(f"{file} is no certificate in PEM: {error}") from error


def _key(pem: bytes) -> PrivateKeyTypes | None:
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        return load_pem_private_key(pem, None)
    except (ValueError, TypeError):
        return None


def _matches(key: PrivateKeyTypes, certificate: x509.Certificate) -> bool:
    return key.public_key() == certificate.public_key()


def _names_of(certificate: x509.Certificate) -> frozenset[str]:
    from cryptography import x509

    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return frozenset()
    addresses = map(str, found.get_values_for_type(x509.IPAddress))
    return frozenset((*found.get_values_for_type(x509.DNSName), *addresses))


def _invalid_signature() -> type[Exception]:
    from cryptography.exceptions import InvalidSignature

    return InvalidSignature
