from __future__ import annotations

import base64
import ipaddress
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID

from karmada.kube.kinds import signing_requests
from karmada.kube.kinds.certificates import (
    STRATEGIES,
    prepare_approval,
    prepare_status,
    validate_approval,
    validate_status,
)
from karmada.kube.kinds.resource import Resource
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvk import GVK, GroupResource
from karmada.kube.objects.types import Obj
from karmada.kube.schema.node import Node
from karmada.kube.server.admission.interface import CREATE, UPDATE, Attributes
from karmada.kube.server.auth import csr as csrs
from karmada.kube.server.auth.csr_admission import CertificateGuard
from karmada.kube.server.auth.peer import PeerCertificates
from karmada.kube.server.auth.pki import DAY, CertificateAuthority, subject_name
from karmada.kube.server.auth.user import User
from tests.kube.server.auth.auth_fakes import NOW, FakeReader, authorizer, binding, role, rule
from tests.support.cases import cases

CA = CertificateAuthority.create("ca", now=NOW)
KEY = ec.generate_private_key(ec.SECP256R1())
CLIENT = ["digital signature", "key encipherment", "client auth"]
SERVER = ["digital signature", "key encipherment", "server auth"]
STRATEGY = STRATEGIES["CertificateSigningRequest"]
T0 = "2023-11-14T22:13:20Z"


def pkcs10(subject: x509.Name, *names: x509.GeneralName, key: ec.EllipticCurvePrivateKey = KEY) -> bytes:
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(key, SHA256()).public_bytes(Encoding.PEM)


def request(
    signer: str,
    name: str,
    orgs: tuple[str, ...] = (),
    *names: x509.GeneralName,
    pem: bytes | None = None,
    **spec: Any,
) -> Obj:
    pem = pkcs10(subject_name(name, orgs), *names) if pem is None else pem
    return {
        "metadata": {"name": "r", "creationTimestamp": T0},
        "spec": {"signerName": signer, "request": base64.b64encode(pem).decode(), "usages": CLIENT, **spec},
    }


def approved(csr: Obj) -> Obj:
    return signing_requests.with_condition(csr, signing_requests.condition(signing_requests.APPROVED, "ok", "", NOW))


def agent(**spec: Any) -> Obj:
    return request(csrs.API_CLIENT, "system:karmada:agent:m1", ("system:karmada:agents",), **spec)


def node(signer: str = csrs.KUBELET_CLIENT, *names: x509.GeneralName, **spec: Any) -> Obj:
    return request(signer, "system:node:n1", ("system:nodes",), *names, **spec)


DNS, IP = x509.DNSName("n1"), x509.IPAddress(ipaddress.ip_address("10.0.0.1"))
MAIL, URI = x509.RFC822Name("a@b"), x509.UniformResourceIdentifier("spiffe://x")


# --- signing


