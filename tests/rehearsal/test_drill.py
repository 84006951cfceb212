"""A drill foretells what then really happens, and touches nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from karmada.api.cluster import Cluster
from karmada.api.policy import ClusterTaintPolicy, PropagationPolicy
from karmada.api.work import ResourceBinding
from karmada.cli.commands.drill import selected
from karmada.cli.targeting.connect import Failure
from karmada.controllers.context import Settings
from karmada.features import default_gates
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import CONFIG_MAPS, CRDS, DEPLOYMENTS
from karmada.kube.objects.types import Obj
from karmada.prediction.world import World
from karmada.rehearsal.copying import copy_of
from karmada.rehearsal.drill import Course, Drill, Report
from karmada.rehearsal.fleet import RehearsalFleet
from karmada.rehearsal.network import State
from karmada.rehearsal.stand_ins import others_on, profile_of
from tests.controllers.failover.histories import DEAD, ONE_CLUSTER
from tests.interpreter.workloads import CUSTOMIZATIONS, SCRIPTS, WORKLOADS, customization, workload, workload_kind
from tests.support.cases import cases
from tests.support.played_fleet import PlayedFleet, started
from tests.support.propagation import config_map, deployment, policy

EVICTING = Settings(enable_no_execute_taint_eviction=True)
LARGE = {"containers": [{"name": "web", "image": "nginx", "resources": {"requests": {"cpu": "3"}}}]}


AGGREGATED = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}


class Real(PlayedFleet):
    """A fleet that stands for the real one; small members, of which m3 has least room."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "real", settings=EVICTING, gates="Failover=true")
        self.folder = folder

    async def start(self) -> None:
        await self.begin(seconds=0)
        for name, nodes in (("m1", 2), ("m2", 2), ("m3", 1)):
            cluster = {"metadata": {"labels": {"tier": name}}, "spec": {"region": f"r-{name}"}}
            await self.add(name, nodes, cluster=cluster)
        head = {"apiVersion": ClusterTaintPolicy.gvk.api_version, "kind": "ClusterTaintPolicy"}
        await self.client.create(ClusterTaintPolicy.gvr, {**head, "metadata": {"name": "dead"}, "spec": DEAD})
        await self.fleet.run(45)

    async def place(self, obj: Obj, gvr: GVR, *clusters: str, **placement: Any) -> None:
        name = obj["metadata"]["name"]
        selector = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": name}
        where = {"clusterAffinity": {"clusterNames": list(clusters)}, **placement}
        await self.fleet.client.create(PropagationPolicy.gvr, policy(name, selector, placement=where))
        await self.fleet.client.create(gvr, obj)
        await self.fleet.run(20)

    async def drill(self, *failing: str, **options: Any) -> Report:
        options = {"settings": EVICTING, "gates": self.fleet.gates, **options}
        world = await copy_of(await World().over(self.fleet.client))
        return await Drill(world, failing, **options).run(self.folder / "drill")


@pytest.fixture
def real(tmp_path: Path) -> Iterator[Real]:
    yield from started(Real(tmp_path))


def of(report: Report, name: str) -> Course:
    return next(course for course in report.courses if course.target.name == name)


def test_a_drill_reports_what_moves_what_is_lost_and_why(real: Real) -> None:
    async def scenario() -> None:
        await real.place(deployment("web", replicas=3), DEPLOYMENTS, "m1", "m2", spreadConstraints=ONE_CLUSTER)
        large_one = deployment("large", replicas=2, pod=LARGE)
        await real.place(large_one, DEPLOYMENTS, "m1", "m3", replicaScheduling=AGGREGATED)
        await real.place(config_map("conf"), CONFIG_MAPS, "m1", "m2", "m3")
        before = (await real.fleet.client.list_all(Cluster.gvr)).items
        placed = next(iter(await serving(real.fleet, "web")))
        report = await real.drill("m1", "m2") if placed == "m2" else await real.drill("m1")

        web, large, conf = of(report, "web"), of(report, "large"), of(report, "conf")
        assert web.before == {placed: 3}
        assert large.before == {"m1": 2}
        assert large.problem, "m3 has room for one of two only"
        assert large.recovered is None
        assert large.lost == 2
        assert large.downtime > 60
        assert conf.downtime == 0
        assert (conf.least, conf.before) == (len(conf.before) - len(report.failed), {"m1": 1, "m2": 1, "m3": 1})
        if placed == "m1":
            assert web.after == {"m2": 3}
            assert 30 <= web.downtime <= 60, "detection, then the new copy"
            assert web.recovered is not None
        assert (await real.fleet.client.list_all(Cluster.gvr)).items == before, "nothing in the fleet has changed"

        for name in report.failed:
            real.fleet.change_network(name, State.DOWN)
        await real.fleet.run(report.lasted)
        for course in report.courses:
            assert await serving(real.fleet, course.target.name) == course.after, course.target.name

    real.play(scenario())


