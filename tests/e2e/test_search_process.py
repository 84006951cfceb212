"""Objects of all members through search: from the control plane itself, and from karmada-search behind it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from karmada.kube.objects.types import Obj
from tests.e2e.aggregated_process import AggregatedProcess
from tests.e2e.propagating import Propagation, as_text
from tests.support.eventually import eventually_blocking
from tests.support.objects import kube_object

pytestmark = pytest.mark.e2e
VERSION = "v1alpha1.search.karmada.io"
GROUP = "/apis/search.karmada.io/v1alpha1"
CACHED = f"{GROUP}/search/cache/api/v1/namespaces/kube-system"
PROXIED = f"{GROUP}/proxying/karmada/proxy/api/v1/namespaces/kube-system"
REGISTRY: Obj = kube_object("search.karmada.io/v1alpha1", "ResourceRegistry", "searched") | {
    "spec": {
        "targetCluster": {"clusterNames": ["member1", "member2"]},
        "resourceSelectors": [{"apiVersion": "v1", "kind": "ServiceAccount"}],
    },
}


def sources(fleet: Propagation, path: str) -> set[str]:
    """The clusters that the objects of a list are from."""
    items = json.loads(fleet.kubectl("get", "--raw", path).out)["items"]
    return {item["metadata"]["annotations"]["resource.karmada.io/cached-from-cluster"] for item in items}


def until_cached(fleet: Propagation) -> None:
    both = {"member1", "member2"}
    eventually_blocking(lambda: sources(fleet, f"{CACHED}/serviceaccounts") == both)
    assert sources(fleet, f"{PROXIED}/serviceaccounts") == both
    fleet.kubectl("wait", "resourceregistry/searched", "--for=condition=Cached", "--timeout=100s")


@pytest.fixture
def served_here(three_members: Propagation) -> Iterator[Propagation]:
    three_members.ours("apply", "-f", "-", stdin=json.dumps(REGISTRY))
    yield three_members
    three_members.ours("delete", "resourceregistry", "searched")


def test_the_control_plane_has_the_objects_of_all_members(served_here: Propagation) -> None:
    until_cached(served_here)


def test_a_process_of_its_own_serves_the_same(three_members: Propagation, tmp_path: Path) -> None:
    kubectl = three_members.kubectl
    process = AggregatedProcess(
        tmp_path,
        three_members.plane.kubeconfig,
        name="karmada-search",
        versions=(VERSION,),
        arguments=["--storage", "memory://"],
    )
    before = kubectl("get", "apiservice", VERSION, "-o", "json").json()
    process.start()
    try:
        process.register(kubectl)
        kubectl("apply", "-f", "-", stdin=json.dumps(REGISTRY))
        until_cached(three_members)
        assert json.loads(kubectl("get", "--raw", f"{GROUP}/proxying/karmada/proxy/version").out)["major"] == "1"
        ready = kubectl("get", "--raw", f"{GROUP}/resourceregistries").json()
        assert [item["metadata"]["name"] for item in ready["items"]] == ["searched"]
    finally:
        del before["metadata"]["resourceVersion"]
        kubectl("replace", "-f", "-", stdin=as_text(before))
        assert process.stop() == 0, process.log()
