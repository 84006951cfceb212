"""Who may request, approve and sign certificates.

On create the caller's identity is written into the request (whatever the client put there), and nobody may request the
API client signer for a cluster administrator. `/approval` needs the verb `approve` and `/status` the verb `sign` on the
signer that the request names.
"""

from __future__ import annotations

from typing import Any

from karmada.kube.kinds.signing_requests import GROUP, parse_request, request_pem
from karmada.kube.objects.errors import Forbidden
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.quoting import go_quote
from karmada.kube.objects.types import Obj
from karmada.kube.server.admission.interface import CREATE, UPDATE, Attributes, Plugin
from karmada.kube.server.auth import csr as csrs
from karmada.kube.server.auth.rbac import Authorizer
from karmada.kube.server.auth.user import User

RESOURCE = GroupResource(GROUP, "certificatesigningrequests")
_USER_FIELDS = ("username", "uid", "groups", "extra")


def stamp_requester(obj: Obj, user: User) -> None:
    """In place: the request is the user's, whatever it says."""
    spec: Obj = obj.setdefault("spec", {})
    for field in _USER_FIELDS:
        spec.pop(field, None)
    spec.update(user.info())


def subject_error(obj: Obj) -> str:
    """Why this subject may not be requested; empty if it may."""
    if (obj.get("spec") or {}).get("signerName") != csrs.API_CLIENT:
        return ""
    try:
        request = parse_request(request_pem(obj))
    except ValueError:
        return ""
    return csrs.masters_error(request, csrs.API_CLIENT)


class CertificateGuard(Plugin):
    """Admission plug-in for CertificateSigningRequests."""

    name = "CertificateSigningRequests"

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def handles(self, attributes: Attributes) -> bool:
        if attributes.group_resource != RESOURCE:
            return False
        if attributes.subresource:
            return attributes.operation == UPDATE and attributes.subresource in ("approval", "status")
        return attributes.operation == CREATE

    async def admit(self, attributes: Attributes) -> None:
        if attributes.operation == CREATE and attributes.obj is not None:
            stamp_requester(attributes.obj, attributes.user)

    async def validate(self, attributes: Attributes) -> None:
        why = self._creation_error(attributes) if attributes.operation == CREATE else self._update_error(attributes)
        if why:
            raise Forbidden.of(RESOURCE, attributes.name, why)

    def _creation_error(self, attributes: Attributes) -> str:
        spec = (attributes.obj or {}).get("spec") or {}
        if {field: spec[field] for field in _USER_FIELDS if spec.get(field)} != attributes.user.info():
            return "the requester was changed by admission"
        return subject_error(attributes.obj or {})

    def _update_error(self, attributes: Attributes) -> str:
        old, new = attributes.old or {}, attributes.obj or {}
        signer = (old.get("spec") or {}).get("signerName", "")
        if attributes.subresource == "approval":
            verb = "approve"
        elif _outcome(old) == _outcome(new):
            return ""
        else:
            verb = "sign"
        if csrs.allowed_for_signer(self._authorizer, attributes.user, verb, signer):
            return ""
        return f"user not permitted to {verb} requests with signerName {go_quote(signer)}"


def _outcome(csr: Obj) -> tuple[Any, Any]:
    status = csr.get("status") or {}
    return status.get("certificate") or "", status.get("conditions") or []
