"""Parses CertificateSigningRequests: the PKCS#10 request, and the conditions for its approval and result."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj

if TYPE_CHECKING:
    from cryptography import x509

GROUP = "certificates.k8s.io"
LEGACY_UNKNOWN = "kubernetes.io/legacy-unknown"
APPROVED, DENIED, FAILED = "Approved", "Denied", "Failed"
MIN_SECONDS = 600


@dataclass(frozen=True, slots=True)
class Request:
    """The subject and names of a PKCS#10 request."""

    common_name: str
    organizations: tuple[str, ...]
    dns_names: tuple[str, ...]
    addresses: tuple[str, ...]
    emails: tuple[str, ...]
    uris: tuple[str, ...]
    pem: bytes


_BLOCK = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----\r?\n(.*?)\r?\n?-----END \1-----", re.DOTALL)


def _is_request_block(pem: bytes) -> bool:
    """Return whether the first block of text that is base64 between its marks is a certificate request."""
    for kind, body in _BLOCK.findall(pem):
        try:
            base64.b64decode(b"".join(body.split()), validate=True)
        except binascii.Error:
            continue
        return bool(kind == b"CERTIFICATE REQUEST")
    return False


def load_csr(pem: bytes) -> x509.CertificateSigningRequest:
    """Return a PKCS#10 request that can be read in full and is signed by its own key; ValueError otherwise."""
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm

    if not _is_request_block(pem):
        raise ValueError("PEM block type must be CERTIFICATE REQUEST")
    try:
        request = x509.load_pem_x509_csr(pem)
        request.public_key()
        genuine = request.is_signature_valid
        list(request.extensions)
    except (UnsupportedAlgorithm, x509.DuplicateExtension, x509.UnsupportedGeneralNameType) as error:
        raise ValueError(str(error)) from error
    if not genuine:
        raise ValueError("the certificate request is not signed by its own key")
    return request


def alternative_names(request: x509.CertificateSigningRequest) -> x509.SubjectAlternativeName:
    from cryptography import x509

    try:
        return request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return x509.SubjectAlternativeName([])


def parse_request(pem: bytes) -> Request:
    """ValueError if it is not a PEM certificate request with a good signature."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    if b"-----BEGIN CERTIFICATE REQUEST-----" not in pem:
        raise ValueError("PEM block type must be CERTIFICATE REQUEST")
    request = load_csr(pem)
    names = alternative_names(request)
    common = [str(a.value) for a in request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    return Request(
        common_name=common[-1] if common else "",
        organizations=tuple(str(a.value) for a in request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)),
        dns_names=tuple(names.get_values_for_type(x509.DNSName)),
        addresses=tuple(str(a) for a in names.get_values_for_type(x509.IPAddress)),
        emails=tuple(names.get_values_for_type(x509.RFC822Name)),
        uris=tuple(names.get_values_for_type(x509.UniformResourceIdentifier)),
        pem=pem,
    )


def request_pem(csr: Obj) -> bytes:
    """ValueError if spec.request is not base64."""
    try:
        return base64.b64decode((csr.get("spec") or {}).get("request") or "", validate=True)
    except binascii.Error as error:
        raise ValueError("not base64") from error


def conditions(csr: Obj) -> list[Obj]:
    return (csr.get("status") or {}).get("conditions") or []


def has_condition(csr: Obj, kind: str) -> bool:
    return any(condition.get("type") == kind for condition in conditions(csr))


def is_approved(csr: Obj) -> bool:
    return has_condition(csr, APPROVED) and not has_condition(csr, DENIED)


def is_issued(csr: Obj) -> bool:
    return bool((csr.get("status") or {}).get("certificate"))


def condition(kind: str, reason: str, message: str, now: float) -> Obj:
    stamp = rfc3339(now)
    return {
        "type": kind,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastUpdateTime": stamp,
        "lastTransitionTime": stamp,
    }


def with_condition(csr: Obj, new: Obj) -> Obj:
    status = csr.get("status") or {}
    return {**csr, "status": {**status, "conditions": [*conditions(csr), new]}}


def load_certificate(encoded: str) -> x509.Certificate | None:
    """Return the first certificate of a status.certificate; None if there is none to read."""
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificate(base64.b64decode(encoded, validate=True))
    except ValueError:
        return None


def requested_user(obj: Obj) -> str:
    """Return the user of the certificate that is requested; "" when that cannot be read."""
    try:
        return parse_request(request_pem(obj)).common_name
    except ValueError:
        return ""
