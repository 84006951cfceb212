"""Metrics of all members with real kubectl: through the control plane itself, and through a process behind it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from karmada.kube.objects.gvrs import NODES
from tests.e2e.aggregated_process import AggregatedProcess
from tests.e2e.propagating import Propagation, as_text
from tests.support.eventually import eventually_blocking
from tests.support.ports import free_port
from tests.support.propagation import deployment, policy, selecting

VERSIONS = ("v1beta1.metrics.k8s.io", "v1beta2.custom.metrics.k8s.io", "v1beta1.custom.metrics.k8s.io")
PODS = "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods"
CUSTOM = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/default/pods/*/http_requests"


@pytest.fixture(scope="module")
def measured(three_members: Propagation) -> Iterator[Propagation]:
    """Two replicas in member1 and in member2, each with a load."""
    web = deployment("measured", replicas=2)
    web["spec"]["template"]["metadata"]["annotations"] = {"sim.io/load": "cpu=120m,http_requests=7"}
    here = {"clusterAffinity": {"clusterNames": ["member1", "member2"]}}
    objects = [web, policy("measured", selecting(name="measured"), placement=here)]
    three_members.apply(*objects)
    three_members.until_bound("Deployment", "measured", "member1", "member2")
    yield three_members
    three_members.delete(*objects)


def until_measured(fleet: Propagation) -> list[list[str]]:
    """The rows of `kubectl top pods`, once every pod has been measured."""

    def all_measured() -> bool:
        answer = fleet.here.start(fleet.here.client.raw("GET", PODS, query={"labelSelector": "app=measured"})).result()
        return len(answer["items"]) == 4

    eventually_blocking(all_measured)
    rows = fleet.kubectl("top", "pods", "-l", "app=measured", "--no-headers").lines
    assert len(rows) == 4
    return [row.split() for row in rows]


def custom_values(fleet: Propagation) -> list[str]:
    answer = fleet.kubectl("get", "--raw", f"{CUSTOM}?labelSelector=app%3Dmeasured")
    return [item["value"] for item in json.loads(answer.out)["items"]]


def test_kubectl_top_shows_the_pods_and_nodes_of_all_members(measured: Propagation) -> None:
    assert {row[1] for row in until_measured(measured)} == {"120m"}
    nodes = measured.kubectl("top", "nodes", "--no-headers").out.splitlines()
    assert len(nodes) == sum(len(place.list(NODES)) for place in measured.members.values())
    assert custom_values(measured) == ["7"] * 4


def test_a_process_of_its_own_serves_the_same(measured: Propagation, tmp_path: Path) -> None:
    until_measured(measured)
    scraped = free_port()
    process = AggregatedProcess(
        tmp_path,
        measured.plane.kubeconfig,
        name="karmada-metrics-adapter",
        service="metrics-behind",
        verified=False,
        versions=VERSIONS,
        arguments=["--metrics-bind-address", f"127.0.0.1:{scraped}"],
    )
    services = measured.kubectl("get", "apiservice", *VERSIONS, "-o", "json").json()["items"]
    process.start()
    try:
        process.register(measured.kubectl)
        assert {row[1] for row in until_measured(measured)} == {"120m"}
        assert custom_values(measured) == ["7"] * 4
        with urlopen(f"http://127.0.0.1:{scraped}/metrics") as page:
            assert b'apiserver_request_total{verb="LIST",group="metrics.k8s.io"' in page.read()
    finally:
        for service in services:
            del service["metadata"]["resourceVersion"]
        measured.kubectl("replace", "-f", "-", stdin=as_text(*services))
        assert process.stop() == 0
