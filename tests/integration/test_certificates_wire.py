"""Certificate signing requests over the wire: who requests, who approves, what is signed, what is cleared away."""

from __future__ import annotations

import base64
import datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from karmada.kube.objects.gvrs import CSRS
from karmada.kube.objects.types import Obj
from karmada.kube.server.app import ApiServer
from tests.support.callers import Caller, encoded, server_with_clock, signing_request, user_certificate
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.objects import kube_object
from tests.support.rights import role
from tests.support.wire import Answer, Http

PATH = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
CLIENT = "kubernetes.io/kube-apiserver-client"
KUBELET = "kubernetes.io/kube-apiserver-client-kubelet"
SERVING = "kubernetes.io/kubelet-serving"
CLIENT_USAGES = ["digital signature", "key encipherment", "client auth"]
SERVING_USAGES = ["digital signature", "key encipherment", "server auth"]


def csr(name: str, pem: bytes, signer: str = CLIENT, usages: list[str] | None = None, **spec: Any) -> Obj:
    wanted = CLIENT_USAGES if usages is None else usages
    return kube_object("certificates.k8s.io/v1", "CertificateSigningRequest", name) | {
        "spec": {"request": encoded(pem), "signerName": signer, "usages": wanted, **spec}
    }


def stored(server: ApiServer, name: str) -> Obj | None:
    return server.cache.get(CSRS.group_resource, "", name)


def outcome(server: ApiServer, name: str) -> list[tuple[str, str]]:
    found = stored(server, name) or {}
    return [(c["type"], c["reason"]) for c in found.get("status", {}).get("conditions") or []]


def certificate(server: ApiServer, name: str) -> bytes:
    found = stored(server, name) or {}
    return base64.b64decode(found.get("status", {}).get("certificate") or "")


async def decide(http: Http, name: str, kind: str = "Approved", **more: Any) -> Answer:
    obj = (await http("GET", f"{PATH}/{name}")).json()
    condition = {"type": kind, "status": "True", "reason": "Test", "message": "decided", **more}
    obj["status"] = {"conditions": [*(obj.get("status", {}).get("conditions") or []), condition]}
    return await http("PUT", f"{PATH}/{name}/approval", obj)


async def test_a_request_is_its_senders_whatever_it_says(server: ApiServer, http: Http) -> None:
    pem, _ = signing_request("jane")
    await bind(http, "asker", "Group", "askers")
    await allow(http, "asker", [{"apiGroups": ["certificates.k8s.io"], "verbs": ["create"],
                                 "resources": ["certificatesigningrequests"]}])  # fmt: skip
    body = csr("mine", pem, username="somebody-else", groups=["system:masters"], uid="7")
    body["status"] = {"certificate": encoded("forged"), "conditions": [{"type": "Approved", "status": "True"}]}
    async with Caller(server, **user_certificate(server, "asker-jane", "askers")) as caller:
        made = await caller("POST", PATH, body)
    assert made.code == 201, made.body
    spec = made.json()["spec"]
    assert spec["username"] == "asker-jane"
    assert spec["groups"] == ["askers", "system:authenticated"]
    assert "uid" not in spec
    assert not made.json().get("status")


async def test_an_approved_request_is_signed_and_its_certificate_lets_in(server: ApiServer, http: Http) -> None:
    pem, key = signing_request("jane", "developers")
    assert (await http("POST", PATH, csr("jane", pem, expirationSeconds=3600))).code == 201
    answer = await decide(http, "jane")
    assert answer.code == 200
    condition = answer.json()["status"]["conditions"][0]
    assert condition["lastUpdateTime"]
    assert condition["lastTransitionTime"]
    signed = await eventually(lambda: certificate(server, "jane"))
    parsed = x509.load_pem_x509_certificate(signed)
    lasts = parsed.not_valid_after_utc - parsed.not_valid_before_utc
    assert lasts == datetime.timedelta(seconds=3600 + 300)
    async with Caller(server, cert=signed, key=key) as caller:
        who = await caller.who()
        refused = await caller("GET", "/api/v1/pods")
    assert who["username"] == "jane"
    assert who["groups"] == ["developers", "system:authenticated"]
    assert who["extra"]["authentication.kubernetes.io/credential-id"][0].startswith("X509SHA256=")
    assert refused.code == 403


