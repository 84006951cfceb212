"""Approves the certificate requests of agents, when their senders have the right to such a certificate.

Two kinds of request are recognised, in this order: an agent that renews its own certificate, and a client, usually with
a bootstrap token, that requests a certificate for an agent. Each needs a right of its own, which a SubjectAccessReview
checks for the sender. What is not recognised or not allowed is left pending for people to decide.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from karmada.api import well_known
from karmada.controllers.context import Context
from karmada.kube.kinds.signing_requests import (
    APPROVED,
    DENIED,
    GROUP,
    Request,
    condition,
    has_condition,
    is_issued,
    parse_request,
    request_pem,
    with_condition,
)
from karmada.kube.objects import meta
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.logging import get_logger

CONTROLLER: Final = "agent-csr-approving-controller"
CSRS: Final = GVR(GROUP, "v1", "certificatesigningrequests")
REVIEWS: Final = GVR("authorization.k8s.io", "v1", "subjectaccessreviews")
SIGNER: Final = "kubernetes.io/kube-apiserver-client"
_USAGES: Final = (
    frozenset({"digital signature", "key encipherment", "client auth"}),
    frozenset({"digital signature", "client auth"}),
)
log = get_logger(CONTROLLER)


class Recogniser(NamedTuple):
    own: bool
    """Only requests for the certificate of the user that sends them."""
    subresource: str
    message: str


RECOGNISERS: Final = (
    Recogniser(
        True,
        well_known.APPROVE_SELF,
        "Auto approving self karmada agent certificate after SubjectAccessReview.",
    ),
    Recogniser(
        False,
        well_known.APPROVE_AGENT,
        "Auto approving karmada agent certificate after SubjectAccessReview.",
    ),
)


def is_for_agent(request: Request, spec: Obj) -> bool:
    """Return whether what is requested is the client certificate of an agent, and nothing more."""
    other_names = (request.dns_names, request.emails, request.addresses, request.uris)
    return (
        spec.get("signerName") == SIGNER
        and request.organizations == (well_known.AGENT_GROUP,)
        and not any(other_names)
        and request.common_name.startswith(well_known.AGENT_USER_PREFIX)
        and frozenset(spec.get("usages") or ()) in _USAGES
    )


def recognisers(request: Request, spec: Obj) -> list[Recogniser]:
    """Return the recognisers whose right decides about a request."""
    if not is_for_agent(request, spec):
        return []
    return [r for r in RECOGNISERS if not r.own or request.common_name == spec.get("username")]


def access_review(spec: Obj, subresource: str) -> Obj:
    """Return whether the sender of a request may create this subresource of signing requests."""
    wanted = {"verb": "create", "group": GROUP, "version": "*", "resource": CSRS.resource, "subresource": subresource}
    sender = {"user": spec.get("username", ""), "uid": spec.get("uid"), "groups": spec.get("groups")}
    given = {key: value for key, value in {**sender, "extra": spec.get("extra")}.items() if value}
    return {
        "apiVersion": REVIEWS.api_version,
        "kind": "SubjectAccessReview",
        "spec": {**given, "resourceAttributes": wanted},
    }


def _signer(csr: Obj) -> Iterable[str]:
    return (str((csr.get("spec") or {}).get("signerName")),)


class AgentCsrApproving(Reconciler):
    name = CONTROLLER
    watches = (Watch(CSRS, on=("ADDED", "MODIFIED"), having=(_signer, SIGNER)),)

    def __init__(self, context: Context) -> None:
        self._client, self._clock = context.client, context.clock
        self._csrs = context.informers.of(CSRS)

    async def reconcile(self, key: Key) -> Result:
        csr = self._csrs.get(key)
        if csr is None or meta.is_deleting(csr) or is_issued(csr):
            return Done
        if has_condition(csr, APPROVED) or has_condition(csr, DENIED):
            return Done
        spec = csr["spec"]
        found = recognisers(parse_request(request_pem(csr)), spec)
        for recogniser in found:
            if await self._is_allowed(spec, recogniser.subresource):
                await self._approve(csr, recogniser.message)
                return Done
        if found:
            why = "its sender may not have it"
            log.info("A certificate request stays pending", csr=key.name, user=spec.get("username"), why=why)
        return Done

    async def _is_allowed(self, spec: Obj, subresource: str) -> bool:
        review = await self._client.create(REVIEWS, access_review(spec, subresource), namespace="")
        return bool((review.get("status") or {}).get("allowed"))

    async def _approve(self, csr: Obj, message: str) -> None:
        approved = with_condition(csr, condition(APPROVED, "AutoApproved", message, self._clock.now()))
        await self._client.update(CSRS, copy_json(approved), subresource="approval")
        log.info("Approved a certificate request", csr=meta.name(csr), user=csr["spec"].get("username"))
