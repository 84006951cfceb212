"""What a control plane has for clusters that register: a public, signed cluster-info and the rights behind tokens."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from karmada.apiserver.mount import until_served
from karmada.apiserver.registration import cluster_info, registration_rights
from karmada.components.server import control_plane_server
from karmada.kube.objects.bootstrap_tokens import BootstrapToken, is_signed_by
from karmada.kube.objects.clock import RealClock
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig
from tests.support.callers import Caller, encoded
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.karmada_server import serving
from tests.support.objects import kube_object
from tests.support.wire import Http

INFO = "/api/v1/namespaces/kube-public/configmaps/cluster-info"
CONFIG_MAPS, SECRETS = GVR("", "v1", "configmaps"), GVR("", "v1", "secrets")
TOKEN = BootstrapToken("abcdef", "0123456789abcdef")
GROUP = "system:bootstrappers:karmada:default-cluster-token"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("registration")


async def started(folder: Path, storage: str = "memory://") -> ApiServer:
    server = control_plane_server(ServerConfig(data_dir=folder, storage=storage, port=0), RealClock())
    await server.start()
    await until_served(server)
    return server


@pytest.fixture
async def server(folder: Path) -> AsyncIterator[ApiServer]:
    server = await started(folder)
    yield server
    await server.stop()


async def create_token(server: ApiServer) -> None:
    data = {"token-id": TOKEN.id, "token-secret": TOKEN.secret, "auth-extra-groups": GROUP,
            "usage-bootstrap-signing": "true", "usage-bootstrap-authentication": "true"}  # fmt: skip
    secret = kube_object("v1", "Secret", f"bootstrap-token-{TOKEN.id}", "kube-system") | {
        "type": "bootstrap.kubernetes.io/token",
        "data": {key: encoded(value) for key, value in data.items()},
    }
    await server.client().create(SECRETS, secret)


async def signed_info(server: ApiServer) -> dict[str, str]:
    async def look() -> dict[str, str] | None:
        data = (await server.client().get(CONFIG_MAPS, "cluster-info", "kube-public"))["data"]
        return data if f"jws-kubeconfig-{TOKEN.id}" in data else None

    return await eventually(look)


async def test_clusters_that_register_are_given_the_public_address(tmp_path: Path) -> None:
    async with serving(tmp_path, public_url="https://lb.example:443") as server:
        data = (await server.client().get(CONFIG_MAPS, "cluster-info", "kube-public"))["data"]
    assert "server: https://lb.example:443\n" in data["kubeconfig"]


async def test_anybody_reads_the_address_and_authority_and_nothing_else_there(server: ApiServer) -> None:
    http = Http(server)
    answer = await http("GET", INFO, anonymous=True)
    assert answer.code == 200, answer.body
    config = yaml.safe_load(answer.json()["data"]["kubeconfig"])
    (cluster,) = config["clusters"]
    assert cluster["name"] == ""
    assert cluster["cluster"]["server"] == server.url
    assert base64.b64decode(cluster["cluster"]["certificate-authority-data"]) == server.credentials.root_pem
    assert not config["users"]
    assert (await http("GET", INFO.rpartition("/")[0], anonymous=True)).code == 403
    assert (await http("PUT", INFO, answer.json(), anonymous=True)).code == 403
    await http.close()


async def test_it_is_signed_by_a_token_and_stays_so_over_a_restart(tmp_path: Path) -> None:
    storage = f"sqlite://{tmp_path / 'state.db'}"
    server = await started(tmp_path, storage)
    await create_token(server)
    first = await signed_info(server)
    await server.stop()
    server = await started(tmp_path, storage)
    try:
        again = (await server.client().get(CONFIG_MAPS, "cluster-info", "kube-public"))["data"]
        assert f"jws-kubeconfig-{TOKEN.id}" in again
        await eventually(
            lambda: is_signed_by(info(server)["kubeconfig"], info(server)[f"jws-kubeconfig-{TOKEN.id}"], TOKEN)
        )
        assert info(server)["kubeconfig"] != first["kubeconfig"], "the server has another port now"
    finally:
        await server.stop()


def info(server: ApiServer) -> dict[str, str]:
    found = server.cache.get(CONFIG_MAPS.group_resource, "kube-public", "cluster-info")
    assert found is not None
    data: dict[str, str] = found["data"]
    return data


async def test_changed_authorities_are_published_at_once(server: ApiServer) -> None:
    server.published[-1] = lambda: cluster_info(server.url, b"another authority")
    await server._credentials_changed()
    assert base64.b64encode(b"another authority").decode() in info(server)["kubeconfig"]


async def test_a_signature_that_is_written_at_the_same_moment_is_kept(
    server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = server._defaults.client
    update = client.update

    async def overtaken(kind: GVR, obj: Obj, **options: Any) -> Obj:
        monkeypatch.undo()
        patch = {"data": {"jws-kubeconfig-zzzzzz": "signature"}}
        await server.client().patch(CONFIG_MAPS, "cluster-info", "kube-public", patch)
        return await update(kind, obj, **options)

    assert server.controllers is not None
    await server.controllers.stop()  # the signer would remove a signature of no token
    server.published[-1] = lambda: cluster_info(server.url, b"another authority")
    monkeypatch.setattr(client, "update", overtaken)
    await server._credentials_changed()
    assert base64.b64encode(b"another authority").decode() in info(server)["kubeconfig"]
    assert info(server)["jws-kubeconfig-zzzzzz"] == "signature"


ALLOWED = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@cases(
    ("create", "certificates.k8s.io", "certificatesigningrequests", "", True),
    ("get", "certificates.k8s.io", "certificatesigningrequests", "", True),
    ("create", "certificates.k8s.io", "certificatesigningrequests", "clusteragent", True),
    ("create", "certificates.k8s.io", "certificatesigningrequests", "selfclusteragent", False),
    ("update", "certificates.k8s.io", "certificatesigningrequests", "approval", False),
    ("delete", "certificates.k8s.io", "certificatesigningrequests", "", False),
    ("get", "cluster.karmada.io", "clusters", "", False),
    ("get", "", "secrets", "", False),
)
async def test_a_token_may_request_certificates_and_no_more(
    verb: str, group: str, resource: str, subresource: str, allowed: bool, server: ApiServer
) -> None:
    await create_token(server)
    attributes: Obj = {"verb": verb, "group": group, "resource": resource, "subresource": subresource}
    async with Caller(server, token=str(TOKEN)) as caller:
        answer = await caller("POST", ALLOWED, {"spec": {"resourceAttributes": attributes}})
    assert answer.json()["status"]["allowed"] is allowed


async def test_every_right_is_there_under_its_name(server: ApiServer) -> None:
    for wanted in registration_rights():
        gvr = GVR("rbac.authorization.k8s.io", "v1", f"{wanted['kind'].lower()}s")
        metadata = wanted["metadata"]
        found = await server.client().get(gvr, metadata["name"], metadata.get("namespace", ""))
        assert found["metadata"]["labels"].items() >= {"karmada.io/bootstrapping": "rbac-defaults"}.items()
        assert {key: found.get(key) for key in ("rules", "roleRef", "subjects")} == {
            key: wanted.get(key) for key in ("rules", "roleRef", "subjects")
        }