async def test_a_denied_request_is_not_signed_and_cannot_be_approved_any_more(server: ApiServer, http: Http) -> None:
    pem, _ = signing_request("jane")
    await http("POST", PATH, csr("jane", pem))
    assert (await decide(http, "jane", "Denied")).code == 200
    both = await decide(http, "jane")
    assert both.code == 422
    assert "mutually exclusive" in both.json()["message"]
    assert certificate(server, "jane") == b""


async def test_the_spec_does_not_change_any_more(http: Http) -> None:
    pem, _ = signing_request("jane")
    made = (await http("POST", PATH, csr("jane", pem))).json()
    made["spec"]["signerName"] = "example.com/other"
    changed = await http("PUT", f"{PATH}/jane", made)
    kept = (await http("GET", f"{PATH}/jane")).json()["spec"]["signerName"]
    assert kept == CLIENT
    assert changed.code == 200


@cases(
    ({"expirationSeconds": 599},
     "spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 600 seconds"),
    ({"usages": []}, "spec.usages: Required value"),
    ({"usages": ["client auth", "tea making"]}, "spec.usages[1]"),
    ({"request": encoded("nothing")}, "spec.request: Invalid value"),
    ({"signerName": ""}, "spec.signerName: Required value"),
    ({"signerName": "nodomain"}, "spec.signerName: Invalid value"),
    ids=["too short", "no usages", "unknown usage", "no request", "no signer", "bad signer"],
)  # fmt: skip
async def test_requests_that_make_no_sense_are_refused(change: Obj, text: str, http: Http) -> None:
    pem, _ = signing_request("jane")
    body = csr("jane", pem)
    body["spec"].update(change)
    answer = await http("POST", PATH, body)
    assert answer.code == 422, answer.body
    assert text in answer.json()["message"]


async def test_no_request_for_an_administrator_is_accepted(server: ApiServer, http: Http) -> None:
    pem, _ = signing_request("evil", "system:masters")
    refused = await http("POST", PATH, csr("evil", pem))
    assert refused.code == 403
    assert f"use of {CLIENT} signer with system:masters group is not allowed" in refused.json()["message"]


BAD = {
    "another organisation": (KUBELET, ("system:node:n1", "others"), (), CLIENT_USAGES),
    "another name": (KUBELET, ("jane", "system:nodes"), (), CLIENT_USAGES),
    "a name for servers": (KUBELET, ("system:node:n1", "system:nodes"), ("n1",), CLIENT_USAGES),
    "the usage of a server": (KUBELET, ("system:node:n1", "system:nodes"), (), SERVING_USAGES),
    "a server without a name": (SERVING, ("system:node:n1", "system:nodes"), (), SERVING_USAGES),
    "a server as a client": (SERVING, ("system:node:n1", "system:nodes"), ("n1",), CLIENT_USAGES),
    "a client as a server": (CLIENT, ("jane",), (), SERVING_USAGES),
}


@pytest.mark.parametrize("case", BAD.values(), ids=BAD.keys())
async def test_a_signer_refuses_what_does_not_fit_it(server: ApiServer, http: Http, case: Any) -> None:
    signer, subject, dns, usages = case
    pem, _ = signing_request(*subject, dns=dns)
    made = await http("POST", PATH, csr("bad", pem, signer, usages))
    assert made.code == 201, made.body
    await decide(http, "bad")
    await eventually(lambda: ("Failed", "SignerValidationFailure") in outcome(server, "bad"))
    assert certificate(server, "bad") == b""


async def test_a_serving_certificate_of_a_node_is_signed_after_approval(server: ApiServer, http: Http) -> None:
    pem, _ = signing_request("system:node:n1", "system:nodes", dns=("n1.example.com",))
    await http("POST", PATH, csr("serving", pem, SERVING, SERVING_USAGES))
    await decide(http, "serving")
    signed = x509.load_pem_x509_certificate(await eventually(lambda: certificate(server, "serving")))
    names = signed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["n1.example.com"]


