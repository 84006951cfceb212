"""The list of workloads and the page of one, over a control plane in memory to which a Deployment was bound."""

from __future__ import annotations

import orjson

from karmada.api.cluster import Cluster
from karmada.api.work import ResourceBinding, Work
from karmada.dashboard.pages.workload import pod_selector
from karmada.dashboard.pages.workloads import state_of
from karmada.dashboard.workload import Ref, work_name
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import DEPLOYMENTS
from karmada.kube.objects.types import Obj
from tests.support.cases import cases
from tests.support.dashboard_client import DashboardPlane
from tests.support.objects import kube_object
from tests.support.workloads import one_container, workload

REF = Ref(DEPLOYMENTS, "Deployment", "apps/v1", "default", "web")
TEMPLATE = workload(
    "Deployment", "web", 5, one_container("nginx"), selector={"app": "web", "tier": "a"}, namespace="default"
)
BINDING: Obj = kube_object(
    ResourceBinding.gvk.api_version,
    "ResourceBinding",
    "web-deployment",
    "default",
    annotations={
        "propagationpolicy.karmada.io/name": "everything",
        "propagationpolicy.karmada.io/namespace": "default",
    },
    spec={
        "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web", "uid": "1"},
        "replicas": 5,
        "clusters": [{"name": "m1", "replicas": 3}, {"name": "m2", "replicas": 2}],
    },
)
SCHEDULED = {"type": "Scheduled", "status": "True", "reason": "Success", "message": "", "lastTransitionTime": None}


async def bound(plane: DashboardPlane) -> None:
    """The Deployment, its binding with a report of one of two clusters, and that one's Work."""
    client = plane.client
    await client.create(DEPLOYMENTS, TEMPLATE)
    made = await client.create(ResourceBinding.gvr, BINDING)
    reports = [{"clusterName": "m1", "applied": True, "health": "Healthy", "status": {"readyReplicas": 3}}]
    conditions = [{**SCHEDULED, "lastTransitionTime": "2026-01-01T00:00:00Z"}]
    status = {"aggregatedStatus": reports, "conditions": conditions}
    await client.update_status(ResourceBinding.gvr, {**made, "status": status})
    for name in ("m1", "m2"):
        spec = {"syncMode": "Push", "apiEndpoint": "https://127.0.0.1:1"}
        cluster = kube_object(Cluster.gvk.api_version, "Cluster", name, spec=spec)
        await client.create(Cluster.gvr, cluster)
    await client.create(GVR("", "v1", "namespaces"), {"metadata": {"name": "karmada-es-m1"}})
    work = kube_object(
        Work.gvk.api_version, "Work", work_name(REF), "karmada-es-m1", spec={"workload": {"manifests": [TEMPLATE]}}
    )
    await client.create(Work.gvr, work)


async def test_a_workload_is_listed_and_shown_with_all_that_belongs_to_it(plane: DashboardPlane) -> None:
    await bound(plane)
    await plane.browser.log_in()
    listed = (await plane.browser.get("/workloads")).text
    assert 'href="/workloads/apps/v1/deployments/default/web"' in listed
    assert "m1, m2" in listed
    assert "Waiting to be applied (m2)" in listed
    assert 'href="/policies/default/everything"' in listed
    assert "No binding matches" in (await plane.browser.get("/workloads?namespace=other")).text
    assert ">web</a>" in (await plane.browser.get("/workloads?q=we+depl")).text
    assert ">web</a>" not in (await plane.browser.get("/workloads?q=nginx")).text

    page = (await plane.browser.get(REF.url)).text
    assert "3 of 5" in page
    assert 'data-node="object/m2"' in page
    found = orjson.loads((await plane.browser.get(f"{REF.url}/graph")).text)
    assert {node["id"]: node["state"] for node in found["nodes"]} == {
        "template": "warn",
        "policy": "good",
        "binding": "good",
        "work/m1": "good",
        "object/m1": "good",
        "work/m2": "warn",
        "object/m2": "warn",
    }


async def test_each_node_is_shown_or_it_is_said_why_not(plane: DashboardPlane) -> None:
    await bound(plane)
    await plane.browser.log_in()

    async def node(ident: str) -> str:
        found = await plane.browser.get(f"{REF.url}/nodes/{ident}")
        assert found.status == 200
        return found.text

    assert "matchLabels" in await node("template")
    assert "Scheduled" in await node("binding")
    assert "manifests" in await node("work/m1")
    assert "not found" in await node("work/m2")
    assert "not found" in await node("policy")
    assert 'class="problem"' in await node("object/m1")  # nothing listens there
    assert (await plane.browser.get(f"{REF.url}/nodes/moon")).status == 404
    why = (await plane.browser.get(f"{REF.url}/why")).text
    assert "the binding has no placement" in why


async def test_what_rbac_forbids_is_not_shown(plane: DashboardPlane) -> None:
    await bound(plane)
    await plane.browser.log_in("nobody-token")
    listed = (await plane.browser.get("/workloads")).text
    assert "forbidden" in listed
    assert "web" not in listed.split("<main")[1].split("problem")[0]
    assert (await plane.browser.get(REF.url)).status == 403
    assert (await plane.browser.get("/workloads/apps/v1/moons/default/web")).status == 404


@cases(
    ([], [], ("warn", "Not scheduled yet")),
    ([{**SCHEDULED, "status": "False", "reason": "NoClusterFit"}], [], ("bad", "NoClusterFit")),
    ([SCHEDULED], [], ("idle", "In no cluster")),
    ([SCHEDULED], [{"name": "m1"}], ("warn", "Waiting to be applied (m1)")),
    ([SCHEDULED], [{"name": "m1"}, {"name": "m2"}], ("warn", "Waiting to be applied (2 clusters)")),
)
def test_a_row_has_the_worst_that_is_known(conditions: list[Obj], clusters: list[Obj], state: tuple[str, str]) -> None:
    assert state_of({"spec": {"clusters": clusters}, "status": {"conditions": conditions}}) == state


@cases(
    (REF, TEMPLATE, "app=web,tier=a"),
    (REF, None, ""),
    (REF._replace(kind="Service"), {"spec": {"selector": {"app": "web"}}}, ""),
    (REF._replace(gvr=GVR("batch", "v1", "jobs"), kind="Job"), {"spec": {}}, "batch.kubernetes.io/job-name=web"),
)
def test_pods_are_selected_as_their_workload_does(ref: Ref, template: Obj | None, selector: str) -> None:
    assert pod_selector(ref, template) == selector
