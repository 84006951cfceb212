"""CertificateSigningRequests: the requester, the names, and the status."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karmada.cli.output.describing.sheet import Sheet
from karmada.cli.output.describing.words import at, meta, moment, pairs_text
from karmada.cli.targeting import connect

if TYPE_CHECKING:
    from cryptography.x509 import CertificateSigningRequest

    from karmada.cli.output.describing.around import Around
    from karmada.kube.objects.types import Obj

_SINGLE = {"Common Name": "2.5.4.3", "Serial Number": "2.5.4.5"}
"""Always shown, and only the last of them counts."""
_SEVERAL = {
    "Organization": "2.5.4.10",
    "Organizational Unit": "2.5.4.11",
    "Country": "2.5.4.6",
    "Locality": "2.5.4.7",
    "Province": "2.5.4.8",
    "StreetAddress": "2.5.4.9",
    "PostalCode": "2.5.4.17",
}


async def signing_request(sheet: Sheet, obj: Obj, _around: Around) -> None:
    from karmada.kube.objects.times import human_duration

    spec = obj["spec"]
    request = _parsed(spec.get("request") or "")
    sheet.field("Name", meta(obj, "name"))
    sheet.field("Labels", pairs_text(meta(obj, "labels", {})))
    sheet.field("Annotations", pairs_text(meta(obj, "annotations", {})))
    sheet.field("CreationTimestamp", moment(meta(obj, "creationTimestamp")))
    sheet.field("Requesting User", spec.get("username") or "")
    sheet.optional("Signer", spec.get("signerName"))
    if spec.get("expirationSeconds") is not None:
        sheet.field("Requested Duration", human_duration(spec["expirationSeconds"]))
    sheet.field("Status", _state(obj))
    _subject(sheet, request)
    _other_names(sheet, request)


def _parsed(encoded: str) -> CertificateSigningRequest:
    from base64 import b64decode

    from cryptography.x509 import load_pem_x509_csr

    try:
        return load_pem_x509_csr(b64decode(encoded))
    except ValueError as error:
        raise connect.failure(f"Error parsing CSR: {error}") from error


def _state(obj: Obj) -> str:
    kinds = [condition.get("type") for condition in at(obj, "status.conditions", [])]
    state = next((word for word in ("Denied", "Approved") if word in kinds), "Pending")
    if "Failed" in kinds:
        state += ",Failed"
    return f"{state},Issued" if at(obj, "status.certificate") else state


def _subject(sheet: Sheet, request: CertificateSigningRequest) -> None:
    names: dict[str, list[str]] = {}
    for attribute in request.subject:
        names.setdefault(attribute.oid.dotted_string, []).append(str(attribute.value))
    sheet.row(0, "Subject:")
    for title, oid in _SINGLE.items():
        sheet.row(0, "", f"{title}:", names.get(oid, [""])[-1])
    for title, oid in _SEVERAL.items():
        _names(sheet, title, names.get(oid, []))


def _other_names(sheet: Sheet, request: CertificateSigningRequest) -> None:
    from cryptography.x509 import DNSName, IPAddress, RFC822Name, UniformResourceIdentifier
    from cryptography.x509.extensions import ExtensionNotFound, SubjectAlternativeName

    try:
        others = request.extensions.get_extension_for_class(SubjectAlternativeName).value
    except ExtensionNotFound:
        return
    sheet.row(0, "Subject Alternative Names:")
    _names(sheet, "DNS Names", others.get_values_for_type(DNSName))
    _names(sheet, "Email Addresses", others.get_values_for_type(RFC822Name))
    _names(sheet, "URIs", others.get_values_for_type(UniformResourceIdentifier))
    _names(sheet, "IP Addresses", [str(address) for address in others.get_values_for_type(IPAddress)])


def _names(sheet: Sheet, title: str, names: list[str]) -> None:
    for number, name in enumerate(names):
        sheet.row(0, "", "" if number else f"{title}:", name)