async def test_requests_for_a_foreign_signer_are_not_changed(server: ApiServer, http: Http) -> None:
    pem, _ = signing_request("jane")
    await http("POST", PATH, csr("other", pem, "example.com/signer"))
    await decide(http, "other")
    pem, _ = signing_request("marker")
    await http("POST", PATH, csr("marker", pem))
    await decide(http, "marker")
    await eventually(lambda: certificate(server, "marker"))
    assert outcome(server, "other") == [("Approved", "Test")]
    assert certificate(server, "other") == b""


async def allow(http: Http, name: str, rules: list[Obj]) -> None:
    answer = await http("POST", f"{RBAC}/clusterroles", role(name, *rules))
    assert answer.code == 201, answer.body


async def bind(http: Http, role: str, kind: str, subject: str, name: str = "") -> None:
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": subject}]
    body = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": name or role}, "roleRef": reference, "subjects": subjects}  # fmt: skip
    answer = await http("POST", f"{RBAC}/clusterrolebindings", body)
    assert answer.code == 201, answer.body


@cases(
    ("bootstrappers", "system:certificates.k8s.io:certificatesigningrequests:nodeclient"),
    ("renewers", "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient"),
)
async def test_permitted_kubelets_are_approved_automatically(
    group: str, role: str, server: ApiServer, http: Http
) -> None:
    await bind(http, "system:node-bootstrapper", "Group", group, name="may-request")
    await bind(http, role, "Group", group)
    pem, key = signing_request("system:node:n1", "system:nodes")
    async with Caller(server, **user_certificate(server, "system:node:n1", group)) as caller:
        assert (await caller("POST", PATH, csr("n1", pem, KUBELET))).code == 201
    signed = await eventually(lambda: certificate(server, "n1"))
    assert outcome(server, "n1") == [("Approved", "AutoApproved")]
    async with Caller(server, cert=signed, key=key) as caller:
        assert (await caller.who())["groups"] == ["system:nodes", "system:authenticated"]


async def test_kubelets_that_may_not_wait_for_somebody(server: ApiServer, http: Http) -> None:
    """Renewing is for one's own name only."""
    await bind(http, "system:node-bootstrapper", "Group", "renewers", name="may-request")
    await bind(http, "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient", "Group", "renewers")
    pem, _ = signing_request("system:node:other", "system:nodes")
    own, _ = signing_request("system:node:n1", "system:nodes")
    async with Caller(server, **user_certificate(server, "system:node:n1", "renewers")) as caller:
        assert (await caller("POST", PATH, csr("foreign", pem, KUBELET))).code == 201
        assert (await caller("POST", PATH, csr("own", own, KUBELET))).code == 201
    await eventually(lambda: certificate(server, "own"))
    assert outcome(server, "foreign") == []


async def test_approving_needs_the_right_on_the_signer(server: ApiServer, http: Http) -> None:
    pem, _ = signing_request("jane")
    await http("POST", PATH, csr("jane", pem))
    group = "certificates.k8s.io"
    await allow(http, "half", [
        {"apiGroups": [group], "resources": ["certificatesigningrequests/approval"], "verbs": ["update"]},
        {"apiGroups": [group], "resources": ["certificatesigningrequests/status"], "verbs": ["update"]},
        {"apiGroups": [group], "resources": ["certificatesigningrequests"], "verbs": ["get"]},
    ])  # fmt: skip
    await bind(http, "half", "User", "approver")
    async with Caller(server, **user_certificate(server, "approver")) as caller:
        refused = await decide(caller, "jane")
        assert refused.code == 403
        assert f'user not permitted to approve requests with signerName "{CLIENT}"' in refused.json()["message"]
        obj = (await caller("GET", f"{PATH}/jane")).json()
        obj["status"] = {"certificate": encoded(server.pki.ca.cert_pem)}
        forged = await caller("PUT", f"{PATH}/jane/status", obj)
        assert forged.code == 403
        assert "user not permitted to sign" in forged.json()["message"]
        signers = {"apiGroups": [group], "resources": ["signers"], "resourceNames": [CLIENT], "verbs": ["approve"]}
        await allow(http, "whole", [signers])
        await bind(http, "whole", "User", "approver")
        assert (await decide(caller, "jane")).code == 200
    await eventually(lambda: certificate(server, "jane"))


