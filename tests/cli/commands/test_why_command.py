"""karmadactl why: real server, real scheduler, over HTTPS."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner, Result

from karmada.api.cluster import Cluster
from karmada.api.policy import ClusterPropagationPolicy, FederatedResourceQuota, PropagationPolicy
from karmada.cli.commands.why import why
from karmada.components.estimates_page import estimates_page
from karmada.controllers.context import Settings
from karmada.estimator.terms import EstimateError
from karmada.kube.objects.clock import RealClock
from karmada.kube.objects.gvrs import CONFIG_MAPS, EVENTS
from karmada.kube.objects.types import Obj
from karmada.kube.schema.yamlio import load_yaml
from karmada.prediction import evictions
from karmada.scheduler.estimators.protocol import EstimateRequest
from karmada.scheduler.service.estimates import PATH
from tests.support.cases import cases
from tests.support.scheduling_cases import DUPLICATED, DYNAMIC, config_map, deployment, placement, spread
from tests.support.scheduling_plane import BINDINGS, Scheduling, scheduling


@pytest.fixture
async def plane(folder: Path) -> AsyncIterator[Scheduling]:
    async with scheduling(folder, clock=RealClock()) as found:
        yield found


async def explain(plane: Scheduling, *words: str) -> Result:
    arguments = [*words, "--kubeconfig", str(plane.plane.server.kubeconfig)]
    await plane.events("anything")
    return await asyncio.to_thread(CliRunner().invoke, why, arguments)


def rows(output: str) -> dict[str, list[str]]:
    """The table's lines by cluster."""
    lines = output.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("CLUSTER"))
    return {line.split()[0]: line.split(maxsplit=6) for line in lines[start + 1 :] if line}


async def test_it_reports_what_is_written_and_why_every_cluster_was_taken_or_not(plane: Scheduling) -> None:
    await plane.clusters("m1", pods=20)
    await plane.clusters("m2", pods=10)
    await plane.cluster("m3", pods=10, taints=[{"key": "maintenance", "effect": "NoSchedule"}])
    await plane.bind("web-deployment", deployment(6, placement(DYNAMIC)))
    result = await explain(plane, "deployment/web")
    assert result.exit_code == 0, result.output
    printed = result.output
    assert "Resource:    Deployment default/web (apps/v1)" in printed
    assert "Binding:     ResourceBinding default/web-deployment" in printed
    assert "Written:     m1:4, m2:2" in printed
    assert "Scheduled:   True, Success: Binding has been scheduled successfully." in printed
    assert "Observed:    generation 2 of 2, last scheduled" in printed
    assert "Next:        nothing: its replicas are divided as specified" in printed
    assert "ScheduleBindingSucceed: Binding has been scheduled successfully. Result: {m1:4, m2:2}" in printed
    assert "Scheduling it now gives the same clusters." in printed
    table = rows(printed)
    assert table["m1"][1:4] == ["4", "4", "selected"]
    assert table["m3"][1:4] == ["-", "-", "refused"]
    assert "TaintToleration: cluster(s) had untolerated taint {maintenance:NoSchedule}" in table["m3"][6]


async def test_placed_anew_the_weights_show(plane: Scheduling) -> None:
    await plane.clusters("m1", pods=20)
    await plane.clusters("m2", pods=10)
    await plane.bind("web-deployment", deployment(6, placement(DYNAMIC)))
    await plane.report("m1", 2)
    printed = (await explain(plane, "deploy", "web", "--fresh")).output
    assert "which differs from what is written" in printed
    assert "weight" in printed


async def test_for_programs_there_is_all_of_it(plane: Scheduling) -> None:
    await plane.clusters("m1", "m2")
    await plane.bind("settings-configmap", config_map({"clusterAffinity": {"clusterNames": ["m2"]}}))
    result = await explain(plane, "cm/settings", "-o", "json")
    found = orjson.loads(result.output)
    assert found["resource"]["kind"] == "ConfigMap"
    assert found["written"]["clusters"] == found["now"]["clusters"] == [{"name": "m2"}]
    assert found["written"]["condition"]["reason"] == "Success"
    assert [event["reason"] for event in found["written"]["events"]] == ["ScheduleBindingSucceed"]
    [attempt] = found["now"]["attempts"]
    refused, taken = attempt["clusters"]
    assert (refused["cluster"], refused["fate"], refused["filter"]) == ("m1", "refused", "ClusterAffinity")
    assert (taken["cluster"], taken["fate"]) == ("m2", "selected")