def test_an_approved_client_request_is_signed_and_authenticates() -> None:
    csr = approved(agent())
    outcome = csrs.sign(csr, CA, NOW)
    assert outcome.failure is None
    assert outcome.certificate is not None
    cert = x509.load_pem_x509_certificate(outcome.certificate)
    cert.verify_directly_issued_by(CA.certificate)
    assert cert.public_key() == KEY.public_key()
    usage = cert.extensions.get_extension_for_class(x509.KeyUsage).value
    assert usage.digital_signature
    assert usage.key_encipherment
    assert not usage.key_cert_sign
    assert list(cert.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == [
        ExtendedKeyUsageOID.CLIENT_AUTH
    ]
    peer = PeerCertificates(CA.cert_pem).identify(cert.public_bytes(Encoding.DER))
    assert peer.user is not None
    assert peer.user.name == "system:karmada:agent:m1"
    assert peer.user.groups == ("system:karmada:agents", "system:authenticated")
    written = csrs.signed(csr, outcome)
    assert written is not None
    assert base64.b64decode(written["status"]["certificate"]) == outcome.certificate
    assert csrs.sign(written, CA, NOW) == csrs.Signed()


def test_a_serving_certificate_keeps_its_names() -> None:
    outcome = csrs.sign(approved(node(csrs.KUBELET_SERVING, DNS, IP, usages=SERVER)), CA, NOW)
    assert outcome.certificate is not None
    cert = x509.load_pem_x509_certificate(outcome.certificate)
    assert list(cert.extensions.get_extension_for_class(x509.SubjectAlternativeName).value) == [DNS, IP]
    assert PeerCertificates(CA.cert_pem).identify(cert.public_bytes(Encoding.DER)).user is None


def test_a_request_cannot_choose_the_uid_of_its_user() -> None:
    uid = x509.NameAttribute(x509.ObjectIdentifier("1.3.6.1.4.1.57683.2"), "somebody-elses")
    pem = pkcs10(x509.Name([*subject_name("jane"), uid]))
    outcome = csrs.sign(approved(request(csrs.API_CLIENT, "", pem=pem)), CA, NOW)
    assert outcome.certificate is not None
    cert = x509.load_pem_x509_certificate(outcome.certificate)
    assert [a.value for a in cert.subject] == ["jane"]


@cases(
    (None, -300, 365 * DAY - 300),
    (3600, -300, 3600),
    (86400, -300, 86400 - 300),
    (10, -300, 600),
    (2**31 - 1, -300, 365 * DAY - 300),
)
def test_a_request_may_shorten_its_certificate(wanted: int | None, begin: float, end: float) -> None:
    assert csrs.validity(wanted, NOW) == (NOW + begin, NOW + end)


@cases(
    (agent(usages=["client auth", "server auth"]), "invalid usage for client certificate: server auth"),
    (agent(usages=["digital signature"]), "missing required usage for client certificate: client auth"),
    (
        request(csrs.API_CLIENT, "x", ("system:masters",)),
        "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed",
    ),
    (
        request(signing_requests.LEGACY_UNKNOWN, "x", ("a", "system:masters")),
        "use of kubernetes.io/legacy-unknown signer with system:masters group is not allowed",
    ),
    (request(csrs.KUBELET_CLIENT, "system:node:n", ("x",)), "subject organization is not system:nodes"),
    (
        request(csrs.KUBELET_CLIENT, "n", ("system:nodes",)),
        "subject common name does not begin with system:node:",
    ),
    (node(csrs.KUBELET_CLIENT, DNS), "DNS subjectAltNames are not allowed"),
    (node(csrs.KUBELET_CLIENT, IP), "IP subjectAltNames are not allowed"),
    (node(csrs.KUBELET_CLIENT, MAIL), "Email subjectAltNames are not allowed"),
    (node(csrs.KUBELET_CLIENT, URI), "URI subjectAltNames are not allowed"),
    (
        node(usages=["client auth"]),
        "usages did not match [client auth digital signature key encipherment]",
    ),
    (node(csrs.KUBELET_SERVING, usages=SERVER), "DNS or IP subjectAltName is required"),
    (node(csrs.KUBELET_SERVING, DNS, URI, usages=SERVER), "URI subjectAltNames are not allowed"),
    (
        node(csrs.KUBELET_SERVING, DNS, usages=CLIENT),
        "usages did not match [digital signature key encipherment server auth]",
    ),
    (request(csrs.API_CLIENT, "", pem=b"nonsense"), "PEM block type must be CERTIFICATE REQUEST"),
)
def test_a_request_that_does_not_fit_its_signer_fails(csr: Obj, message: str) -> None:
    outcome = csrs.sign(approved(csr), CA, NOW)
    assert outcome.certificate is None
    assert outcome.failure == {
        "type": "Failed",
        "status": "True",
        "reason": "SignerValidationFailure",
        "message": message,
        "lastUpdateTime": T0,
        "lastTransitionTime": T0,
    }
    written = csrs.signed(csr, outcome)
    assert written is not None
    assert csrs.sign(approved(written), CA, NOW) == csrs.Signed()


def test_a_request_with_a_foreign_signature_is_refused() -> None:
    own = x509.load_pem_x509_csr(pkcs10(subject_name("a")))
    other = x509.load_pem_x509_csr(pkcs10(subject_name("b")))
    der = own.public_bytes(Encoding.DER)
    forged = der.replace(own.signature[-20:], other.signature[-20:])
    pem = b"-----BEGIN CERTIFICATE REQUEST-----\n" + base64.encodebytes(forged) + b"-----END CERTIFICATE REQUEST-----\n"
    with pytest.raises(ValueError, match="not signed by its own key"):
        signing_requests.parse_request(pem)


@cases(
    agent(),
    signing_requests.with_condition(
        approved(agent()), signing_requests.condition(signing_requests.DENIED, "no", "", NOW)
    ),
    approved(request("example.com/mine", "x")),
)
def test_requests_that_are_not_approved_or_not_ours_are_left_alone(csr: Obj) -> None:
    assert csrs.sign(csr, CA, NOW) == csrs.Signed()
    assert csrs.signed(csr, csrs.Signed()) is None


# --- approving


OWN = "Auto approving self kubelet client certificate after SubjectAccessReview."
ANY = "Auto approving kubelet client certificate after SubjectAccessReview."


def allowed_to(*subresources: str) -> Any:
    resources = " ".join(f"certificatesigningrequests/{s}" for s in subresources)
    rules = [rule("create", signing_requests.GROUP, resources)] if subresources else []
    return authorizer(FakeReader([role("r", *rules), binding("b", "ClusterRole/r", "group:boot")]))


@cases(
    ("system:node:n1", ("selfnodeclient",), OWN),
    ("system:bootstrap:abcdef", ("nodeclient",), ANY),
    ("system:node:n1", ("nodeclient",), ANY),
    ("system:node:n2", ("selfnodeclient",), None),
    ("system:node:n1", (), None),
)
async def test_kubelets_get_their_client_certificates(
    user: str, subresources: tuple[str, ...], message: str | None
) -> None:
    csr = node(username=user, groups=["boot"])
    condition = await csrs.auto_approval(csr, allowed_to(*subresources), NOW)
    assert (condition and condition["message"]) == message
    if condition:
        assert (condition["type"], condition["reason"]) == ("Approved", "AutoApproved")


@cases(
    agent(username="system:node:n1", groups=["boot"]),
    node(csrs.KUBELET_CLIENT, DNS, groups=["boot"]),
    approved(node(groups=["boot"])),
    request(csrs.KUBELET_CLIENT, "", pem=b"x", groups=["boot"]),
)
async def test_other_requests_are_left_to_people(csr: Obj) -> None:
    assert await csrs.auto_approval(csr, allowed_to("selfnodeclient", "nodeclient"), NOW) is None


# --- cleaning


def aged(csr: Obj, *conditions: str, certificate: bytes | None = None) -> Obj:
    for kind in conditions:
        csr = signing_requests.with_condition(csr, signing_requests.condition(kind, "", "", NOW))
    return csr if certificate is None else csrs.signed(csr, csrs.Signed(certificate)) or {}


SHORT = CA.issue("x", days=0.1, now=NOW).cert_pem
LONG = CA.issue("x", days=10, now=NOW).cert_pem


@cases(
    (aged(agent()), 24.0),
    (aged(agent(), "Denied"), 1.0),
    (aged(agent(), "Approved", "Failed"), 1.0),
    (aged(agent(), "Approved", certificate=LONG), 1.0),
    (aged(agent(), "Approved"), None),
    (aged(agent(), "Approved", certificate=b"unreadable"), 1.0),
    ({**aged(agent(), "Custom", certificate=SHORT)}, 2.4),
)
def test_requests_are_cleared_after_their_time(csr: Obj, hours: float | None) -> None:
    if hours is None:
        assert not csrs.outlived(csr, NOW + 1e6)
    else:
        assert not csrs.outlived(csr, NOW + hours * 3600 - 5)
        assert csrs.outlived(csr, NOW + hours * 3600 + 5)


# --- the kind


@cases(
    ({}, []),
    ({"usages": []}, ["spec.usages: Required value"]),
    ({"usages": ["client auth", "client auth"]}, ['spec.usages[1]: Duplicate value: "client auth"']),
    ({"signerName": ""}, ["spec.signerName: Required value"]),
    (
        {"signerName": "nodomain"},
        [
            'spec.signerName: Invalid value: "nodomain": must be a fully qualified domain and path of the form '
            "'example.com/signer-name'"
        ],
    ),
    (
        {"signerName": "one/x"},
        ['spec.signerName: Invalid value: "one": should be a domain with at least two segments separated by dots'],
    ),
    (
        {"signerName": signing_requests.LEGACY_UNKNOWN},
        [
            'spec.signerName: Invalid value: "kubernetes.io/legacy-unknown": '
            "the legacy signerName is not allowed via this API version"
        ],
    ),
    (
        {"expirationSeconds": 599},
        ["spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 600 seconds (10 minutes)"],
    ),
    (
        {"request": base64.b64encode(b"x").decode()},
        ['spec.request: Invalid value: "eA==": PEM block type must be CERTIFICATE REQUEST'],
    ),
    ({"request": "?"}, ['spec.request: Invalid value: "?": not base64']),
)
def test_requests_are_validated(change: Obj, errors: list[str]) -> None:
    csr = agent()
    assert [str(e) for e in STRATEGY.validate({**csr, "spec": {**csr["spec"], **change}})] == errors


def test_unknown_usages_are_named_with_the_known_ones() -> None:
    (error,) = STRATEGY.validate(agent(usages=["magic"]))
    assert str(error).startswith('spec.usages[0]: Unsupported value: "magic": supported values: "any", "cert sign"')


def test_spec_and_status_change_through_their_own_doors_only() -> None:
    fresh = approved(agent())
    STRATEGY.prepare_create(fresh)
    assert "status" not in fresh
    old = approved(agent())
    changed = {**approved(node()), "metadata": {"name": "r", "labels": {"a": "b"}}}
    STRATEGY.prepare_update(changed, old)
    assert changed["spec"] == old["spec"]
    assert changed["status"] == old["status"]
    assert STRATEGY.validate_update(changed, old) == []
    assert STRATEGY.fields["spec.signerName"](old) == csrs.API_CLIENT


def with_status(**status: Any) -> Obj:
    return {**agent(), "status": status}


def said(kind: str, status: str = "True", **more: str) -> Obj:
    return {"type": kind, "status": status, **more}


CERT = base64.b64encode(LONG).decode()


@cases(
    ([], [said("Approved")], []),
    ([], [said("Denied")], []),
    ([said("Approved")], [said("Approved", message="changed")], []),
    ([said("Approved")], [], ['updates may not remove a condition of type "Approved"']),
    ([], [said("Failed")], ['updates may not add a condition of type "Failed"']),
    ([], [said("Approved", "False")], ['Unsupported value: "False": supported values: "True"']),
    ([], [{"type": "Approved"}], ["status.conditions[0].status: Required value"]),
    ([], [said("")], ["status.conditions[0].type: Required value"]),
    ([], [said("Approved"), said("Approved")], ['status.conditions[1].type: Duplicate value: "Approved"']),
    ([], [said("Approved"), said("Denied")], ["Approved and Denied conditions are mutually exclusive"]),
    ([], [said("Other", "Unknown")], []),
)
def test_approval_says_approved_or_denied(old: list[Obj], new: list[Obj], errors: list[str]) -> None:
    found = [str(e) for e in validate_approval(with_status(conditions=new), with_status(conditions=old))]
    assert len(found) == len(errors)
    assert all(part in text for part, text in zip(errors, found, strict=True))


@cases(
    ({}, {"certificate": CERT}, []),
    ({"certificate": CERT}, {"certificate": CERT}, []),
    (
        {"certificate": CERT},
        {"certificate": base64.b64encode(SHORT).decode()},
        ["status.certificate: Forbidden: updates may not modify existing certificate content"],
    ),
    ({}, {"certificate": "eA=="}, ['status.certificate: Invalid value: "<certificate data>"']),
    ({}, {"conditions": [said("Failed")]}, []),
    (
        {},
        {"conditions": [said("Approved")]},
        ['status.conditions: Forbidden: updates may not add a condition of type "Approved"'],
    ),
    (
        {"conditions": [said("Failed")]},
        {},
        ['status.conditions: Forbidden: updates may not remove a condition of type "Failed"'],
    ),
)
def test_status_sets_the_certificate_or_failed(old: Obj, new: Obj, errors: list[str]) -> None:
    found = [str(e) for e in validate_status(with_status(**new), with_status(**old))]
    assert len(found) == len(errors)
    assert all(text.startswith(part) for part, text in zip(errors, found, strict=True))


def test_conditions_get_their_times() -> None:
    old = with_status(certificate=CERT)
    new = {**with_status(conditions=[said("Approved")], certificate="forged"), "spec": {}}
    prepare_approval(new, old, NOW)
    assert new["spec"] == old["spec"]
    assert new["status"] == {
        "certificate": CERT,
        "conditions": [said("Approved", lastUpdateTime=T0, lastTransitionTime=T0)],
    }
    later = with_status(conditions=[said("Approved", message="forged"), said("Failed")], certificate=CERT)
    prepare_status(later, new, NOW + 60)
    assert later["status"]["conditions"] == [
        said("Approved", lastUpdateTime=T0, lastTransitionTime=T0),
        said("Failed", lastUpdateTime="2023-11-14T22:14:20Z", lastTransitionTime="2023-11-14T22:14:20Z"),
    ]


# --- admission

GVK_ = GVK(signing_requests.GROUP, "v1", "CertificateSigningRequest")
RESOURCE = Resource(
    gvk=GVK_,
    plural="certificatesigningrequests",
    namespaced=False,
    schema=Node,
    storage=GVK_,
    storage_resource=GroupResource(signing_requests.GROUP, "certificatesigningrequests"),
)
ME = User("me", "uid-1", ("dev",), {"k": ("v",)})


def write(operation: str, obj: Obj, old: Obj | None = None, subresource: str = "") -> Attributes:
    return Attributes(operation, RESOURCE, subresource, "", "r", obj, old, ME)


def guard(*rules: Obj) -> CertificateGuard:
    return CertificateGuard(authorizer(FakeReader([role("r", *rules), binding("b", "ClusterRole/r", "user:me")])))


async def test_a_request_is_its_callers_whatever_it_says() -> None:
    attributes = write(CREATE, agent(username="admin", groups=["system:masters"], uid="x", extra={"a": ["b"]}))
    assert guard().handles(attributes)
    await guard().admit(attributes)
    assert attributes.obj is not None
    spec = attributes.obj["spec"]
    assert (spec["username"], spec["uid"], spec["groups"], spec["extra"]) == ("me", "uid-1", ["dev"], {"k": ["v"]})
    await guard().validate(attributes)
    spec["username"] = "admin"
    with pytest.raises(ApiError) as caught:
        await guard().validate(attributes)
    assert caught.value.http_code == 403


async def test_requests_for_a_cluster_administrator_are_refused() -> None:
    attributes = write(CREATE, request(csrs.API_CLIENT, "x", ("system:masters",)))
    await guard().admit(attributes)
    with pytest.raises(ApiError) as caught:
        await guard().validate(attributes)
    assert caught.value.message == (
        'certificatesigningrequests.certificates.k8s.io "r" is forbidden: '
        "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed"
    )


@pytest.mark.parametrize(("subresource", "verb"), [("approval", "approve"), ("status", "sign")])
@pytest.mark.parametrize(
    ("names", "allowed"),
    [
        ("", True),
        (csrs.API_CLIENT, True),
        ("kubernetes.io/*", True),
        ("example.com/*", False),
        (csrs.KUBELET_CLIENT, False),
    ],
)
async def test_approving_and_signing_need_their_verb_on_the_signer(
    subresource: str, verb: str, names: str, allowed: bool
) -> None:
    attributes = write(UPDATE, approved(agent()), agent(), subresource)
    permitted = guard(rule(verb, signing_requests.GROUP, "signers", names))
    if allowed:
        await permitted.validate(attributes)
        return
    with pytest.raises(ApiError) as caught:
        await permitted.validate(attributes)
    assert caught.value.message == (
        'certificatesigningrequests.certificates.k8s.io "r" is forbidden: '
        f'user not permitted to {verb} requests with signerName "kubernetes.io/kube-apiserver-client"'
    )


async def test_other_updates_of_the_status_need_no_verb() -> None:
    await guard().validate(write(UPDATE, agent(), agent(), "status"))
    assert not guard().handles(write(UPDATE, agent(), agent()))
