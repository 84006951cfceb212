"""The page of a cluster: what it reads, and what it says where it may not or cannot read."""

from __future__ import annotations

from karmada.api.cluster import Cluster
from karmada.dashboard.pages.clusters import conditions_of, node_of, resources_of
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from tests.support.cases import cases
from tests.support.dashboard_client import DashboardPlane
from tests.support.objects import kube_object


def test_the_common_resources_come_first() -> None:
    offered = {"nvidia.com/gpu": "2", "hugepages-1Gi": "0", "pods": "5", "memory": "1Gi", "cpu": "1"}
    found = resources_of({"metadata": {}, "spec": {}, "status": {"resourceSummary": {"allocatable": offered}}})
    assert [(one.name, one.unit) for one in found] == [
        ("cpu", "cores"),
        ("memory", "size"),
        ("pods", "number"),
        ("nvidia.com/gpu", "number"),
    ]


def test_conditions_that_are_not_as_they_should_be_come_first() -> None:
    conditions = [
        {"type": "CompleteAPIEnablements", "status": "True"},
        {"type": "Ready", "status": "False"},
        {"type": "ServiceDomainNameResolutionReady", "status": "False"},
    ]
    found = conditions_of({"metadata": {}, "spec": {}, "status": {"conditions": conditions}})
    assert [(one.type, one.kind) for one in found] == [
        ("Ready", "bad"),
        ("ServiceDomainNameResolutionReady", "warn"),
        ("CompleteAPIEnablements", "good"),
    ]


@cases(("True", {}, "Ready"), ("True", {"unschedulable": True}, "Cordoned"), ("False", {}, "Not ready"))
def test_nodes_are_ready_cordoned_or_not_ready(ready: str, spec: Obj, label: str) -> None:
    status = {"conditions": [{"type": "Ready", "status": ready}], "allocatable": {"cpu": "1500m"}}
    node = node_of({"metadata": {"name": "n"}, "spec": spec, "status": status})
    assert (node.state.label, node.cpu, node.memory) == (label, 1.5, 0.0)


async def test_a_cluster_that_does_not_respond_is_shown_and_its_nodes_are_not(plane: DashboardPlane) -> None:
    await plane.client.create(
        Cluster.gvr,
        kube_object(
            Cluster.gvk.api_version, "Cluster", "a", spec={"syncMode": "Push", "apiEndpoint": "https://127.0.0.1:1"}
        ),
    )
    event = {
        "metadata": {"name": "e", "namespace": "default"},
        "involvedObject": {"kind": "Cluster", "name": "a", "apiVersion": Cluster.gvk.api_version},
        "reason": "SomethingHappened",
        "message": "said so",
        "type": "Warning",
    }
    await plane.client.create(GVR("", "v1", "events"), event)
    await plane.browser.log_in()
    page = await plane.browser.get("/clusters/a")
    assert page.status == 200
    for text in ("Joining", "karmada-es-a", "SomethingHappened", "karmadactl cordon a"):
        assert text in page.text
    nodes = await plane.browser.get("/clusters/a/nodes", HX_Request="true")
    assert nodes.status == 200
    assert "does not respond" in nodes.text
    assert (await plane.browser.get("/clusters/b")).status == 404
