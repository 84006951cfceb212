"""kube-controller-manager beside a kube-apiserver: what it does over the network, under its lease, with its keys."""

from __future__ import annotations

import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding

from karmada.components.kube_controller_manager import assembled, main
from karmada.kube.client.client import Client
from karmada.kube.objects.errors import ApiError, NotFound
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import CLUSTER_ROLES, CRDS, CSRS, LEASES, NAMESPACES
from karmada.kube.objects.types import Obj
from karmada.kube.server.app import ApiServer
from karmada.kube.server.auth.pki import CertificateAuthority, generate_key_pem, subject_name
from tests.support.custom_kinds import definition
from tests.support.eventually import eventually
from tests.support.running import api_server

CONFIG_MAPS, SECRETS, ACCOUNTS = (GVR("", "v1", name) for name in ("configmaps", "secrets", "serviceaccounts"))


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ApiServer]:
    """As kube-apiserver starts it."""
    key = tmp_path / "sa.key"
    key.write_bytes(generate_key_pem())
    async with api_server(
        tmp_path / "server", cluster_controllers=False, service_account_signing_key_file=key
    ) as server:
        yield server


@asynccontextmanager
async def controllers(server: ApiServer, *flags: str) -> AsyncIterator[str]:
    """A kube-controller-manager in this process, at the address that is returned."""
    arguments = [f"--kubeconfig={server.kubeconfig}", "--bind-address=127.0.0.1", "--secure-port=0", *flags]
    with main.make_context("test", arguments) as context:
        given: dict[str, Any] = context.params
    with ExitStack() as files:
        extension, manager = assembled(given, files)
        await extension.start()
        await manager.start()
        try:
            yield extension.server.url
        finally:
            await manager.stop()
            await extension.stop()
            await manager.client.close()


