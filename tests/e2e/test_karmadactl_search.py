"""What runs in all clusters is found with one command, by those who may see it, and is in OpenSearch."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import DEPLOYMENTS, PODS
from karmada.kube.objects.types import Obj
from tests.e2e.propagating import Propagation, deployment, policy, selector
from tests.support.background import Background
from tests.support.eventually import eventually_blocking
from tests.support.karmadactl import Karmadactl
from tests.support.objects import kube_object
from tests.support.opensearch_server import OpenSearchServer, opensearch

pytestmark = pytest.mark.e2e
NAME, BOTH = "findable", ("member1", "member2")
QUERY = f"/apis/search.karmada.io/v1alpha1/search/query?q={NAME}&kind=pods"
RBAC = "rbac.authorization.k8s.io"
ROLE_BINDINGS = GVR(RBAC, "v1", "rolebindings")


def registry(url: str) -> Obj:
    kinds = (("v1", "Pod"), ("apps/v1", "Deployment"), ("apps/v1", "ReplicaSet"))
    return kube_object("search.karmada.io/v1alpha1", "ResourceRegistry", NAME) | {
        "spec": {
            "targetCluster": {"clusterNames": list(BOTH)},
            "resourceSelectors": [
                {"apiVersion": version, "kind": kind, "namespace": "default"} for version, kind in kinds
            ],
            "backendStore": {"openSearch": {"addresses": [url], "secretRef": {"namespace": "default", "name": "none"}}},
        },
    }


def binding(kind: str, role: str, *users: str) -> Obj:
    return kube_object(f"{RBAC}/v1", kind, NAME) | {
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": user} for user in users],
    }


SEARCHER: Obj = kube_object(f"{RBAC}/v1", "ClusterRole", NAME) | {
    "rules": [
        {"apiGroups": ["search.karmada.io"], "resources": ["search"], "resourceNames": ["query"], "verbs": ["get"]}
    ],
}


@pytest.fixture(scope="module")
def store() -> Iterator[OpenSearchServer]:
    with Background() as background:
        yield background.enter(opensearch())


@pytest.fixture(scope="module")
def fleet(three_members: Propagation, store: OpenSearchServer) -> Iterator[Propagation]:
    template = deployment(NAME, replicas=2)
    made = [
        template,
        policy(NAME, [selector(template)], list(BOTH)),
        registry(store.url),
        SEARCHER,
        binding("ClusterRoleBinding", NAME, "tom", "tim"),
    ]
    three_members.apply(*made)
    three_members.until_everywhere(DEPLOYMENTS, NAME, lambda obj: obj["status"].get("readyReplicas"), *BOTH)
    yield three_members
    three_members.delete(*made)


@pytest.fixture(scope="module")
def ctl(fleet: Propagation) -> Karmadactl:
    return Karmadactl(fleet.sims.home, fleet.plane.kubeconfig)


def running(fleet: Propagation, cluster: str) -> dict[str, str]:
    """Names of pods, by uid."""
    pods = fleet.members[cluster].list(PODS, "default")
    return {p["metadata"]["uid"]: p["metadata"]["name"] for p in pods if p["metadata"]["name"].startswith(NAME)}


def test_one_command_finds_the_pods_of_all_clusters_with_their_status(fleet: Propagation, ctl: Karmadactl) -> None:
    expected = sorted((cluster, name) for cluster in BOTH for name in running(fleet, cluster).values())

    def found() -> bool:
        rows = [line.split() for line in ctl("search", "--owner", f"deploy/{NAME}", "--kind=po", "--no-headers").lines]
        assert sorted((row[0], row[3]) for row in rows) == expected
        return {row[4] for row in rows} == {"Running"}

    eventually_blocking(found)


def test_a_user_finds_what_it_may_list_in_the_members(fleet: Propagation) -> None:
    refused = fleet.kubectl("get", "--raw", QUERY, "--as=tim", check=False)
    assert "Forbidden" in refused.err
    member = fleet.members["member1"]
    member.create(ROLE_BINDINGS, binding("RoleBinding", "view", "tom"), "default")

    def seen() -> set[str]:
        done = fleet.kubectl("get", "--raw", QUERY, "--as=tom", check=False)
        return {item["cluster"] for item in done.json()["items"]} if done.code == 0 else set()

    eventually_blocking(lambda: seen() == {"member1"})
    member.delete(ROLE_BINDINGS, NAME, "default")


def test_objects_are_in_opensearch_as_long_as_a_registry_wants_them(
    fleet: Propagation, store: OpenSearchServer, ctl: Karmadactl
) -> None:
    uids = {uid for cluster in BOTH for uid in running(fleet, cluster)}
    eventually_blocking(lambda: uids <= store.documents("kubernetes-pod").keys())
    assert store.mappings["kubernetes-pod"]["settings"]["index"]["number_of_shards"] == 1
    fleet.delete(registry(store.url))
    eventually_blocking(lambda: not store.documents("kubernetes-pod"))
    eventually_blocking(lambda: "there is no ResourceRegistry" in ctl("search", NAME, check=False).err)
