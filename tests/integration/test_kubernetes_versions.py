"""Every Kubernetes version that can be chosen is served."""

from __future__ import annotations

from pathlib import Path

import pytest

from karmada.kube.schema.builtin import versions
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig
from tests.support.wire import Http

DEPLOYMENT = {
    "metadata": {"name": "web"},
    "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "nginx:1", "ports": [{"containerPort": 80}]}]},
        },
    },
}


@pytest.mark.parametrize("version", versions())
async def test_a_version_is_served_from_discovery_to_patch(certificates: Path, version: str) -> None:
    config = ServerConfig(data_dir=certificates, storage="memory://", port=0, kubernetes_version=version)
    server = ApiServer(config)
    await server.start()
    http = Http(server)
    try:
        assert (await http("GET", "/version")).json()["gitVersion"] == f"v{version}.0"
        assert (await http("GET", "/apis/apps/v1")).code == 200
        document = await http("GET", "/openapi/v3/apis/apps/v1", headers={"Accept-Encoding": "identity"})
        assert "io.k8s.api.apps.v1.Deployment" in document.json()["components"]["schemas"]
        path = "/apis/apps/v1/namespaces/default/deployments"
        made = await http("POST", f"{path}?fieldValidation=Strict", DEPLOYMENT)
        assert made.code == 201, made.body
        ports = {"spec": {"containers": [{"name": "c", "ports": [{"containerPort": 81}]}]}}
        patched = await http(
            "PATCH", f"{path}/web", {"spec": {"template": ports}}, content_type="application/strategic-merge-patch+json"
        )
        [container] = patched.json()["spec"]["template"]["spec"]["containers"]
        assert sorted(port["containerPort"] for port in container["ports"]) == [80, 81]
        assert patched.json()["metadata"]["generation"] == 2
        applied = await http(
            "PATCH", f"{path}/web?fieldManager=me&force=true",
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 4}},
            content_type="application/apply-patch+yaml",
        )  # fmt: skip
        assert applied.json()["spec"]["replicas"] == 4
    finally:
        await http.close()
        await server.stop()


def test_an_unknown_version_is_refused_with_the_known_ones(certificates: Path) -> None:
    with pytest.raises(ValueError, match=r"no definitions of Kubernetes 1\.99 \(known: .*1\.36"):
        ApiServer(ServerConfig(data_dir=certificates, storage="memory://", kubernetes_version="1.99"))
