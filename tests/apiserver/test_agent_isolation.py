"""What the certificate of one cluster's agent gets by the wire: its own, and nothing of another cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from karmada.api import well_known
from karmada.api.cluster import Cluster
from karmada.api.work import Work
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from karmada.kube.server.app import ApiServer
from tests.support.agents import grant
from tests.support.callers import Caller, encoded, signing_request, user_certificate
from tests.support.cases import cases
from tests.support.karmada_server import serving
from tests.support.objects import kube_object

CLUSTERS, WORKS = "/apis/cluster.karmada.io/v1alpha1/clusters", "/apis/work.karmada.io/v1alpha1/namespaces/{}/works"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"
SECRETS, EVENTS = "/api/v1/namespaces/karmada-cluster/secrets", "/api/v1/namespaces/{}/events"
CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
MERGE = "application/merge-patch+json"

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ApiServer]:
    """With two clusters in mode Pull and what their agents keep in the control plane."""
    folder: Path = tmp_path_factory.mktemp("isolation")
    async with serving(folder) as server:
        for name in ("m1", "m2"):
            await _populate(server, name)
        yield server


async def _populate(server: ApiServer, name: str) -> None:
    client = server.client(user_agent="tests")
    await grant(client, name)
    await client.create(Cluster.gvr, cluster(name))
    for kind, obj in (
        (Work.gvr, work(name)),
        (GVR("coordination.k8s.io", "v1", "leases"), lease("karmada-cluster", name)),
        (GVR("coordination.k8s.io", "v1", "leases"), lease("karmada-system", f"karmada-agent-{name}")),
        (GVR("", "v1", "secrets"), secret(name)),
        (GVR("", "v1", "secrets"), secret(f"{name}-impersonator")),
    ):
        await client.create(kind, obj)
    async with caller(server, name) as agent:
        answer = await agent("POST", CSRS, csr(name, f"{name}-abcde"))
        assert answer.code == 201, answer.body


def caller(server: ApiServer, cluster: str) -> Caller:
    return Caller(server, **user_certificate(server, well_known.agent_user(cluster), well_known.AGENT_GROUP))


def cluster(name: str, **spec: Any) -> Obj:
    return kube_object(
        Cluster.gvk.api_version, "Cluster", name, spec={"syncMode": "Pull", "id": f"id-of-{name}", **spec}
    )


def work(name: str, title: str = "web") -> Obj:
    return kube_object(Work.gvk.api_version, "Work", title, f"karmada-es-{name}", spec={"workload": {"manifests": []}})


def lease(namespace: str, name: str) -> Obj:
    return kube_object(
        "coordination.k8s.io/v1", "Lease", name, namespace, spec={"holderIdentity": name, "leaseDurationSeconds": 40}
    )


def secret(name: str) -> Obj:
    return kube_object("v1", "Secret", name, "karmada-cluster")


def csr(cluster: str, name: str) -> Obj:
    request, _ = signing_request(well_known.agent_user(cluster), well_known.AGENT_GROUP)
    return kube_object("certificates.k8s.io/v1", "CertificateSigningRequest", name) | {
        "spec": {
            "request": encoded(request),
            "signerName": "kubernetes.io/kube-apiserver-client",
            "usages": ["digital signature", "key encipherment", "client auth"],
        },
    }


def event(namespace: str) -> Obj:
    about = {"kind": "Work", "namespace": namespace, "name": "web"}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": "web-", "namespace": namespace},
        "involvedObject": about,
        "reason": "Tested",
    }


def requests_about(name: str) -> list[tuple[str, str, Any]]:
    """Each verb on each thing of a cluster: (method, path, body)."""
    space = f"karmada-es-{name}"
    works, leases, elections = WORKS.format(space), LEASES.format("karmada-cluster"), LEASES.format("karmada-system")
    labels = {"metadata": {"labels": {"seen": "yes"}}}
    calls: list[tuple[str, str, Any]] = [
        ("GET", f"/api/v1/namespaces/{space}", None),
        ("PUT", f"/api/v1/namespaces/{space}", {"metadata": {"name": space}}),
        ("PATCH", f"/api/v1/namespaces/{space}", labels),
        ("DELETE", f"/api/v1/namespaces/{space}", None),
    ]
    for collection, title, obj in (
        (works, "web", work(name)),
        (CLUSTERS, name, cluster(name)),
        (SECRETS, name, secret(name)),
        (SECRETS, f"{name}-impersonator", secret(f"{name}-impersonator")),
        (leases, name, lease("karmada-cluster", name)),
        (elections, f"karmada-agent-{name}", lease("karmada-system", f"karmada-agent-{name}")),
        (CSRS, f"{name}-abcde", csr(name, f"{name}-abcde")),
    ):
        calls += [
            ("GET", f"{collection}/{title}", None),
            ("GET", f"{collection}?fieldSelector=metadata.name%3D{title}", None),
            ("GET", f"{collection}?watch=1&fieldSelector=metadata.name%3D{title}&timeoutSeconds=1", None),
            ("POST", collection, obj),
            ("PUT", f"{collection}/{title}", obj),
            ("PATCH", f"{collection}/{title}", labels),
            ("PATCH", f"{collection}/{title}/status", labels),
            ("PUT", f"{collection}/{title}/status", obj),
            ("DELETE", f"{collection}/{title}", None),
            ("DELETE", f"{collection}?fieldSelector=metadata.name%3D{title}", None),
        ]
    calls += [
        ("GET", works, None),
        ("GET", f"{CLUSTERS}/{name}/proxy/api", None),
        ("PUT", f"{CSRS}/{name}-abcde/approval", csr(name, f"{name}-abcde")),
        ("POST", EVENTS.format(space), event(space)),
    ]
    return calls


@pytest.mark.parametrize(("method", "path", "body"), requests_about("m2"), ids=lambda value: str(value)[:70])
async def test_an_agent_gets_nothing_of_another_cluster(server: ApiServer, method: str, path: str, body: Any) -> None:
    async with caller(server, "m1") as agent:
        answer = await agent(method, path, body, content_type=MERGE if method == "PATCH" else "application/json")
    assert answer.code == 403, answer.body


OWN: list[tuple[str, str, Any, int]] = [
    ("GET", "/api/v1/namespaces/karmada-es-m1", None, 200),
    ("GET", "/api/v1/namespaces/karmada-cluster", None, 200),
    ("GET", WORKS.format("karmada-es-m1"), None, 200),
    ("GET", f"{WORKS.format('karmada-es-m1')}/web", None, 200),
    ("POST", WORKS.format("karmada-es-m1"), work("m1", "second"), 201),
    ("PATCH", f"{WORKS.format('karmada-es-m1')}/web/status", {"status": {"conditions": []}}, 200),
    ("DELETE", f"{WORKS.format('karmada-es-m1')}/second", None, 200),
    ("GET", f"{CLUSTERS}/m1", None, 200),
    ("GET", f"{SECRETS}/m1", None, 200),
    ("PATCH", f"{SECRETS}/m1-impersonator", {"data": {"token": encoded("t")}}, 200),
    ("GET", f"{LEASES.format('karmada-cluster')}/m1", None, 200),
    ("GET", f"{LEASES.format('karmada-system')}/karmada-agent-m1", None, 200),
    ("GET", f"{CSRS}/m1-abcde", None, 200),
    ("POST", CSRS, csr("m1", "m1-fghij"), 201),
    ("POST", EVENTS.format("karmada-es-m1"), event("karmada-es-m1"), 201),
    ("GET", "/apis/config.karmada.io/v1alpha1/resourceinterpretercustomizations", None, 200),
    ("GET", "/api/v1/services", None, 200),
]


@pytest.mark.parametrize(("method", "path", "body", "code"), OWN, ids=lambda value: str(value)[:70])
async def test_an_agent_gets_its_own(server: ApiServer, method: str, path: str, body: Any, code: int) -> None:
    async with caller(server, "m1") as agent:
        answer = await agent(method, path, body, content_type=MERGE if method == "PATCH" else "application/json")
    assert answer.code == code, answer.body


@cases(
    ("PUT", f"{CLUSTERS}/m1", cluster("m1", region="elsewhere")),
    ("PATCH", f"{CLUSTERS}/m1", {"spec": {"region": "elsewhere"}}),
    ("PATCH", f"{WORKS.format('karmada-es-m1')}/web", {"metadata": {"labels": {"a": "b"}}}),
    ("GET", SECRETS, None),
    ("GET", CSRS, None),
    ("GET", LEASES.format("karmada-cluster"), None),
    ("GET", "/api/v1/secrets", None),
    ("GET", "/apis/work.karmada.io/v1alpha1/works", None),
    ("GET", "/api/v1/namespaces", None),
    ("GET", f"{CLUSTERS}/m1/proxy/api", None),
    ("DELETE", f"{SECRETS}/m1", None),
    ("POST", SECRETS, secret("another")),
    ("POST", LEASES.format("kube-system"), lease("kube-system", "m1")),
    ("POST", CLUSTERS, cluster("m3")),
    ("POST", CSRS, csr("m2", "m1-stolen")),
    ("POST", EVENTS.format("default"), event("default")),
    ("POST", EVENTS.format("karmada-cluster"), event("karmada-cluster")),
    ("PATCH", f"{EVENTS.format('default')}/web", {"message": "forged"}),
    ids=lambda value: str(value)[:70],
)
async def test_an_agent_gets_no_more_of_its_own_than_it_needs(
    method: str, path: str, body: Any, server: ApiServer
) -> None:
    async with caller(server, "m1") as agent:
        answer = await agent(method, path, body, content_type=MERGE if method == "PATCH" else "application/json")
    assert answer.code == 403, answer.body


@cases("", "?limit=1", "?fieldSelector=metadata.name%21%3Dm3")
async def test_a_list_of_clusters_is_a_list_of_its_own(query: str, server: ApiServer) -> None:
    async with caller(server, "m1") as agent:
        answer = await agent("GET", CLUSTERS + query)
    assert [item["metadata"]["name"] for item in answer.json()["items"]] == ["m1"]
    assert "m2" not in answer.body.decode()


@cases("", "&fieldSelector=metadata.name%21%3Dm3")
async def test_a_watch_of_clusters_shows_its_own_only(query: str, server: ApiServer) -> None:
    async with caller(server, "m1") as agent:
        answer = await agent("GET", f"{CLUSTERS}?watch=1&timeoutSeconds=1{query}")
    assert '"m1"' in answer.body.decode()
    assert '"m2"' not in answer.body.decode()


async def test_roles_that_are_wider_open_nothing_of_another_cluster(server: ApiServer) -> None:
    """Such as a role for everything that somebody binds to all agents."""
    client = server.client(user_agent="tests")
    bindings = GVR("rbac.authorization.k8s.io", "v1", "clusterrolebindings")
    binding = kube_object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "too-wide") | {
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "Group", "name": well_known.AGENT_GROUP, "apiGroup": "rbac.authorization.k8s.io"}],
    }
    await client.create(bindings, binding)
    try:
        async with caller(server, "m1") as agent:
            for method, path, body in requests_about("m2"):
                if "fieldSelector" in path and "secrets" in path:
                    continue
                answer = await agent(
                    method, path, body, content_type=MERGE if method == "PATCH" else "application/json"
                )
                assert answer.code in (403, 404, 405), (method, path, answer.body)
            for group in ("/api/v1", "/apis/events.k8s.io/v1"):
                for method, name in (
                    ("POST", ""),
                    ("PATCH", "/web"),
                    ("PUT", "/web"),
                    ("DELETE", "/web"),
                    ("DELETE", ""),
                ):
                    path = f"{group}/namespaces/default/events{name}"
                    kind = MERGE if method == "PATCH" else "application/json"
                    answer = await agent(method, path, event("default"), content_type=kind)
                    assert answer.code == 403, (method, path, answer.body)
    finally:
        await client.delete(bindings, "too-wide")


async def test_an_agent_writes_the_status_of_its_cluster_and_nothing_else_there(server: ApiServer) -> None:
    client = server.client(user_agent="tests")
    cordoned = {"spec": {"taints": [{"key": "cordoned", "effect": "NoSchedule"}]}}
    before = await client.patch(Cluster.gvr, "m1", "", cordoned)
    brought = cluster("m1", region="elsewhere", taints=[], apiEndpoint="https://127.0.0.1:1")
    brought["metadata"] |= {"labels": {"location": "eu"}, "annotations": {"a": "b"}}
    brought["status"] = {"kubernetesVersion": "v1.34.0"}
    async with caller(server, "m1") as agent:
        answer = await agent("PUT", f"{CLUSTERS}/m1/status", brought)
        assert answer.code == 200, answer.body
    after = await client.get(Cluster.gvr, "m1")
    assert after["spec"] == before["spec"]
    assert after["status"]["kubernetesVersion"] == "v1.34.0"
    for field in ("labels", "annotations"):
        assert after["metadata"].get(field) == before["metadata"].get(field)


async def test_an_id_that_another_cluster_has_cannot_be_registered(server: ApiServer) -> None:
    await grant(server.client(user_agent="tests"), "m4")
    async with caller(server, "m4") as agent:
        answer = await agent("POST", CLUSTERS, cluster("m4", id="id-of-m2"))
        assert answer.code == 403
        assert "the cluster ID id-of-m2 or the cluster name m4 has been registered" in answer.body.decode()
        for field, value in (("id", "x" * 257), ("zones", [f"z{number}" for number in range(257)])):
            answer = await agent("POST", CLUSTERS, cluster("m4", **{field: value}))
            assert (answer.code, f"spec.{field} is too long" in answer.body.decode()) == (403, True)
        answer = await agent("POST", CLUSTERS, cluster("m4"))
        assert answer.code == 201, answer.body
        answer = await agent("DELETE", f"{CLUSTERS}/m4")
        assert answer.code == 200