async def serving(fleet: RehearsalFleet, name: str) -> dict[str, int]:
    found = {}
    for member, behind in fleet.members.items():
        if behind.network.state is not State.UP:
            continue
        for gvr in (DEPLOYMENTS, CONFIG_MAPS):
            obj = behind.sim.server.cache.get(gvr.group_resource, "default", name)
            if obj is not None:
                found[member] = (obj.get("status") or {}).get("readyReplicas", 0) if gvr is DEPLOYMENTS else 1
    return {member: count for member, count in found.items() if count}


def test_without_failover_nothing_moves_unless_the_drill_is_to_have_it(real: Real) -> None:
    async def scenario() -> None:
        await real.fleet.client.delete(ClusterTaintPolicy.gvr, "dead")
        await real.place(deployment("web"), DEPLOYMENTS, "m1", "m2", spreadConstraints=ONE_CLUSTER)
        (placed,) = await serving(real.fleet, "web")
        off = await real.drill(placed, settings=Settings(), gates=default_gates())
        assert of(off, "web").after == {}
        on = await real.drill(placed, settings=Settings(), gates=default_gates(), with_failover=True)
        assert sum(of(on, "web").after.values()) == 2

    real.play(scenario())


def test_custom_resources_are_part_of_a_drill(real: Real) -> None:
    async def scenario() -> None:
        for client in (real.fleet.client, *(member.client for member in real.fleet.members.values())):
            await client.create(CRDS, workload_kind())
        await real.fleet.client.create(CUSTOMIZATIONS, customization(**SCRIPTS))
        await real.fleet.run(45)
        await real.place(workload(replicas=3), WORKLOADS, "m1", "m2", spreadConstraints=ONE_CLUSTER)
        binding = await real.fleet.client.get(ResourceBinding.gvr, "app-workload", "default")
        assert binding["spec"]["replicas"] == 3
        [placed] = [target["name"] for target in binding["spec"]["clusters"]]
        course = of(await real.drill(placed), "app")
        assert course.before == {placed: 1}
        assert course.after == {"m2" if placed == "m1" else "m1": 1}
        assert course.wanted == {"m2" if placed == "m1" else "m1": 3}
        assert course.downtime < 90

    real.play(scenario())


def cluster(name: str, **spec: Any) -> Obj:
    status = {
        "nodeSummary": {"totalNum": 4},
        "resourceSummary": {
            "allocatable": {"cpu": "16", "memory": "64Gi", "pods": "440"},
            "allocated": {"cpu": "6", "memory": "4Gi"},
        },
        "kubernetesVersion": "v1.34.2",
    }
    return {"metadata": {"name": name, "labels": {"tier": "gold"}}, "spec": spec, "status": status}


def test_a_stand_in_is_as_large_and_as_full_as_its_cluster() -> None:
    profile = profile_of(cluster("m1", region="eu", zones=["a", "b"]))
    (pool,) = profile.pools
    assert (profile.version, pool.count, pool.cpu, pool.memory, pool.pods) == ("1.34", 4, "4", "16Gi", 110)
    own = {
        "spec": {
            "clusters": [{"name": "m1", "replicas": 2}],
            "replicaRequirements": {"resourceRequest": {"cpu": "1"}},
        }
    }
    pods = others_on(cluster("m1"), [own])
    assert [pod["spec"]["nodeName"] for pod in pods] == [f"m1-node-{number}" for number in (1, 2, 3, 4)]
    assert pods[0]["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}


@cases(
    (["m1"], ["m1"]),
    (["m2,m1"], ["m2", "m1"]),
    (["region=eu"], ["m1", "m2"]),
    (["zone=b"], ["m2"]),
    (["tier=gold", "m1"], ["m1", "m2"]),
)
def test_clusters_are_selected_by_name_topology_or_label(given: list[str], names: list[str]) -> None:
    clusters = [cluster("m1", region="eu", zones=["a"]), cluster("m2", region="eu", zones=["a", "b"])]
    assert selected(clusters, given) == names


def test_a_selection_of_nothing_is_an_error() -> None:
    with pytest.raises(Failure, match=r'--fail "region=us" selects no cluster \(known: m1\)'):
        selected([cluster("m1")], ["region=us"])
