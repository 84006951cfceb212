"""Policies as users know them from documents and tutorials, applied to the resources they were written for."""

from __future__ import annotations

from pathlib import Path

import pytest

from karmada.kube.client.manifests import load_manifests
from karmada.kube.objects.types import Obj
from karmada.overrides.engine import Overrides
from tests.support.overriding import cluster, containers_of

_DATA = Path(__file__).parent / "data"
POLICIES = load_manifests((_DATA / "policies.yaml").read_bytes())
RESOURCES = {obj["metadata"]["name"]: obj for obj in load_manifests((_DATA / "resources.yaml").read_bytes())}
CLUSTERS = [
    cluster("member-cluster-1", {"environment": "production"}),
    cluster("member-cluster-2", {"environment": "test"}),
    cluster("member1"),
    cluster("member2"),
]


@pytest.fixture(scope="module")
def overrides() -> Overrides:
    return Overrides.of_objects([*POLICIES, *CLUSTERS])


def in_cluster(overrides: Overrides, name: str, cluster: str) -> Obj:
    return overrides.apply(RESOURCES[name], cluster).manifest


def test_image_replicas_arguments_and_resources(overrides: Overrides) -> None:
    made = in_cluster(overrides, "nginx", "member-cluster-1")
    assert made["spec"]["replicas"] == 3
    (nginx,) = containers_of(made)
    assert nginx["image"] == "registry-1.example.com/nginx:v1.0.0-cluster1"
    assert nginx["args"] == ["--config=/etc/nginx/cluster1.conf"]
    assert nginx["resources"] == {
        "limits": {"cpu": "2", "memory": "2Gi"},
        "requests": {"cpu": "500m", "memory": "512Mi"},
    }


def test_plain_patches_for_labelled_clusters(overrides: Overrides) -> None:
    spec = in_cluster(overrides, "nginx", "member-cluster-1")["spec"]["template"]["spec"]
    assert [entry["name"] for entry in spec["containers"][0]["env"]] == ["ENVIRONMENT", "LOG_LEVEL"]
    (term,) = spec["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert term["weight"] == 100


def test_labels_and_annotations_that_were_not_there(overrides: Overrides) -> None:
    made = in_cluster(overrides, "nginx", "member-cluster-2")
    assert made["metadata"]["labels"] == {"cluster": "member-cluster-2"}
    assert made["metadata"]["annotations"] == {"monitoring.example.com/enabled": "true"}
    assert containers_of(made) == [{"name": "nginx", "image": "registry-2.example.com/nginx:1.19"}]
    assert made["spec"]["replicas"] == 2


def test_a_custom_resource(overrides: Overrides) -> None:
    made = in_cluster(overrides, "guestbook-sample", "member1")
    assert made["spec"] == {"size": 4, "configMapName": "test", "alias": "Name"}
    assert made["metadata"]["annotations"] == {"OverridePolicy": "test"}
    assert in_cluster(overrides, "guestbook-sample", "member2") is RESOURCES["guestbook-sample"]


def test_a_registry_in_front_of_an_image(overrides: Overrides) -> None:
    made = in_cluster(overrides, "myapp", "member2")
    assert containers_of(made) == [{"name": "myapp", "image": "test-repo/myapp:1.0.0"}]