async def test_bindings_can_be_named_themselves(plane: Scheduling) -> None:
    await plane.clusters("m1")
    await plane.bind("web-deployment", deployment(2, placement(DUPLICATED)))
    resource = {"apiVersion": "v1", "kind": "ConfigMap", "name": "wide"}
    await plane.bind("wide-configmap", {"resource": resource, "placement": {}}, namespace="")
    assert "Written:     m1:2" in (await explain(plane, "rb/web-deployment")).output
    assert "Written:     m1\n" in (await explain(plane, "crb/wide-configmap")).output


async def test_groups_and_failures_are_reported_one_by_one(plane: Scheduling) -> None:
    await plane.clusters("m1", "m2", pods=1)
    terms = [{"affinityName": f"g{n}", "clusterNames": [f"m{n}"]} for n in (1, 2)]
    await plane.bind("web-deployment", deployment(3, placement(DYNAMIC, clusterAffinities=terms)))
    printed = (await explain(plane, "deployment/web")).output
    wrong = "failed to assign replicas: failed to scale up: Clusters available replicas 1 are not enough to schedule."
    assert f"Scheduled:   False, Unschedulable: {wrong}" in printed
    assert f'Group "g1": {wrong}' in printed
    assert f'Group "g2": {wrong}' in printed
    assert "Scheduling it now fails (Unschedulable)" in printed
    assert "Written:     nowhere" in printed


async def test_suspension_is_reported(plane: Scheduling) -> None:
    await plane.bind("web-deployment", deployment(3, placement(DYNAMIC), suspension={"scheduling": True}))
    printed = (await explain(plane, "deployment/web")).output
    assert "Next:        nothing: spec.suspension.scheduling is true" in printed
    assert "Scheduled:   not yet" in printed
    assert "0/0 clusters are available: no cluster exists." in printed
    assert ".." not in printed


async def test_a_rebalance_is_reported_as_pending_or_done(plane: Scheduling) -> None:
    await plane.clusters("m1", pods=9)
    await plane.bind("web-deployment", deployment(2, placement(DYNAMIC)))
    assert "Rebalance:" not in (await explain(plane, "deployment/web")).output
    await plane.change("web-deployment", {"rescheduleTriggeredAt": "2020-01-01T00:00:00Z"})
    done = "Rebalance:   triggered at 2020-01-01T00:00:00Z and done: it was scheduled since"
    assert done in (await explain(plane, "deployment/web")).output
    held = {"suspension": {"scheduling": True}, "rescheduleTriggeredAt": "2199-01-01T00:00:00Z"}
    await plane.change("web-deployment", held)
    pending = "Rebalance:   triggered at 2199-01-01T00:00:00Z and pending: it is still to be scheduled afresh"
    assert pending in (await explain(plane, "deployment/web")).output


async def test_a_chosen_cluster_that_is_not_ready_or_gone_is_named(plane: Scheduling) -> None:
    await plane.clusters("m1", "m2")
    await plane.bind("web-deployment", deployment(2, placement(DUPLICATED)))
    for name, state, reason in (("m1", "False", "ClusterNotReachable"), ("m2", "True", "ClusterReady")):
        condition = {"type": "Ready", "status": state, "reason": reason, "message": "as the test says."}
        cluster = await plane.client.get(Cluster.gvr, name)
        status = {**(cluster.get("status") or {}), "conditions": [condition]}
        await plane.client.update(Cluster.gvr, {**cluster, "status": status}, subresource="status")
    printed = (await explain(plane, "deployment/web")).output
    assert "Not Ready:   m1 (ClusterNotReachable: as the test says)" in printed
    data = orjson.loads((await explain(plane, "deployment/web", "-o", "json")).output)
    assert list(data["written"]["notReady"]) == ["m1"]


async def test_what_is_scheduled_again_with_the_same_result_is_not_announced(plane: Scheduling) -> None:
    await plane.clusters("m1")
    await plane.bind("settings-configmap", config_map({"clusterAffinity": {"clusterNames": ["m1"]}}))
    printed = (await explain(plane, "cm/settings")).output
    assert "Next:        nothing: scheduling it again would give the same clusters" in printed


