"""Requests of agents for certificates are approved, and no others."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from dataclasses import replace
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from karmada.components.assembly import Assembly
from karmada.controllers.agent_csr_approving import CSRS, AgentCsrApproving, access_review
from karmada.kube.client.client import Client
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.kubeconfig import load_config
from karmada.kube.kinds.signing_requests import condition, with_condition
from karmada.kube.objects.clock import RealClock
from karmada.kube.objects.gvrs import CLUSTER_ROLE_BINDINGS
from karmada.kube.objects.names import random_suffix
from karmada.kube.objects.types import Obj
from karmada.kube.server.auth.user import User
from tests.support.cases import cases
from tests.support.control_plane import ControlPlane, running
from tests.support.eventually import eventually
from tests.support.rights import binding, group

AGENT, AGENTS = "system:karmada:agent:m1", "system:karmada:agents"
SIGNER = "kubernetes.io/kube-apiserver-client"
USAGES = ["digital signature", "key encipherment", "client auth"]
TOKEN = User("system:bootstrap:abcdef", groups=("system:bootstrappers:karmada:default-cluster-token",))
M1 = User(AGENT, groups=(AGENTS,))
RENEWER = User(AGENT, groups=("test:renewers",))
"""With an agent's right to renew, but not of the group whose requests for others this server does not even accept."""
RBAC, SENDERS = "rbac.authorization.k8s.io", "test:senders"
BY_AGENT = "Auto approving karmada agent certificate after SubjectAccessReview."
BY_SELF = "Auto approving self karmada agent certificate after SubjectAccessReview."


@pytest.fixture
async def plane(folder: Path) -> AsyncIterator[ControlPlane]:
    async with running(folder / "plane", lambda context: [AgentCsrApproving(context)], clock=RealClock()) as plane:
        await bind(plane, "senders", "system:node-bootstrapper", SENDERS)
        await bind(plane, "renewers", "system:karmada:certificatesigningrequest:selfautoapprover", "test:renewers")
        yield plane


async def bind(plane: ControlPlane, name: str, role: str, to: str) -> None:
    await plane.client.create(CLUSTER_ROLE_BINDINGS, binding(name, group(to), to=role))


def request(common_name: str = AGENT, organizations: tuple[str, ...] = (AGENTS,), names: Any = ()) -> bytes:
    subject = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, value) for value in organizations]
    subject.append(x509.NameAttribute(NameOID.COMMON_NAME, common_name))
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(subject))
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    signed = builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    return signed.public_bytes(serialization.Encoding.PEM)


def csr(name: str, pem: bytes, **spec: Any) -> Obj:
    content = {"request": base64.b64encode(pem).decode(), "signerName": SIGNER, "usages": USAGES, **spec}
    return {"apiVersion": CSRS.api_version, "kind": "CertificateSigningRequest", "metadata": {"name": name},
            "spec": content}  # fmt: skip


async def send(plane: ControlPlane, obj: Obj, user: User) -> None:
    """The server writes into the request who sends it; every sender here may create requests."""
    await plane.server.client(User(user.name, groups=(*user.groups, SENDERS))).create(CSRS, obj)


async def conditions(plane: ControlPlane, name: str) -> list[Obj]:
    found = await plane.client.get(CSRS, name)
    return list((found.get("status") or {}).get("conditions") or [])


async def decided(plane: ControlPlane, name: str) -> Obj:
    async def first() -> Obj | None:
        return next(iter(await conditions(plane, name)), None)

    return await eventually(first)


async def until_reconciled(plane: ControlPlane) -> None:
    """One that is surely approved comes after those that were sent before."""
    name = f"last-{random_suffix()}"
    await send(plane, csr(name, request()), TOKEN)
    await decided(plane, name)


