"""Bootstrap tokens over the wire: joining with one, cluster-info that they sign, and their end."""

from __future__ import annotations

import base64
import hashlib
import hmac
from pathlib import Path
from typing import Any

import pytest

from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.server.app import ApiServer
from tests.support.callers import Caller, encoded, server_with_clock, signing_request, status_with
from tests.support.eventually import eventually
from tests.support.wire import Http

SECRETS = "/api/v1/namespaces/kube-system/secrets"
PUBLIC = "/api/v1/namespaces/kube-public/configmaps"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
TOKEN = "abcdef.0123456789abcdef"


def secret(token: str = TOKEN, **data: str) -> Obj:
    token_id, _, token_secret = token.partition(".")
    given = {"token-id": token_id, "token-secret": token_secret, "usage-bootstrap-authentication": "true", **data}
    return {
        "metadata": {"name": f"bootstrap-token-{token_id}", "namespace": "kube-system"},
        "type": "bootstrap.kubernetes.io/token",
        "data": {key: encoded(value) for key, value in given.items()},
    }


def info(server: ApiServer) -> dict[str, str]:
    found = server.cache.get(GVR("", "v1", "configmaps").group_resource, "kube-public", "cluster-info") or {}
    return found.get("data") or {}


async def test_a_token_lets_in_as_its_user_and_groups(server: ApiServer, http: Http) -> None:
    groups = {"auth-extra-groups": "system:bootstrappers:karmada:default-cluster-token"}
    assert (await http("POST", SECRETS, secret(**groups))).code == 201
    async with Caller(server, token=TOKEN) as caller:
        who = await caller.who()
    assert who["username"] == "system:bootstrap:abcdef"
    assert set(who["groups"]) == {
        "system:bootstrappers", "system:bootstrappers:karmada:default-cluster-token", "system:authenticated",
    }  # fmt: skip


BAD: dict[str, Any] = {
    "another secret": lambda s: s["data"].update({"token-secret": encoded("fedcba9876543210")}),
    "another id": lambda s: s["data"].update({"token-id": encoded("zzzzzz")}),
    "not for authentication": lambda s: s["data"].pop("usage-bootstrap-authentication"),
    "not quite true": lambda s: s["data"].update({"usage-bootstrap-authentication": encoded("True")}),
    "expired": lambda s: s["data"].update({"expiration": encoded("2020-01-01T00:00:00Z")}),
    "another type": lambda s: s.update(type="Opaque"),
    "a group of others": lambda s: s["data"].update({"auth-extra-groups": encoded("system:masters")}),
}


@pytest.mark.parametrize("spoil", BAD.values(), ids=BAD.keys())
async def test_a_token_that_is_not_quite_right_is_401(server: ApiServer, http: Http, spoil: Any) -> None:
    body = secret()
    spoil(body)
    assert (await http("POST", SECRETS, body)).code == 201
    assert await status_with(server, TOKEN) == 401


async def test_a_deleted_token_is_void_at_once(server: ApiServer, http: Http) -> None:
    await http("POST", SECRETS, secret())
    assert await status_with(server, TOKEN) == 200
    await http("DELETE", f"{SECRETS}/bootstrap-token-abcdef")
    assert await status_with(server, TOKEN) == 401


async def test_an_expired_token_is_deleted(certificates: Path) -> None:
    async with server_with_clock(certificates) as (server, clock):
        http = Http(server)
        until = rfc3339(clock.now() + 3600)
        assert (await http("POST", SECRETS, secret(expiration=until))).code == 201
        assert await status_with(server, TOKEN) == 200
        await clock.advance(minutes=59)
        assert (await http("GET", f"{SECRETS}/bootstrap-token-abcdef")).code == 200
        await clock.advance(minutes=2)
        secrets = GVR("", "v1", "secrets").group_resource
        assert await status_with(server, TOKEN) == 401
        await eventually(lambda: server.cache.get(secrets, "kube-system", "bootstrap-token-abcdef") is None)
        await http.close()


def verified(signature: str, content: str, token: str) -> bool:
    """As a joining client checks it: HS256 over header and content, by the token's secret."""
    token_id, _, token_secret = token.partition(".")
    header, empty, given = signature.split(".")
    payload = base64.urlsafe_b64encode(content.encode()).rstrip(b"=").decode()
    digest = hmac.new(token_secret.encode(), f"{header}.{payload}".encode(), hashlib.sha256).digest()
    decoded = base64.urlsafe_b64decode(header + "=" * (-len(header) % 4))
    return (
        empty == ""
        and base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == given
        and decoded == b'{"alg":"HS256","kid":"' + token_id.encode() + b'"}'
    )