async def test_events_of_a_deleted_namesake_are_left_out(plane: Scheduling) -> None:
    await plane.clusters("m1")
    first = await plane.bind("web-deployment", deployment(2, placement(DUPLICATED)))
    await plane.client.delete(BINDINGS, "web-deployment", "default")
    await plane.client.create(
        EVENTS,
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "old.1", "namespace": "default"},
            "involvedObject": {
                "kind": "ResourceBinding", "namespace": "default", "name": "web-deployment",
                "uid": first["metadata"]["uid"],
            },
            "reason": "ScheduleBindingFailed",
            "message": "of the namesake",
            "type": "Warning",
        },
    )  # fmt: skip
    await plane.bind("web-deployment", deployment(2, placement(DUPLICATED)))
    printed = (await explain(plane, "deployment/web")).output
    assert "ScheduleBindingSucceed" in printed
    assert "of the namesake" not in printed


async def test_no_room_is_explained(plane: Scheduling) -> None:
    await plane.clusters("m1", pods=5)
    requirements = {"resourceRequest": {"cpu": "1500m"}}
    await plane.bind("web-deployment", {**deployment(2, placement(DYNAMIC)), "replicaRequirements": requirements})
    printed = (await explain(plane, "deployment/web")).output
    assert "(a replica requests cpu: 1500m, of which the cluster reports nothing)" in printed


async def test_what_would_make_it_fit_is_suggested_and_is_true(plane: Scheduling) -> None:
    await plane.clusters("m1", "m2", "m3", pods=4)
    where = placement(DYNAMIC, spread("cluster", 1, 1))
    await plane.bind("web-deployment", deployment(6, where))
    printed = (await explain(plane, "deployment/web")).output
    assert "no enough resource when selecting 1 clusters" in printed
    advice = printed[printed.index("It would fit if:") : printed.index("CLUSTER")]
    assert advice.splitlines()[:-1] == [
        "It would fit if:",
        "  - maxGroups of the spread constraint by cluster were 2",
        "  - m1 had 2 more pods",
        "  - m2 had 2 more pods",
        "  - replicas were 4",
    ]
    placed = {"spreadConstraints": [spread("cluster", 1, 2)]}
    await plane.client.patch(BINDINGS, "web-deployment", "default", {"spec": {"placement": placed}})
    await plane.rest()
    printed = (await explain(plane, "deployment/web")).output
    assert "Written:     m1:3, m2:3" in printed
    assert "would fit" not in printed


async def test_what_would_make_it_go_to_a_cluster_is_suggested(plane: Scheduling) -> None:
    await plane.clusters("m1", pods=4)
    await plane.cluster("m2", pods=4, taints=[{"key": "maintenance", "effect": "NoSchedule"}])
    await plane.bind("settings-configmap", config_map({}))
    printed = (await explain(plane, "cm/settings", "--cluster", "m2")).output
    assert "It would go to m2 if:\n  - the taint maintenance:NoSchedule were tolerated\n" in printed
    assert "would go" not in (await explain(plane, "cm/settings", "--cluster", "m1")).output
    unknown = await explain(plane, "cm/settings", "--cluster", "m9")
    assert unknown.output == 'error: cluster "m9" is not joined (known: m1, m2)\n'


async def test_the_example_of_the_documentation_is_true(plane: Scheduling) -> None:
    await plane.clusters("member1", pods=20)
    await plane.clusters("member2", pods=10)
    await plane.cluster("member3", pods=30, taints=[{"key": "maintenance", "effect": "NoSchedule"}])
    spec = deployment(36, placement(DYNAMIC))
    await plane.bind("nginx-deployment", {**spec, "resource": {**spec["resource"], "name": "nginx"}})
    printed = (await explain(plane, "deployment/nginx")).output
    page = (Path(__file__).parents[3] / "docs" / "scheduling.md").read_text()
    example = page.split("$ karmadactl why deployment/nginx\n")[1].split("\n```")[0]
    head, rest = example.split("\n...\n")
    assert printed.startswith(head)
    assert printed.endswith(rest + "\n")


async def test_suggestions_are_data_too(plane: Scheduling) -> None:
    await plane.cluster("m1", taints=[{"key": "maintenance", "effect": "NoSchedule"}])
    await plane.bind("settings-configmap", config_map({}))
    as_json = orjson.loads((await explain(plane, "cm/settings", "-o", "json")).output)
    fit = as_json["now"]["fit"]
    assert fit["complete"] is True
    [suggestion] = fit["suggestions"]
    assert suggestion["text"] == "fits if the taint maintenance:NoSchedule were tolerated"
    [change] = suggestion["changes"]
    assert change["add"] == {"key": "maintenance", "operator": "Equal", "effect": "NoSchedule"}
    as_yaml = load_yaml((await explain(plane, "cm/settings", "-o", "yaml")).output)
    assert as_yaml == as_json
    placed = {"clusterTolerations": [change["add"]]}
    await plane.client.patch(BINDINGS, "settings-configmap", "default", {"spec": {"placement": placed}})
    await plane.rest()
    assert orjson.loads((await explain(plane, "cm/settings", "-o", "json")).output)["now"]["fit"] is None


