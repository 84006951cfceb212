"""Certificate signing requests: what each signer accepts, who approves, what is signed, and when requests are cleared.

A request is signed once it is approved and fits the rules of its signer: the signer names of Kubernetes each stand for
one use of a certificate (API client, kubelet as client, kubelet as server), and a request for more fails.
Everything here is a function of plain objects and the time; the controllers only carry results back.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from karmada.kube.kinds.signing_requests import (
    APPROVED,
    DENIED,
    FAILED,
    GROUP,
    LEGACY_UNKNOWN,
    MIN_SECONDS,
    Request,
    condition,
    conditions,
    has_condition,
    is_approved,
    is_issued,
    load_certificate,
    parse_request,
    request_pem,
    with_condition,
)
from karmada.kube.objects.times import parse_time
from karmada.kube.objects.types import Obj
from karmada.kube.server.auth.interface import Decides
from karmada.kube.server.auth.pki import BACKDATE, CertificateAuthority
from karmada.kube.server.auth.rbac import Authorizer, AuthzAttributes
from karmada.kube.server.auth.user import MASTERS, User

if TYPE_CHECKING:
    pass

API_CLIENT = "kubernetes.io/kube-apiserver-client"
KUBELET_CLIENT = "kubernetes.io/kube-apiserver-client-kubelet"
KUBELET_SERVING = "kubernetes.io/kubelet-serving"

NODE_USER_PREFIX, NODE_GROUP = "system:node:", "system:nodes"
MAX_SECONDS = 365 * 24 * 3600
_SHORT_SECONDS = 8 * 3600
"""Certificates shorter than this are not shortened by the backdating."""
_HOUR = 3600.0
_DONE_AFTER, _PENDING_AFTER = _HOUR, 24 * _HOUR

_DIGITAL, _ENCIPHER = "digital signature", "key encipherment"
_CLIENT, _SERVER = "client auth", "server auth"


class Signed(NamedTuple):
    """The outcome of signing: a certificate, or the condition that says why there is none; both None: not ours."""

    certificate: bytes | None = None
    failure: Obj | None = None


# --- what signers accept ------------------------------------------------------------------------------------------


def _fits(usages: Sequence[str], purpose: str) -> bool:
    return frozenset(usages) in (frozenset((_DIGITAL, purpose)), frozenset((_DIGITAL, _ENCIPHER, purpose)))


def _foreign(request: Request) -> tuple[tuple[bool, str], tuple[bool, str]]:
    """Return what makes a request another's than a node's: its organization, its name."""
    return (
        (request.organizations != (NODE_GROUP,), "subject organization is not system:nodes"),
        (
            not request.common_name.startswith(NODE_USER_PREFIX),
            "subject common name does not begin with system:node:",
        ),
    )


def kubelet_client_error(request: Request, usages: Sequence[str]) -> str:
    other_organization, other_name = _foreign(request)
    checks = (
        other_organization,
        (request.dns_names, "DNS subjectAltNames are not allowed"),
        (request.emails, "Email subjectAltNames are not allowed"),
        (request.addresses, "IP subjectAltNames are not allowed"),
        (request.uris, "URI subjectAltNames are not allowed"),
        other_name,
        (not _fits(usages, _CLIENT), "usages did not match [client auth digital signature key encipherment]"),
    )
    return next((message for bad, message in checks if bad), "")


def kubelet_serving_error(request: Request, usages: Sequence[str]) -> str:
    other_organization, other_name = _foreign(request)
    checks = (
        other_organization,
        (not (request.dns_names or request.addresses), "DNS or IP subjectAltName is required"),
        (request.emails, "Email subjectAltNames are not allowed"),
        (request.uris, "URI subjectAltNames are not allowed"),
        (not _fits(usages, _SERVER), "usages did not match [digital signature key encipherment server auth]"),
        other_name,
    )
    return next((message for bad, message in checks if bad), "")


def masters_error(request: Request, signer: str) -> str:
    """Return the error of a request for a cluster administrator, which no signer makes."""
    return f"use of {signer} signer with {MASTERS} group is not allowed" if MASTERS in request.organizations else ""


def api_client_error(request: Request, usages: Sequence[str]) -> str:
    unsupported = sorted(set(usages) - {_CLIENT, _DIGITAL, _ENCIPHER})
    if unsupported:
        return f"invalid usage for client certificate: {unsupported[0]}"
    if _CLIENT not in usages:
        return "missing required usage for client certificate: client auth"
    return masters_error(request, API_CLIENT)


SIGNERS: dict[str, Callable[[Request, Sequence[str]], str]] = {
    API_CLIENT: api_client_error,
    KUBELET_CLIENT: kubelet_client_error,
    KUBELET_SERVING: kubelet_serving_error,
    LEGACY_UNKNOWN: lambda request, _usages: masters_error(request, LEGACY_UNKNOWN),
}
"""Signer name → why a request does not fit it ("" if it does)."""


# --- signing ------------------------------------------------------------------------------------------------------


def needs_signing(csr: Obj) -> bool:
    signer = (csr.get("spec") or {}).get("signerName")
    return signer in SIGNERS and is_approved(csr) and not is_issued(csr) and not has_condition(csr, FAILED)


def sign(csr: Obj, ca: CertificateAuthority, now: float, *, max_seconds: int = MAX_SECONDS) -> Signed:
    """Sign an approved request of one of the built-in signers."""
    if not needs_signing(csr):
        return Signed()
    spec = csr["spec"]
    usages = spec.get("usages") or ()
    try:
        request = parse_request(request_pem(csr))
        error = SIGNERS[spec["signerName"]](request, usages)
        if error:
            raise ValueError(error)
        not_before, not_after = validity(spec.get("expirationSeconds"), now, max_seconds)
        return Signed(ca.sign_csr(request.pem, usages, not_before=not_before, not_after=not_after))
    except ValueError as error:
        return Signed(failure=condition(FAILED, "SignerValidationFailure", str(error), now))


def validity(wanted: int | None, now: float, max_seconds: int = MAX_SECONDS) -> tuple[float, float]:
    """Beginning and end of a certificate; the request may shorten its life, within limits."""
    seconds = max_seconds if wanted is None else max(MIN_SECONDS, min(wanted, max_seconds))
    begin = now - BACKDATE
    return begin, (now if seconds < _SHORT_SECONDS else begin) + seconds


def signed(csr: Obj, outcome: Signed) -> Obj | None:
    """Return the object to write to /status; None if there is nothing to write."""
    if outcome.failure is not None:
        return with_condition(csr, outcome.failure)
    if outcome.certificate is None:
        return None
    status = csr.get("status") or {}
    return {**csr, "status": {**status, "certificate": base64.b64encode(outcome.certificate).decode("ascii")}}


# --- approving ----------------------------------------------------------------------------------------------------


def requester(csr: Obj) -> User:
    spec = csr.get("spec") or {}
    return User(
        name=spec.get("username", ""),
        uid=spec.get("uid", ""),
        groups=tuple(spec.get("groups") or ()),
        extra={key: tuple(values) for key, values in (spec.get("extra") or {}).items()},
    )


async def auto_approval(csr: Obj, rights: Decides, now: float) -> Obj | None:
    """Return the Approved condition for a kubelet's client request whose sender may have it; None: not ours."""
    spec = csr.get("spec") or {}
    if spec.get("signerName") != KUBELET_CLIENT or conditions(csr) or is_issued(csr):
        return None
    try:
        request = parse_request(request_pem(csr))
    except ValueError:
        return None
    if kubelet_client_error(request, spec.get("usages") or ()):
        return None
    user = requester(csr)
    own = request.common_name == user.name
    recognisers = (
        (own, "selfnodeclient", "Auto approving self kubelet client certificate after SubjectAccessReview."),
        (True, "nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview."),
    )
    for recognised, subresource, message in recognisers:
        wanted = AuthzAttributes("create", GROUP, "*", "certificatesigningrequests", subresource)
        if recognised and (await rights.decide(user, wanted)).allowed:
            return condition(APPROVED, "AutoApproved", message, now)
    return None