def named(kind: str, name: str, version: str = "v1", **more: Any) -> Obj:
    metadata = {"name": name, **more.pop("metadata", {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **more}


async def gone(client: Client, gvr: GVR, name: str, namespace: str = "") -> bool:
    try:
        await client.get(gvr, name, namespace)
    except NotFound:
        return True
    return False


async def test_it_does_what_the_api_servers_leave_to_it(server: ApiServer, tmp_path: Path) -> None:
    authority = CertificateAuthority.create("karmada")
    (tmp_path / "ca.crt").write_bytes(authority.cert_pem)
    (tmp_path / "ca.key").write_bytes(authority.pair.key_pem)
    files = {
        "service-account-private-key-file": "sa.key",
        "root-ca-file": "ca.crt",
        "cluster-signing-cert-file": "ca.crt",
        "cluster-signing-key-file": "ca.key",
    }
    flags = [f"--{flag}={tmp_path / file}" for flag, file in files.items()]
    client = server.client()
    async with controllers(server, *flags, "--namespace-deletion-delay=0s"):
        await _tokens_are_filled_and_good(client, server, authority.cert_pem)
        await _requests_are_signed(client, authority)
        await _roles_are_aggregated(client)
        await _dependents_are_collected_also_of_new_kinds(client)
        await client.delete(NAMESPACES, "team")
        await eventually(lambda: gone(client, NAMESPACES, "team"))


async def _tokens_are_filled_and_good(client: Client, server: ApiServer, authority: bytes) -> None:
    await client.create(NAMESPACES, named("Namespace", "team"))
    await eventually(lambda: _exists(client, ACCOUNTS, "default", "team"))
    notes = {"kubernetes.io/service-account.name": "default"}
    secret = named("Secret", "token", metadata={"namespace": "team", "annotations": notes})
    await client.create(SECRETS, {**secret, "type": "kubernetes.io/service-account-token"})

    async def filled() -> Obj | None:
        return (await client.get(SECRETS, "token", "team")).get("data")

    data = await eventually(filled)
    assert base64.b64decode(data["ca.crt"]) == authority
    token = base64.b64decode(data["token"]).decode()
    assert server.authenticator.authenticate_token(token).user.name == "system:serviceaccount:team:default"


async def _exists(client: Client, gvr: GVR, name: str, namespace: str = "") -> bool:
    return not await gone(client, gvr, name, namespace)


async def _requests_are_signed(client: Client, authority: CertificateAuthority) -> None:
    spec = {
        "request": base64.b64encode(_request("jane")).decode(),
        "signerName": "kubernetes.io/kube-apiserver-client",
        "usages": ["client auth"],
    }
    made = await client.create(CSRS, named("CertificateSigningRequest", "jane", "certificates.k8s.io/v1", spec=spec))
    approved = {"type": "Approved", "status": "True", "reason": "Test", "message": "test"}
    await client.update(CSRS, {**made, "status": {"conditions": [approved]}}, subresource="approval")

    async def issued() -> str | None:
        certificate: str | None = ((await client.get(CSRS, "jane")).get("status") or {}).get("certificate")
        return certificate

    certificate = x509.load_pem_x509_certificate(base64.b64decode(await eventually(issued)))
    certificate.verify_directly_issued_by(authority.certificate)


def _request(name: str) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    return (
        x509.CertificateSigningRequestBuilder()
        .subject_name(subject_name(name))
        .sign(key, SHA256())
        .public_bytes(Encoding.PEM)
    )


async def _roles_are_aggregated(client: Client) -> None:
    version, rule = "rbac.authorization.k8s.io/v1", {"apiGroups": ["x"], "resources": ["ys"], "verbs": ["get"]}
    selectors = {"clusterRoleSelectors": [{"matchLabels": {"part": "yes"}}]}
    await client.create(CLUSTER_ROLES, named("ClusterRole", "sum", version, aggregationRule=selectors, rules=[]))
    await client.create(
        CLUSTER_ROLES, named("ClusterRole", "part", version, rules=[rule], metadata={"labels": {"part": "yes"}})
    )

    async def aggregated() -> bool:
        return bool((await client.get(CLUSTER_ROLES, "sum"))["rules"] == [rule])

    await eventually(aggregated)


async def _dependents_are_collected_also_of_new_kinds(client: Client) -> None:
    await client.create(CRDS, definition("example.com", "Ship"))
    ships = GVR("example.com", "v1", "ships")

    async def served() -> Obj | None:
        try:
            return await client.create(ships, named("Ship", "petrel", "example.com/v1", metadata={"namespace": "team"}))
        except ApiError as error:
            if error.http_code != 404:
                raise
            return None

    owner = await eventually(served)
    reference = {"apiVersion": "example.com/v1", "kind": "Ship", "name": "petrel", "uid": owner["metadata"]["uid"]}
    cargo = named("ConfigMap", "cargo", metadata={"namespace": "team", "ownerReferences": [reference]})
    await client.create(CONFIG_MAPS, cargo)
    await client.delete(ships, "petrel", "team")
    await eventually(lambda: gone(client, CONFIG_MAPS, "cargo", "team"))


async def test_one_of_several_works_and_all_are_healthy(server: ApiServer) -> None:
    lease = (
        "--leader-elect-resource-namespace=default",
        "--leader-elect-retry-period=100ms",
        "--controllers=namespace",
    )
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(controllers(server, *lease))
        await eventually(lambda: _exists(server.client(), LEASES, "kube-controller-manager", "default"))
        holder = (await server.client().get(LEASES, "kube-controller-manager", "default"))["spec"]["holderIdentity"]
        second = await stack.enter_async_context(controllers(server, *lease))
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        session = await stack.enter_async_context(aiohttp.ClientSession())
        for address in (first, second):
            async with session.get(f"{address}/healthz", ssl=tls) as response:
                assert (response.status, await response.text()) == (200, "ok")
            async with session.get(f"{address}/metrics", ssl=tls) as response:
                assert response.status == 403
        found = (await server.client().get(LEASES, "kube-controller-manager", "default"))["spec"]["holderIdentity"]
        assert found == holder
