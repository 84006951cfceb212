from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from karmada.dashboard.graph import MOST_CLUSTERS, MOST_PODS, graph_of, pod_state
from karmada.dashboard.workload import PolicyRef, Ref, Target, Workload, policy_of, targets_of, url_of
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import DEPLOYMENTS
from tests.support.cases import cases

REF = Ref(DEPLOYMENTS, "Deployment", "apps/v1", "prod", "web")


def binding(*, clusters: dict[str, int | None], reports: Sequence[Any] = (), tasks: Sequence[Any] = ()) -> Any:
    targets = [{"name": name, **({} if count is None else {"replicas": count})} for name, count in clusters.items()]
    spec = {"clusters": targets, "gracefulEvictionTasks": list(tasks)}
    return {
        "metadata": {"name": "web-deployment"},
        "spec": spec,
        "status": {"aggregatedStatus": list(reports)},
    }


def workload(*targets: Target, **parts: Any) -> Workload:
    given = {"template": {"metadata": {}}, "binding": binding(clusters={}), "policy": None} | parts
    return Workload(REF, given["template"], given["binding"], given["policy"], targets)


def pod(name: str, **status: Any) -> Any:
    return {"metadata": {"name": name}, "status": status}


READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


@cases(
    (None, "warn", "Waiting to be applied"),
    ({"clusterName": "m1"}, "warn", "Waiting to be applied"),
    ({"clusterName": "m1", "applied": True, "health": "Healthy"}, "good", "Healthy"),
    ({"clusterName": "m1", "applied": True, "health": "Unhealthy"}, "bad", "Unhealthy"),
    ({"clusterName": "m1", "applied": True}, "warn", "Health not known"),
    ({"clusterName": "m1", "appliedMessage": "no namespace"}, "bad", "no namespace"),
)
def test_a_cluster_has_the_state_that_it_reports(report: Any, state: str, text: str) -> None:
    [found] = targets_of(binding(clusters={"m1": 2}, reports=[report] if report else []), {})
    assert (found.state, found.text, found.replicas) == (state, text, 2)


def test_a_work_that_was_not_applied_says_why_before_the_binding_does() -> None:
    work = {"status": {"conditions": [{"type": "Applied", "status": "False", "message": "quota"}]}}
    [found] = targets_of(binding(clusters={"m1": None}), {"m1": work})
    assert (found.state, found.text) == ("bad", "quota")


def test_clusters_that_it_leaves_are_shown_until_it_has_left() -> None:
    task = {"fromCluster": "m2", "reason": "TaintUntolerated"}
    found = targets_of(binding(clusters={"m1": 1}, reports=[{"clusterName": "m3"}], tasks=[task]), {})
    assert [(one.cluster, one.state, one.text) for one in found[1:]] == [
        ("m2", "idle", "Leaving: TaintUntolerated"),
        ("m3", "idle", "Being removed"),
    ]


def test_the_way_leads_from_template_and_policy_over_the_binding_to_pods() -> None:
    target = Target("m1", 2, "good", "Healthy")
    found = graph_of(
        workload(target, policy=PolicyRef("PropagationPolicy", "prod", "web")), {"m1": [pod("web-1", **READY)]}
    )
    assert [(edge["source"], edge["target"]) for edge in found["edges"]] == [
        ("template", "binding"),
        ("policy", "binding"),
        ("binding", "work/m1"),
        ("work/m1", "object/m1"),
        ("object/m1", "pod/m1/web-1"),
    ]
    assert {node["id"]: node["state"] for node in found["nodes"]}["pod/m1/web-1"] == "good"


def test_without_a_binding_there_is_nothing_behind_the_template() -> None:
    found = graph_of(workload(binding=None), {})
    assert [node["id"] for node in found["nodes"]] == ["template"]
    assert found["edges"] == []


def test_of_many_clusters_those_with_problems_have_nodes_and_the_rest_is_counted() -> None:
    healthy = [Target(f"m{nth:03}", 1, "good", "Healthy") for nth in range(MOST_CLUSTERS + 5)]
    found = graph_of(workload(*healthy, Target("z", 1, "bad", "Unhealthy")), {})
    ids = [node["id"] for node in found["nodes"]]
    assert "object/z" in ids
    assert [node["title"] for node in found["nodes"] if node["id"] == "clusters"] == ["6 more clusters"]


def test_of_many_pods_those_with_problems_have_nodes_and_the_rest_is_counted() -> None:
    pods = [pod(f"web-{nth}", **READY) for nth in range(MOST_PODS + 2)] + [pod("bad", phase="Failed")]
    found = graph_of(workload(Target("m1", 9, "good", "Healthy")), {"m1": pods})
    shown = [node["title"] for node in found["nodes"] if node["sort"] in ("pod", "pods")]
    assert shown[0] == "bad"
    assert shown[-1] == "3 more pods"
    assert len(shown) == MOST_PODS + 1


@cases(
    (READY, ("good", "Running")),
    ({"phase": "Running"}, ("warn", "Not ready")),
    ({"phase": "Pending"}, ("warn", "Pending")),
    ({"phase": "Succeeded"}, ("good", "Succeeded")),
    ({"phase": "Failed"}, ("bad", "Failed")),
    (
        {
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
        },
        ("bad", "Unschedulable"),
    ),
    (
        {"phase": "Running", "containerStatuses": [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}]},
        ("bad", "CrashLoopBackOff"),
    ),
    ({}, ("warn", "Pending")),
)
def test_a_pod_has_the_state_that_kubectl_shows(status: Any, state: tuple[str, str]) -> None:
    assert pod_state(pod("web", **status)) == state


def test_a_pod_that_is_deleted_terminates() -> None:
    assert pod_state({"metadata": {"name": "a", "deletionTimestamp": "now"}, "status": READY}) == (
        "idle",
        "Terminating",
    )


@cases(
    ({}, None),
    ({"propagationpolicy.karmada.io/namespace": "prod", "propagationpolicy.karmada.io/name": "p"}, "prod/p"),
    ({"clusterpropagationpolicy.karmada.io/name": "c"}, "c"),
)
def test_the_policy_is_the_one_that_claimed(annotations: dict[str, str], title: str | None) -> None:
    found = policy_of({"metadata": {"annotations": annotations}})
    assert (found.title if found else None) == title


def test_paths_name_the_group_without_a_name_and_objects_without_a_namespace() -> None:
    assert url_of(GVR("", "v1", "namespaces"), "", "prod") == "/workloads/core/v1/namespaces/-/prod"
    assert REF.url == "/workloads/apps/v1/deployments/prod/web"