class NodeEstimator:
    """As the estimators of members: it returns other numbers than the summaries."""

    name = "scheduler-estimator"

    async def estimate(self, request: EstimateRequest) -> dict[str, int]:
        if "down" in request.names():
            raise EstimateError("no connection to down")
        return dict.fromkeys(request.names(), 3)


async def test_the_estimator_that_decided_is_named(folder: Path) -> None:
    async with scheduling(folder, clock=RealClock(), estimators=[NodeEstimator()]) as plane:
        plane.plane.server.pipeline.paths[PATH] = estimates_page(plane.scheduler.core)
        await plane.clusters("m1", "m2", pods=12)
        await plane.cluster("m3", pods=12, taints=[{"key": "maintenance", "effect": "NoSchedule"}])
        await plane.bind("web-deployment", deployment(9, placement(DYNAMIC)))
        printed = (await explain(plane, "deployment/web")).output
        assert "room for 3 more replica(s) by estimator (12 by summary)" in printed
        assert "available replicas 6 are not enough" in printed
        assert "  - the taint maintenance:NoSchedule were tolerated\n" in printed
        assert "  - m1 had capacity for 6 more replicas on its nodes (scheduler-estimator reports 3)\n" in printed
        assert "  - replicas were 6\n" in printed

        await plane.clusters("down", pods=12)
        printed = (await explain(plane, "deployment/web", "--fresh")).output
        assert "room for 12 more replica(s) by summary; 3 replica(s)" in printed
        assert "would fit" not in printed


async def test_a_quota_that_refuses_the_result_is_named_with_what_it_lacks(plane: Scheduling) -> None:
    await plane.clusters("m1", pods=9)
    metadata = {"name": "team", "namespace": "default"}
    head = {"apiVersion": FederatedResourceQuota.gvk.api_version, "kind": "FederatedResourceQuota"}
    await plane.client.create(
        FederatedResourceQuota.gvr, {**head, "metadata": metadata, "spec": {"overall": {"cpu": "1"}}}
    )
    requirements = {"resourceRequest": {"cpu": "1"}}
    await plane.client.patch(
        Cluster.gvr,
        "m1",
        "",
        {"status": {"resourceSummary": {"allocatable": {"pods": "9", "cpu": "9"}}}},
        subresource="status",
    )
    spec = deployment(3, placement(DYNAMIC), replicaRequirements=requirements, suspension={"scheduling": True})
    await plane.bind("web-deployment", spec)
    printed = (await explain(plane, "deployment/web", "--feature-gates", "FederatedQuotaEnforcement=true")).output
    assert "A quota refuses that: FederatedResourceQuota(default/team) exceeded for resource cpu" in printed
    assert "  - the FederatedResourceQuota team had 2 more cpu\n" in printed


# without a binding


async def settings(plane: Scheduling, **labels: str) -> None:
    metadata = {"name": "settings", "namespace": "default", "labels": labels}
    await plane.client.create(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})


async def test_without_a_policy_that_is_said(plane: Scheduling) -> None:
    await settings(plane)
    result = await explain(plane, "configmap/settings")
    assert result.exit_code == 1
    assert result.output == (
        "error: no policy selects ConfigMap default/settings: 0 PropagationPolicies in its namespace and"
        " 0 ClusterPropagationPolicies were looked at\n"
    )


@cases(PropagationPolicy, ClusterPropagationPolicy)
async def test_with_a_policy_and_no_binding_the_policy_is_named(
    kind: type[PropagationPolicy] | type[ClusterPropagationPolicy], plane: Scheduling
) -> None:
    await settings(plane)
    metadata = {"name": "everything", **({"namespace": "default"} if kind is PropagationPolicy else {})}
    selectors = [{"apiVersion": "v1", "kind": "ConfigMap"}]
    spec = {"resourceSelectors": selectors, "placement": {}}
    head = {"apiVersion": kind.gvk.api_version, "kind": kind.gvk.kind}
    await plane.client.create(kind.gvr, {**head, "metadata": metadata, "spec": spec})
    printed = (await explain(plane, "configmap/settings")).output
    assert f'although the {kind.gvk.kind} "everything" selects it' in printed


