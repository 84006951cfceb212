"""Who may have which Secrets sent to which address."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from karmada.api.cluster import Cluster
from karmada.apiserver.mount import until_served
from karmada.components.server import control_plane_server
from karmada.kube.client.client import Client
from karmada.kube.objects.errors import Forbidden, Invalid
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from karmada.kube.server.app import ApiServer
from karmada.kube.server.auth.user import User
from karmada.kube.server.config import ServerConfig
from tests.support.cases import cases
from tests.support.objects import kube_object

CLUSTERS = Cluster.gvr
ROLES = GVR("rbac.authorization.k8s.io", "v1", "clusterroles")
BINDINGS = GVR("rbac.authorization.k8s.io", "v1", "clusterrolebindings")
SPACE_ROLES = GVR("rbac.authorization.k8s.io", "v1", "roles")
SPACE_BINDINGS = GVR("rbac.authorization.k8s.io", "v1", "rolebindings")
TREASURE = {"namespace": "kube-system", "name": "treasure"}
OWN = {"namespace": "karmada-cluster", "name": "own"}
WAYS_ELSEWHERE: list[Obj] = [
    {"apiEndpoint": "https://127.0.0.1:2"},
    {"proxyURL": "http://proxy"},
    {"insecureSkipTLSVerification": True},
]
RBAC = "rbac.authorization.k8s.io/v1"


def cluster(**spec: Any) -> Obj:
    return kube_object(Cluster.gvk.api_version, "Cluster", "m1") | {
        "spec": {"syncMode": "Push", "apiEndpoint": "https://127.0.0.1:1", **spec}
    }


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ApiServer]:
    config = ServerConfig(data_dir=tmp_path, storage="memory://", port=0)
    made = control_plane_server(config)
    await made.start()
    await until_served(made)
    yield made
    await made.stop()


@pytest.fixture
async def joiner(server: ApiServer) -> Client:
    """May write Clusters, and read the Secrets of karmada-cluster."""
    root = server.client(user_agent="tests")
    subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "joiner"}]
    everything = {"apiGroups": ["cluster.karmada.io"], "resources": ["clusters", "clusters/status"], "verbs": ["*"]}
    reading = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["own"], "verbs": ["get"]}
    ref = {"apiGroup": "rbac.authorization.k8s.io", "name": "joiner"}
    metadata = {"name": "joiner"}
    own = {**metadata, "namespace": "karmada-cluster"}
    await root.create(ROLES, {"apiVersion": RBAC, "kind": "ClusterRole", "metadata": metadata, "rules": [everything]})
    await root.create(SPACE_ROLES, {"apiVersion": RBAC, "kind": "Role", "metadata": own, "rules": [reading]})
    bound: Obj = {"apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": metadata, "subjects": subjects}
    await root.create(BINDINGS, {**bound, "roleRef": {**ref, "kind": "ClusterRole"}})
    bound = {**bound, "kind": "RoleBinding", "metadata": own}
    await root.create(SPACE_BINDINGS, {**bound, "roleRef": {**ref, "kind": "Role"}})
    return server.client(user=User("joiner", groups=("system:authenticated",)))


@cases("secretRef", "impersonatorSecretRef")
async def test_a_cluster_names_only_secrets_that_its_writer_may_read(field: str, joiner: Client) -> None:
    with pytest.raises(Forbidden, match=f'spec.{field}: user "joiner" cannot get the Secret kube-system/treasure'):
        await joiner.create(CLUSTERS, cluster(**{field: TREASURE}))
    await joiner.create(CLUSTERS, cluster(**{field: OWN}))
    with pytest.raises(Forbidden):
        await joiner.patch(CLUSTERS, "m1", "", {"spec": {field: TREASURE}})
    kept = await joiner.patch(CLUSTERS, "m1", "", {"spec": {field: TREASURE}}, subresource="status")
    assert kept["spec"][field] == OWN


@cases({"apiEndpoint": "https://127.0.0.1:2"}, {"proxyURL": "http://proxy"}, {"insecureSkipTLSVerification": True})
async def test_credentials_that_somebody_else_named_are_not_sent_elsewhere(
    change: Obj, server: ApiServer, joiner: Client
) -> None:
    await server.client(user_agent="tests").create(CLUSTERS, cluster(secretRef=TREASURE))
    await joiner.patch(CLUSTERS, "m1", "", {"spec": {"region": "eu"}})
    with pytest.raises(Forbidden, match="kube-system/treasure"):
        await joiner.patch(CLUSTERS, "m1", "", {"spec": change})


async def test_an_address_without_encryption_is_refused(joiner: Client) -> None:
    with pytest.raises(Invalid, match=r"spec\.apiEndpoint: .*--allow-insecure-members"):
        await joiner.create(CLUSTERS, cluster(apiEndpoint="http://127.0.0.1:1"))
    await joiner.create(CLUSTERS, cluster())
    with pytest.raises(Invalid):
        await joiner.patch(CLUSTERS, "m1", "", {"spec": {"apiEndpoint": "HTTP://127.0.0.1:1"}})


def resources(role: Obj) -> set[str]:
    return {f"{rule['apiGroups'][0]}/{name}" for rule in role["rules"] for name in rule["resources"]}


async def test_tenants_have_the_rights_on_karmadas_kinds_that_they_have_on_others(server: ApiServer) -> None:
    root = server.client(user_agent="tests")
    view, edit = await root.get(ROLES, "karmada-view"), await root.get(ROLES, "karmada-edit")
    readable = {
        f"{group}/{name}" for rule in view["rules"] for group in rule["apiGroups"] for name in rule["resources"]
    }
    writable = {
        f"{group}/{name}" for rule in edit["rules"] for group in rule["apiGroups"] for name in rule["resources"]
    }
    assert {"policy.karmada.io/propagationpolicies", "work.karmada.io/resourcebindings"} <= readable
    assert {"policy.karmada.io/overridepolicies", "autoscaling.karmada.io/federatedhpas"} <= writable
    assert not writable & {"work.karmada.io/works", "policy.karmada.io/federatedresourcequotas"}
    assert not any("cluster" in name and "policies" in name for name in readable)
    assert view["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-view"] == "true"
