"""karmadactl simulate: what would happen, over a real server, and nothing happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from click.testing import CliRunner, Result

from karmada.api import well_known
from karmada.api.cluster import Cluster
from karmada.api.policy import (
    ClusterPropagationPolicy,
    ClusterTaintPolicy,
    PropagationPolicy,
    ReplicaSchedulingPolicy,
)
from karmada.api.work import ResourceBinding
from karmada.cli.commands.simulate import simulate
from karmada.components.estimates_page import estimates_page
from karmada.controllers.context import Settings
from karmada.controllers.setting_metrics import SettingMetrics
from karmada.features import default_gates
from karmada.kube.objects.clock import RealClock
from karmada.kube.objects.gvrs import DEPLOYMENTS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.features import FeatureMetrics
from karmada.kube.runtime.metrics import Metrics
from karmada.prediction.failing import DEAD_CLUSTERS
from karmada.scheduler.estimators.protocol import EstimateRequest
from karmada.scheduler.service.estimates import PATH
from tests.interpreter.workloads import workload, workload_kind
from tests.support.objects import kube_object
from tests.support.scheduling_cases import AGGREGATED, DUPLICATED, DYNAMIC, deployment, placement
from tests.support.scheduling_plane import Scheduling, scheduling


@pytest.fixture
async def plane(folder: Path) -> AsyncIterator[Scheduling]:
    async with scheduling(folder, clock=RealClock(), no_execute_policies=True) as found:
        await found.clusters("m1", pods=20)
        await found.clusters("m2", pods=10)
        yield found


class Trying:
    def __init__(self, plane: Scheduling, folder: Path) -> None:
        self.plane = plane
        self.folder = folder

    async def __call__(self, *words: str, **objects: Obj) -> Result:
        """The command with a file for each object."""
        arguments = [*words, "--kubeconfig", str(self.plane.plane.server.kubeconfig)]
        for name, obj in objects.items():
            file = self.folder / f"{name}.yaml"
            file.write_text(yaml.safe_dump(obj))
            arguments += ["-f", str(file)]
        return await asyncio.to_thread(CliRunner().invoke, simulate, arguments)

    async def then(self, *words: str, **objects: Obj) -> dict[str, int] | str:
        """Where it would go, or why nowhere."""
        result = await self(*words, "-o", "json", **objects)
        assert result.exit_code == 0, result.output
        [found] = orjson.loads(result.output)
        if found["then"]["failure"]:
            return str(found["then"]["failure"]["message"])
        return {target["name"]: target.get("replicas", 0) for target in found["then"]["clusters"]}


@pytest.fixture
def trying(plane: Scheduling, tmp_path: Path) -> Trying:
    return Trying(plane, tmp_path)


def template(replicas: int | None = 6, name: str = "web", **pod: Any) -> Obj:
    spec: Obj = {
        "selector": {"matchLabels": {"app": name}},
        "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "a", "image": "b", **pod}]},
        },
    }
    if replicas is not None:
        spec["replicas"] = replicas
    return kube_object("apps/v1", "Deployment", name, spec=spec)


def policy(where: Obj, name: str = "trial", kind: str = "PropagationPolicy", **spec: Any) -> Obj:
    selectors = [{"apiVersion": "apps/v1", "kind": "Deployment"}]
    return kube_object(
        "policy.karmada.io/v1alpha1", kind, name, spec={"resourceSelectors": selectors, "placement": where, **spec}
    )


async def everything(plane: Scheduling) -> list[Obj]:
    found: list[Obj] = []
    for gvr in (Cluster.gvr, PropagationPolicy.gvr, ClusterPropagationPolicy.gvr, ResourceBinding.gvr, DEPLOYMENTS):
        found += (await plane.client.list_all(gvr)).items
    return found


async def test_it_reports_where_a_workload_would_go_and_why(plane: Scheduling, trying: Trying) -> None:
    before = await everything(plane)
    result = await trying(workload=template(), policy=policy(placement(DYNAMIC)))
    assert result.exit_code == 0, result.output
    assert "Resource:   Deployment default/web" in result.output
    assert "By:         PropagationPolicy default/trial" in result.output
    assert "Now:        nowhere" in result.output
    assert "Then:       m1:4, m2:2" in result.output
    lines = {line.split()[0]: line.split() for line in result.output.splitlines() if line.startswith("m")}
    assert lines["m1"][1:4] == ["-", "4", "selected"]
    assert await everything(plane) == before


async def test_what_would_make_it_fit_is_suggested(trying: Trying) -> None:
    objects = {"workload": template(40), "policy": policy(placement(DYNAMIC))}
    result = await trying("--cordon", "m1", **objects)
    lines = result.output.splitlines()
    start = lines.index("It would fit if:")
    assert lines[start + 1 : start + 3] == ["  - m2 had 30 more pods", "  - replicas were 10"]
    data = yaml.safe_load((await trying("--cordon", "m1", "-o", "yaml", **objects)).output)
    assert [one["text"] for one in data[0]["then"]["fit"]["suggestions"]] == [
        "fits if m2 had 30 more pods",
        "fits if replicas were 10",
    ]
    assert await trying.then("--cordon", "m1", "--replicas", "10", **objects) == {"m2": 10}


async def test_clusters_can_fail_or_be_cordoned_on_trial(trying: Trying) -> None:
    objects = {"workload": template(), "policy": policy(placement(DUPLICATED))}
    assert await trying.then(**objects) == {"m1": 6, "m2": 6}
    assert await trying.then("--fail", "m1", **objects) == {"m2": 6}
    assert await trying.then("--cordon", "m2", **objects) == {"m1": 6}
    nowhere = await trying.then("--cordon", "m2", "--fail", "m1", **objects)
    assert "0/2 clusters are available" in str(nowhere)
    assert "untolerated taint {cluster.karmada.io/unschedulable:NoSchedule}" in str(nowhere)
    assert "untolerated taint {cluster.karmada.io/not-ready:NoSchedule}" in str(nowhere)


async def test_a_replica_scheduling_policy_decides_on_the_replicas(plane: Scheduling, trying: Trying) -> None:
    weights = [{"targetCluster": {"clusterNames": [name]}, "weight": weight} for name, weight in (("m1", 1), ("m2", 2))]
    rules = {"totalReplicas": 9, "preferences": {"staticWeightList": weights}}
    made = policy({}, "nine", "ReplicaSchedulingPolicy")
    made["spec"] = {"resourceSelectors": made["spec"]["resourceSelectors"], **rules}
    await plane.client.create(
        ReplicaSchedulingPolicy.gvr, {**made, "metadata": {"name": "nine", "namespace": "default"}}
    )
    objects = {"workload": template(), "policy": policy(placement(DUPLICATED))}
    assert await trying.then(**objects) == {"m1": 3, "m2": 6}


async def test_what_is_there_counts_unless_it_is_placed_anew(plane: Scheduling, trying: Trying) -> None:
    await plane.bind("web-deployment", deployment(6, placement(AGGREGATED)))
    assert await plane.targets("web-deployment") == {"m1": 6}
    await plane.report("m2", 50)
    objects = {"workload": template(), "policy": policy(placement(AGGREGATED))}
    assert await trying.then(**objects) == {"m1": 6}
    assert await trying.then("--fresh", **objects) == {"m2": 6}
    assert await trying.then("--cordon", "m1", **objects) == {"m1": 6}
    assert await trying.then("--fail", "m1", "--with-failover", **objects) == {"m2": 6}


async def test_nothing_moves_from_a_failed_cluster_while_failover_is_off(plane: Scheduling, trying: Trying) -> None:
    await plane.bind("web-deployment", deployment(6, placement(AGGREGATED)))
    objects = {"workload": template(), "policy": policy(placement(AGGREGATED))}
    assert await trying.then("--fail", "m1", **objects) == {"m1": 6}
    printed = (await trying("--fail", "m1", **objects)).output
    assert "the feature gate Failover is off: nothing is moved away from a failed cluster." in printed


async def test_the_gates_of_the_running_control_plane_count(
    plane: Scheduling, trying: Trying, monkeypatch: pytest.MonkeyPatch
) -> None:
    await plane.bind("web-deployment", deployment(6, placement(AGGREGATED)))
    gates = default_gates()
    gates.set("Failover=true")
    metrics = Metrics()
    metrics.registry.register(FeatureMetrics(gates))
    monkeypatch.setattr(plane.plane.server.metrics, "others", lambda: metrics.expose()[0])
    objects = {"workload": template(), "policy": policy(placement(AGGREGATED))}
    assert "--enable-no-execute-taint-eviction is off" in (await trying("--fail", "m1", **objects)).output
    metrics.registry.register(SettingMetrics(Settings(enable_no_execute_taint_eviction=True)))
    printed = (await trying("--fail", "m1", **objects)).output
    assert "no ClusterTaintPolicy gives a cluster that is not ready a NoExecute taint" in printed
    await plane.client.create(ClusterTaintPolicy.gvr, DEAD_CLUSTERS)
    assert await trying.then("--fail", "m1", **objects) == {"m2": 6}
    forever = [{"key": "cluster.karmada.io/not-ready", "operator": "Exists"}]
    tolerating = {**objects, "policy": policy(placement(AGGREGATED, clusterTolerations=forever))}
    assert await trying.then("--fail", "m1", **tolerating) == {"m1": 6}
    assert await trying.then("--fail", "m1", "--feature-gates", "Failover=false", **objects) == {"m1": 6}


async def test_now_and_then_list_clusters_in_one_order(plane: Scheduling, trying: Trying) -> None:
    await plane.bind("web-deployment", deployment(6, placement(DUPLICATED)))
    turned = {"spec": {"clusters": [{"name": "m2", "replicas": 6}, {"name": "m1", "replicas": 6}]}}
    await plane.client.patch(ResourceBinding.gvr, "web-deployment", "default", turned)
    printed = (await trying(workload=template(), policy=policy(placement(DUPLICATED)))).output
    assert "Now:        m1:6, m2:6" in printed
    assert "Then:       m1:6, m2:6" in printed


async def test_another_number_of_replicas_can_be_tried(trying: Trying) -> None:
    objects = {"workload": template(), "policy": policy(placement(DYNAMIC))}
    assert await trying.then("--replicas", "3", **objects) == {"m1": 2, "m2": 1}
    assert "are not enough to schedule." in str(await trying.then("--replicas", "31", **objects))
    assert await trying.then("--replicas", "0", **objects) == {"m1": 0, "m2": 0}


async def test_requests_and_defaults_are_taken_into_account(plane: Scheduling, trying: Trying) -> None:
    summary = {"allocatable": {"pods": "100", "cpu": "2"}}
    for name in ("m1", "m2"):
        await plane.client.patch(Cluster.gvr, name, "", {"status": {"resourceSummary": summary}}, subresource="status")
    where = {"replicaScheduling": {"weightPreference": {"dynamicWeight": "AvailableReplicas"}}}
    one = template(None, resources={"requests": {"cpu": "1"}})
    assert sum(dict(await trying.then(workload=one, policy=policy(where))).values()) == 1  # type: ignore[arg-type]
    assert "replicas 4 are not enough" in str(await trying.then("--replicas", "5", workload=one, policy=policy(where)))


async def test_the_policies_of_the_control_plane_count_too(plane: Scheduling, trying: Trying) -> None:
    wide = policy(placement(DUPLICATED, clusterAffinity={"clusterNames": ["m1"]}), "wide", "ClusterPropagationPolicy")
    await plane.client.create(ClusterPropagationPolicy.gvr, wide)
    assert await trying.then(workload=template()) == {"m1": 6}
    own = policy(placement(DUPLICATED, clusterAffinity={"clusterNames": ["m2"]}))
    assert await trying.then(workload=template(), own=own) == {"m2": 6}
    other = policy(placement(DUPLICATED), "wide", "ClusterPropagationPolicy")
    assert await trying.then(workload=template(), other=other) == {"m1": 6, "m2": 6}
    printed = (await trying(workload=template(), own=own, other=other)).output
    assert "Note:     ClusterPropagationPolicy wide selects it, too" in printed


async def test_without_a_policy_that_is_said(trying: Trying) -> None:
    result = await trying(workload=template())
    assert result.exit_code == 1
    assert result.output == (
        "error: no policy selects Deployment default/web: 0 were looked at, those of the files included\n"
    )


async def test_a_policy_that_would_be_refused_is_refused(trying: Trying) -> None:
    wrong = policy({"spreadConstraints": [{"spreadByField": "cluster", "minGroups": 3, "maxGroups": 1}]})
    result = await trying(workload=template(), policy=wrong)
    assert result.exit_code == 1
    assert result.output.startswith('error: PropagationPolicy "trial": spec.placement.spreadConstraints')
    result = await trying(workload=template(), policy=policy({"clusterAffinity": {"clusterNames": "m1"}}))
    assert "Expected `array`" in result.output


async def test_a_policy_alone_is_tried_on_what_it_selects(plane: Scheduling, trying: Trying) -> None:
    for name in ("a", "b"):
        made = template(2, name)
        made["metadata"]["namespace"] = "default"
        await plane.client.create(DEPLOYMENTS, made)
    result = await trying(policy=policy(placement(DUPLICATED)))
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.output.splitlines()]
    assert lines[0] == ["RESOURCE", "NOW", "THEN"]
    assert lines[1] == ["Deployment", "default/a", "nowhere", "m1:2,", "m2:2"]
    assert result.output.endswith("2 of 2 would change.\n")


async def test_without_files_it_is_about_everything_that_is_bound(plane: Scheduling, trying: Trying) -> None:
    await plane.bind("a-deployment", deployment(4, placement(AGGREGATED)))
    await plane.bind("b-deployment", deployment(2, placement(DUPLICATED, clusterAffinity={"clusterNames": ["m2"]})))
    unmoved = (await trying("--fail", "m1")).output
    assert "0 of 2 would change." in unmoved
    assert unmoved.count("the feature gate Failover is off") == 1
    result = await trying("--fail", "m1", "--with-failover")
    lines = [line.split() for line in result.output.splitlines()]
    assert lines[1][2:] == ["m1:4", "m2:4"]
    assert lines[2][2:] == ["m2:2", "the", "same"]
    assert "1 of 2 would change." in result.output


async def test_who_has_the_resource_now_is_reported(plane: Scheduling, trying: Trying) -> None:
    await plane.bind("web-deployment", deployment(6, placement(DUPLICATED)))
    marks = {well_known.POLICY_NAME: "old", well_known.POLICY_NAMESPACE: "default"}
    await plane.client.patch(ResourceBinding.gvr, "web-deployment", "default", {"metadata": {"annotations": marks}})
    printed = (await trying(workload=template(), policy=policy(placement(DUPLICATED)))).output
    assert "PropagationPolicy default/old has claimed it" in printed


def reference(name: str) -> Obj:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": name}


def rebalancer(*names: str) -> Obj:
    head = kube_object("apps.karmada.io/v1alpha1", "WorkloadRebalancer", "again")
    return {**head, "spec": {"workloads": [reference(name) for name in names]}}


async def test_a_rebalance_shows_replicas_now_and_then_and_how_many_move(plane: Scheduling, trying: Trying) -> None:
    await plane.bind("a-deployment", deployment(6, placement(DYNAMIC), resource=reference("a")))
    await plane.bind("b-deployment", deployment(3, placement(AGGREGATED), resource=reference("b")))
    assert await plane.targets("a-deployment") == {"m1": 4, "m2": 2}
    assert await plane.targets("b-deployment") == {"m1": 3}
    await plane.report("m1", 0)
    before = await everything(plane)
    printed = (await trying("--rebalance")).output
    assert [line.split() for line in printed.splitlines()] == [
        ["RESOURCE", "MOVES", "NOW", "THEN"],
        ["Deployment", "default/a", "2", "m1:4,", "m2:2", "m1:2,", "m2:4"],
        ["Deployment", "default/b", "3", "m1:3", "m2:3"],
        [],
        ["2", "of", "2", "would", "change."],
        [],
        ["CLUSTER", "NOW", "THEN", "CHANGE"],
        ["m1", "7", "2", "-5"],
        ["m2", "2", "7", "+5"],
        [],
        ["5", "replicas", "would", "move."],
    ]
    one = (await trying("--rebalance", "deployment/a")).output
    assert "Now:        m1:4, m2:2" in one
    assert "Moves:      2" in one
    assert "fresh placement" in one
    assert await trying.then(again=rebalancer("b", "b")) == {"m2": 3}
    assert await trying.then("--rebalance", "deployment/a", "--cordon", "m2") == {"m1": 2, "m2": 4}
    assert await everything(plane) == before


class NodeEstimator:
    """As the estimators of members: it returns other numbers than the summaries."""

    name = "scheduler-estimator"

    def __init__(self) -> None:
        self.replicas = {"m1": 2, "m2": 2}
        self.requests = 0

    async def estimate(self, request: EstimateRequest) -> dict[str, int]:
        self.requests += 1
        return {name: self.replicas[name] for name in request.names()}


async def test_a_rebalance_counts_with_the_estimators_of_the_running_scheduler(folder: Path, tmp_path: Path) -> None:
    estimator = NodeEstimator()
    async with scheduling(folder, clock=RealClock(), estimators=[estimator]) as plane:
        plane.plane.server.pipeline.paths[PATH] = estimates_page(plane.scheduler.core)
        await plane.clusters("m1", "m2", pods=20)
        for name in ("a", "b"):
            await plane.bind(f"{name}-deployment", deployment(2, placement(DYNAMIC), resource=reference(name)))
            assert await plane.targets(f"{name}-deployment") == {"m1": 1, "m2": 1}
        estimator.replicas, estimator.requests = {"m1": 0, "m2": 5}, 0
        lines = (await Trying(plane, tmp_path)("--rebalance")).output.splitlines()
        assert lines[1].split() == ["Deployment", "default/a", "1", "m1:1,", "m2:1", "m2:2"]
        assert lines[2].split()[1:] == ["default/b", *lines[1].split()[2:]]
        assert estimator.requests == 2  # one for each cluster, for both workloads


async def test_a_rebalance_names_what_it_has_no_effect_on(plane: Scheduling, trying: Trying) -> None:
    await plane.bind("a-deployment", deployment(6, placement(DYNAMIC), resource=reference("a")))
    await plane.change("a-deployment", {"suspension": {"scheduling": True}})
    assert (await trying(again=rebalancer("a", "b"))).output == (
        "Note: Deployment default/b has no binding: its result would be Failed (ReferencedBindingNotFound).\n"
        "Note: Deployment default/a would stay: its scheduling is suspended.\n"
    )


async def test_a_rebalance_of_nothing_known_is_refused(trying: Trying) -> None:
    assert 'resource type "ship"' in (await trying("--rebalance", "ship/s")).output
    assert '"a" does not name a workload: give it as TYPE/NAME' in (await trying("--rebalance", "a")).output
    assert "only with --rebalance" in (await trying("deployment/a")).output
    assert "no other resources or policies" in (await trying("--rebalance", workload=template())).output
    assert "exclude each other" in (await trying("--rebalance", "--fresh")).output
    assert "not both" in (await trying("--rebalance", "deployment/a", again=rebalancer("a"))).output
    assert 'WorkloadRebalancer "again": ' in (await trying(again={**rebalancer(), "spec": {}})).output


async def test_what_makes_no_sense_is_said(trying: Trying) -> None:
    assert (await trying("--fail", "m9")).output == 'error: cluster "m9" is not joined (known: m1, m2)\n'
    assert (await trying()).output == "error: there are no bindings: give resources and policies with -f\n"
    ship: Obj = kube_object("harbour/v1", "Ship", "s")
    assert 'no matches for kind "Ship" in version "harbour/v1"' in (await trying(ship=ship)).output
    assert "spec is incomplete" in (await trying(kind={**workload_kind(), "spec": {"group": "harbour"}})).output
    assert "nowhere.yaml" in (await trying("-f", "nowhere.yaml")).output
    assert "PropagationPolicy without a name" in (await trying(bad={**policy({}), "metadata": {}})).output
    assert "unrecognized feature gate" in (await trying("--feature-gates", "No=true")).output


async def test_kinds_and_namespaces_of_the_files_are_known(plane: Scheduling, trying: Trying) -> None:
    """A custom resource goes where its definition goes."""
    crds = [{"name": "customresourcedefinitions", "kind": "CustomResourceDefinition"}]
    status = {"apiEnablements": [{"groupVersion": "apiextensions.k8s.io/v1", "resources": crds}]}
    await plane.client.patch(Cluster.gvr, "m2", "", {"status": status}, subresource="status")
    wide = policy(placement(DUPLICATED, clusterAffinity={"clusterNames": ["m2"]}), "kinds", "ClusterPropagationPolicy")
    wide["spec"]["resourceSelectors"] = [{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}]
    own = policy(placement(DUPLICATED))
    own["metadata"]["namespace"] = "harbour"
    own["spec"]["resourceSelectors"] = [{"apiVersion": "workload.example.io/v1alpha1", "kind": "Workload"}]
    ship = workload(replicas=2)
    ship["metadata"]["namespace"] = "harbour"
    space: Obj = kube_object("v1", "Namespace", "harbour")
    files = {"space": space, "ship": ship, "kind": workload_kind(), "wide": wide, "own": own}
    result = await trying("-o", "json", **files)
    assert result.exit_code == 0, result.output
    note, _, text = result.output.partition("\n")
    assert note == "Note: every cluster gets the namespace harbour by itself."
    found = {one["resource"]["kind"]: one["then"] for one in orjson.loads(text)}
    assert [target["name"] for target in found["CustomResourceDefinition"]["clusters"]] == ["m2"]
    assert [target["name"] for target in found["Workload"]["clusters"]] == ["m2"]
    del files["wide"]
    nowhere = (await trying(**files)).output
    assert "no policy selects CustomResourceDefinition workloads.workload.example.io" in nowhere
    assert "It would fit if:" in nowhere