async def test_what_is_never_propagated_is_said_to_be_so(plane: Scheduling) -> None:
    await settings(plane, **{"resourcetemplate.karmada.io/claimed-by": "Somebody"})
    assert "says that Somebody manages it" in (await explain(plane, "configmap/settings")).output
    metadata = {"name": "own", "namespace": "karmada-system"}
    await plane.client.create(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    printed = (await explain(plane, "configmap/own", "-n", "karmada-system")).output
    assert 'the namespace "karmada-system" is the control plane\'s own' in printed


async def test_what_does_not_exist_is_not_found(plane: Scheduling) -> None:
    printed = (await explain(plane, "deployment/web")).output
    assert printed == 'Error from server (NotFound): deployments.apps "web" not found\n'
    assert (await explain(plane, "starship/web")).output == (
        'error: the server doesn\'t have a resource type "starship"\n'
    )
    assert "as TYPE/NAME or TYPE NAME" in (await explain(plane, "web")).output
    assert (await explain(plane, "rb/web")).exit_code == 1


async def test_without_a_namespace_it_is_that_of_the_kubeconfig(plane: Scheduling, tmp_path: Path) -> None:
    await plane.clusters("m1")
    await plane.bind("web-deployment", deployment(2, placement(DUPLICATED)))
    config = load_yaml(plane.plane.server.kubeconfig.read_text())
    config["contexts"][0]["context"]["namespace"] = "shop"
    (tmp_path / "config").write_bytes(orjson.dumps(config))
    elsewhere = ["deployment/web", "--kubeconfig", str(tmp_path / "config")]
    printed = await asyncio.to_thread(CliRunner().invoke, why, elsewhere)
    assert printed.output == 'Error from server (NotFound): deployments.apps "web" not found\n'
    assert (await asyncio.to_thread(CliRunner().invoke, why, [*elsewhere, "-n", "default"])).exit_code == 0


async def test_it_writes_nothing(plane: Scheduling) -> None:
    await plane.clusters("m1")
    made = await plane.bind("web-deployment", deployment(2, placement(DUPLICATED)))
    await explain(plane, "deployment/web")
    assert await plane.client.get(BINDINGS, "web-deployment", "default") == made


TAINTED = "left m1 because it has a NoExecute taint that the placement does not tolerate, since 2023-11-14T22:13:20Z"


@cases(
    (
        {"reason": "TaintUntolerated", "producer": "TaintManager", "purgeMode": "Gracefully"},
        ["m2"],
        {"m1": "Healthy"},
        f"{TAINTED}; its copy there waits for the resource to be healthy in m2, until 2023-11-14T22:23:20Z at most",
    ),
    (
        {"reason": "ApplicationFailure", "producer": "x", "purgeMode": "Never", "suppressDeletion": True},
        ["m2"],
        {},
        "left m1 because the resource was unhealthy there, since 2023-11-14T22:13:20Z; "
        "its copy there stays until suppressDeletion of the task is false",
    ),
    (
        {"reason": "TaintUntolerated", "producer": "TaintManager", "purgeMode": "Directly"},
        ["m2"],
        {},
        f"{TAINTED}; its copy there is deleted before the next one is made",
    ),
    (
        {"reason": "Drained", "producer": "people", "purgeMode": "Gracefully", "gracePeriodSeconds": 5},
        [],
        {"m1": "Healthy"},
        "left m1 because people says Drained, since 2023-11-14T22:13:20Z; its copy there waits for another cluster "
        "that fits (past its grace period: it may be the last that serves)",
    ),
)
def test_evictions_are_explained(task: Obj, clusters: list[str], health: dict[str, str], sentence: str) -> None:
    started = {"fromCluster": "m1", **task, "creationTimestamp": "2023-11-14T22:13:20Z"}
    binding = {
        "metadata": {"name": "web", "generation": 2},
        "spec": {"clusters": [{"name": name} for name in clusters], "gracefulEvictionTasks": [started]},
        "status": {
            "schedulerObservedGeneration": 2,
            "aggregatedStatus": [{"clusterName": name, "health": found} for name, found in health.items()],
        },
    }
    ready = {
        "metadata": {"name": "m1"},
        "spec": {"taints": [{"key": "down", "effect": "NoExecute"}]},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }
    assert evictions.in_words(binding, {"m1": ready}, Settings(), 1_700_000_000.0 + 60) == [sentence]