def allowed_for_signer(authorizer: Authorizer, user: User, verb: str, signer: str) -> bool:
    """Return whether the user may approve, sign or attest for a signer, by its name or by its whole domain."""
    domain = signer.partition("/")[0]
    names = (signer, f"{domain}/*")
    wanted = AuthzAttributes(verb, GROUP, "*", "signers")
    return any(authorizer.authorize(user, wanted._replace(name=name)).allowed for name in names)


# --- cleaning -----------------------------------------------------------------------------------------------------


def outlived(csr: Obj, now: float) -> bool:
    """Return whether a request can go: done (issued, denied or failed) for an hour, undecided for a day, or expired."""
    issued = is_issued(csr)
    for entry in conditions(csr):
        done = entry.get("type") in (DENIED, FAILED) or (entry.get("type") == APPROVED and issued)
        if done and _older(entry.get("lastUpdateTime"), now, _DONE_AFTER):
            return True
    if not conditions(csr) and _older(csr["metadata"].get("creationTimestamp"), now, _PENDING_AFTER):
        return True
    return issued and _certificate_expired(csr, now)


def _older(stamp: str | None, now: float, age: float) -> bool:
    return bool(stamp) and now - parse_time(stamp or "") > age


def _certificate_expired(csr: Obj, now: float) -> bool:
    cert = load_certificate(csr["status"]["certificate"])
    return cert is not None and cert.not_valid_after_utc.timestamp() < now