async def test_cluster_info_is_signed_by_every_token_that_may(server: ApiServer, http: Http) -> None:
    signing = {"usage-bootstrap-signing": "true"}
    await http("POST", SECRETS, secret(**signing))
    await http("POST", SECRETS, secret("ghijkl.0123456789abcdef"))
    kubeconfig = "apiVersion: v1\nkind: Config\nclusters: []\n"
    await http("POST", PUBLIC, {"metadata": {"name": "cluster-info"}, "data": {"kubeconfig": kubeconfig}})
    await eventually(lambda: "jws-kubeconfig-abcdef" in info(server))
    assert sorted(info(server)) == ["jws-kubeconfig-abcdef", "kubeconfig"]
    assert verified(info(server)["jws-kubeconfig-abcdef"], kubeconfig, TOKEN)
    changed = kubeconfig + "users: []\n"
    patch = {"data": {"kubeconfig": changed}}
    await http("PATCH", f"{PUBLIC}/cluster-info", patch, content_type="application/merge-patch+json")
    await eventually(lambda: verified(info(server)["jws-kubeconfig-abcdef"], changed, TOKEN))
    await http("POST", SECRETS, secret("mnopqr.0123456789abcdef", **signing))
    await eventually(lambda: "jws-kubeconfig-mnopqr" in info(server))
    await http("DELETE", f"{SECRETS}/bootstrap-token-abcdef")
    await eventually(lambda: "jws-kubeconfig-abcdef" not in info(server))
    assert "jws-kubeconfig-mnopqr" in info(server)


async def test_a_cluster_joins_with_a_token(server: ApiServer, http: Http) -> None:
    """All of it: read cluster-info as nobody, check its signature, request a certificate, come back with it."""
    group = "system:bootstrappers:karmada:default-cluster-token"
    await http("POST", SECRETS, secret(**{"usage-bootstrap-signing": "true", "auth-extra-groups": group}))
    await http("POST", PUBLIC, {"metadata": {"name": "cluster-info"}, "data": {"kubeconfig": "k"}})
    meta = {"name": "read-info", "namespace": "kube-public"}
    rule = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["cluster-info"], "verbs": ["get"]}
    await http("POST", f"{RBAC}/namespaces/kube-public/roles", {"metadata": meta, "rules": [rule]})
    anyone = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "system:anonymous"}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "read-info"}
    body: Obj = {"metadata": meta, "roleRef": reference, "subjects": [anyone]}
    assert (await http("POST", f"{RBAC}/namespaces/kube-public/rolebindings", body)).code == 201
    for role in ("system:node-bootstrapper", "system:certificates.k8s.io:certificatesigningrequests:nodeclient"):
        subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": group}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
        body = {"metadata": {"name": f"join-{role}"}, "roleRef": reference, "subjects": [subject]}
        assert (await http("POST", f"{RBAC}/clusterrolebindings", body)).code == 201
    await eventually(lambda: "jws-kubeconfig-abcdef" in info(server))

    public = await http("GET", f"{PUBLIC}/cluster-info", anonymous=True)
    assert public.code == 200
    assert verified(public.json()["data"]["jws-kubeconfig-abcdef"], "k", TOKEN)
    assert (await http("GET", PUBLIC, anonymous=True)).code == 403
    pem, key = signing_request("system:node:member1", "system:nodes")
    spec = {"request": encoded(pem), "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
            "usages": ["digital signature", "key encipherment", "client auth"]}  # fmt: skip
    async with Caller(server, token=TOKEN) as joining:
        assert (await joining("POST", CSRS, {"metadata": {"name": "member1"}, "spec": spec})).code == 201
        assert (await joining("GET", f"{CSRS}/member1")).code == 200
        assert (await joining("GET", SECRETS)).code == 403

    def signed() -> bytes:
        csrs = GVR("certificates.k8s.io", "v1", "certificatesigningrequests").group_resource
        found = server.cache.get(csrs, "", "member1") or {}
        return base64.b64decode(found.get("status", {}).get("certificate") or "")

    async with Caller(server, cert=await eventually(signed), key=key) as joined:
        assert (await joined.who())["username"] == "system:node:member1"