@cases(
    (TOKEN, AGENT, USAGES, BY_AGENT),
    (TOKEN, AGENT, ["digital signature", "client auth"], BY_AGENT),
    (TOKEN, "system:karmada:agent:rbac-generator", USAGES, BY_AGENT),
    (M1, AGENT, USAGES, BY_SELF),
)
async def test_whoever_may_have_the_certificate_gets_it(
    user: User, common_name: str, usages: list[str], message: str, plane: ControlPlane
) -> None:
    await send(plane, csr("wanted", request(common_name), usages=usages), user)
    found = await decided(plane, "wanted")
    assert {key: found[key] for key in ("type", "status", "reason", "message")} == {
        "type": "Approved",
        "status": "True",
        "reason": "AutoApproved",
        "message": message,
    }

    async def certificate() -> str | None:
        signed: str | None = (await plane.client.get(CSRS, "wanted"))["status"].get("certificate")
        return signed

    assert b"BEGIN CERTIFICATE" in base64.b64decode(await eventually(certificate))


STRANGE: dict[str, tuple[User, bytes, dict[str, Any]]] = {
    "another agent's": (RENEWER, request("system:karmada:agent:m2"), {}),
    "the generator's, for an agent": (RENEWER, request("system:karmada:agent:rbac-generator"), {}),
    "of a sender without the right": (User("jane"), request(), {}),
    "of a sender that is called like it": (User(AGENT), request(), {}),
    "one organization more": (TOKEN, request(organizations=(AGENTS, "x")), {}),
    "another organization": (TOKEN, request(organizations=("x",)), {}),
    "no organization": (TOKEN, request(organizations=()), {}),
    "another name": (TOKEN, request("system:karmada:agents:m1"), {}),
    "a usage more": (TOKEN, request(), {"usages": [*USAGES, "server auth"]}),
    "a usage less": (TOKEN, request(), {"usages": ["client auth"]}),
    "a DNS name": (TOKEN, request(names=[x509.DNSName("a.example")]), {}),
    "an email address": (TOKEN, request(names=[x509.RFC822Name("a@example.com")]), {}),
    "an address": (TOKEN, request(names=[x509.IPAddress(IPv4Address("10.0.0.1"))]), {}),
    "a URI": (TOKEN, request(names=[x509.UniformResourceIdentifier("spiffe://a")]), {}),
    "another signer": (TOKEN, request(), {"signerName": "example.com/agents"}),
}


@pytest.mark.parametrize(("user", "pem", "spec"), STRANGE.values(), ids=STRANGE.keys())
async def test_a_request_for_anything_else_stays_pending(
    plane: ControlPlane, user: User, pem: bytes, spec: dict[str, Any]
) -> None:
    await send(plane, csr("strange", pem, **spec), user)
    await until_reconciled(plane)
    assert await conditions(plane, "strange") == []


async def test_what_people_denied_stays_denied(plane: ControlPlane) -> None:
    await send(plane, csr("denied", request()), User("jane"))
    await until_reconciled(plane)
    found = await plane.client.get(CSRS, "denied")
    denied = with_condition(found, condition("Denied", "Manual", "no", plane.clock.now()))
    await plane.client.update(CSRS, denied, subresource="approval")
    await bind(plane, "granted", "system:karmada:certificatesigningrequest:autoapprover", SENDERS)
    await plane.client.patch(CSRS, "denied", "", {"metadata": {"labels": {"touched": "true"}}})
    await until_reconciled(plane)
    assert [entry["type"] for entry in await conditions(plane, "denied")] == ["Denied"]


async def test_a_controller_manager_of_its_own_process_approves_over_the_network(folder: Path) -> None:
    async with running(folder / "apart", clock=RealClock()) as apart:
        config = load_config(apart.server.kubeconfig)
        assembly = Assembly(lambda name: Client(HttpTransport(replace(config, user_agent=name))), clock=apart.clock)
        assembly.add([AgentCsrApproving(assembly.context)])
        async with assembly.manager:
            await apart.server.client(TOKEN).create(CSRS, csr("wanted", request()))
            assert (await decided(apart, "wanted"))["message"] == BY_AGENT


def test_the_review_is_about_the_sender_in_full() -> None:
    spec = {"username": "u", "uid": "1", "groups": ["g"], "extra": {"k": ["v"]}, "signerName": SIGNER}
    assert access_review(spec, "clusteragent")["spec"] == {
        "user": "u",
        "uid": "1",
        "groups": ["g"],
        "extra": {"k": ["v"]},
        "resourceAttributes": {
            "verb": "create",
            "group": "certificates.k8s.io",
            "version": "*",
            "resource": "certificatesigningrequests",
            "subresource": "clusteragent",
        },
    }