async def test_approval_changes_nothing_but_the_decision(server: ApiServer, http: Http) -> None:
    pem, _ = signing_request("jane")
    made = (await http("POST", PATH, csr("jane", pem, "example.com/signer"))).json()
    approved = {"type": "Approved", "status": "True", "reason": "r", "message": "m"}
    made["status"] = {"certificate": encoded(server.pki.ca.cert_pem), "conditions": [approved]}
    made["spec"]["username"] = "another"
    answer = await http("PUT", f"{PATH}/jane/approval", made)
    assert answer.code == 200
    kept = stored(server, "jane") or {}
    assert "certificate" not in (kept.get("status") or {})
    assert kept["spec"]["username"] != "another"


@cases("approval", "status")
async def test_a_decision_and_a_status_keep_the_metadata_of_the_body(part: str, server: ApiServer, http: Http) -> None:
    pem, _ = signing_request("jane")
    body = (await http("POST", PATH, csr("jane", pem, "example.com/signer"))).json()
    body["metadata"]["annotations"] = {"put": part}
    body["metadata"]["labels"] = {"put": part}
    assert (await http("PUT", f"{PATH}/jane/{part}", body)).code == 200
    patch = {"metadata": {"annotations": {"patched": part}}}
    answer = await http("PATCH", f"{PATH}/jane/{part}", patch, content_type="application/merge-patch+json")
    assert answer.code == 200
    metadata = (await http("GET", f"{PATH}/jane")).json()["metadata"]
    assert metadata["annotations"] == {"put": part, "patched": part}
    assert metadata["labels"] == {"put": part}


async def test_requests_are_cleared_away_when_their_time_is_over(certificates: Path) -> None:
    async with server_with_clock(certificates) as (server, clock):
        http = Http(server)
        for name in ("approved", "denied", "pending"):
            pem, _ = signing_request(name)
            assert (await http("POST", PATH, csr(name, pem))).code == 201
        await decide(http, "approved")
        await decide(http, "denied", "Denied")
        await eventually(lambda: certificate(server, "approved"))
        await clock.advance(minutes=55)
        assert stored(server, "approved")
        assert stored(server, "denied")
        await clock.advance(minutes=20)
        await eventually(lambda: not stored(server, "approved") and not stored(server, "denied"))
        assert stored(server, "pending")
        await clock.advance(minutes=24 * 60)
        await eventually(lambda: not stored(server, "pending"))
        await http.close()


async def test_a_certificate_ends_with_its_time(certificates: Path) -> None:
    async with server_with_clock(certificates) as (server, clock):
        http = Http(server)
        pem, key = signing_request("jane")
        await http("POST", PATH, csr("jane", pem, expirationSeconds=600))
        await decide(http, "jane")
        signed = await eventually(lambda: certificate(server, "jane"))
        async with Caller(server, cert=signed, key=key) as caller:
            assert (await caller.who())["username"] == "jane"
            await clock.advance(minutes=11)
            assert (await caller("GET", "/api/v1/pods")).code == 401
        await http.close()


async def test_a_certificate_never_lasts_longer_than_a_year(server: ApiServer, http: Http) -> None:
    pem, _ = signing_request("jane")
    await http("POST", PATH, csr("jane", pem, expirationSeconds=10 * 365 * 24 * 3600))
    await decide(http, "jane")
    parsed = x509.load_pem_x509_certificate(await eventually(lambda: certificate(server, "jane")))
    assert parsed.not_valid_after_utc - parsed.not_valid_before_utc <= datetime.timedelta(days=365, minutes=5)
