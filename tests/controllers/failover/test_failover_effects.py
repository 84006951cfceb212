"""What failover does to Works and to the members themselves, over a whole fleet on a fast clock."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from karmada.api.cluster import Cluster
from karmada.api.config import ReplicaSchedulingPolicy
from karmada.kube.objects import meta
from karmada.kube.objects.gvrs import DEPLOYMENTS, PODS
from karmada.kube.objects.types import Obj
from karmada.kube.sim.faults.kinds import NodeLost
from karmada.rehearsal.network import State
from tests.controllers.failover.rehearsed import MEMBERS, Rehearsed, in_order

DETECTED = 60
"""Seconds after which a dead cluster has been detected and left."""
MANAGED = "karmada.io/managed"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsed]:
    found = Rehearsed(tmp_path_factory.mktemp("effects"))
    found.play(found.start())
    yield found
    found.stop()


@pytest.fixture
def plane(shared: Rehearsed) -> Iterator[Rehearsed]:
    yield shared
    shared.play(shared.repair())


# faults


@pytest.mark.parametrize("state", [State.DOWN, State.HANGING, State.FAILING])
def test_a_workload_leaves_a_cluster_that_is_down_hangs_or_returns_errors(plane: Rehearsed, state: State) -> None:
    async def scenario() -> None:
        await plane.place(in_order("m1", "m2"))
        plane.fleet.change_network("m1", state)
        await plane.fleet.run(2 * DETECTED)
        assert plane.targets() == {"m2": 2}
        assert plane.copies() == {"m1": 2, "m2": 2}, "nobody can delete the old one now"
        plane.fleet.change_network("m1", State.UP)
        await plane.fleet.run(2 * DETECTED)
        assert plane.copies() == {"m2": 2}

    plane.play(scenario())


def test_a_cluster_that_flaps_faster_than_the_threshold_keeps_its_workloads(plane: Rehearsed) -> None:
    async def scenario() -> None:
        await plane.place(in_order("m1", "m2"))
        for _ in range(10):
            for state in (State.DOWN, State.UP):
                plane.fleet.change_network("m1", state)
                await plane.fleet.run(15)
        assert (plane.targets(), plane.leaving()) == ({"m1": 2}, [])

    plane.play(scenario())


def test_a_workload_whose_nodes_are_lost_leaves_a_cluster_that_is_ready(plane: Rehearsed) -> None:
    conditions = {"decisionConditions": {"tolerationSeconds": 30}, "purgeMode": "Gracefully"}

    async def scenario() -> None:
        await plane.place(in_order("m1", "m2"), propagateDeps=True, failover={"application": conditions})
        faults = plane.fleet.members["m1"].sim.faults
        await faults.inject(NodeLost(nodes=("m1-node-1",)))
        await plane.fleet.run(30)
        assert plane.targets() == {"m1": 2}, "a node is lost when it was silent for some time, not before"
        await plane.fleet.run(90)
        assert plane.targets() == {"m2": 2}
        assert plane.copies()["m2"] == 2
        await faults.heal()

    plane.play(scenario())


# where it goes, and whether it comes back


def test_a_cluster_of_weight_0_stands_by(plane: Rehearsed) -> None:
    weights = [
        {"targetCluster": {"clusterNames": [name]}, "weight": weight} for name, weight in (("m1", 10), ("m2", 0))
    ]
    scheduling = {
        "replicaSchedulingType": "Divided",
        "replicaDivisionPreference": "Weighted",
        "weightPreference": {"staticWeightList": weights},
    }
    placement = {"clusterAffinity": {"clusterNames": ["m1", "m2"]}, "replicaScheduling": scheduling}

    async def scenario() -> None:
        await plane.place(placement)
        assert plane.copies() == {"m1": 2}
        plane.fleet.change_network("m1", State.DOWN)
        await plane.fleet.run(DETECTED)
        assert plane.targets() == {"m2": 2}
        plane.fleet.change_network("m1", State.UP)
        await plane.fleet.run(DETECTED)
        assert plane.copies() == {"m2": 2}, "it does not move back by itself"
        await plane.scale(3)
        await plane.fleet.run(20)
        assert plane.copies() == {"m1": 3}, "but with the next division of its replicas"

    plane.play(scenario())


def test_groups_of_clusters_are_backups_in_their_order_and_the_policy_brings_it_back(plane: Rehearsed) -> None:
    async def scenario() -> None:
        await plane.place(in_order("m1", "m2"))
        assert plane.copies() == {"m1": 2}
        plane.fleet.change_network("m1", State.DOWN)
        await plane.fleet.run(DETECTED)
        assert plane.targets() == {"m2": 2}
        plane.fleet.change_network("m1", State.UP)
        await plane.fleet.run(700)
        assert plane.copies() == {"m2": 2}, "an earlier group is not tried again"
        await plane.change_policy(**in_placement(in_order("m1")))
        await plane.fleet.run(20)
        assert plane.copies() == {"m1": 2}, "until the policy no longer has the group"

    plane.play(scenario())


def in_placement(placement: Obj) -> Obj:
    return {"placement": placement}


@pytest.mark.parametrize("purge", ["Gracefully", "Immediately"])
def test_the_older_form_of_failover_moves_an_application_that_fails(plane: Rehearsed, purge: str) -> None:
    older = {"applicationMigrationPolicy": {"decisionConditions": {"tolerationSeconds": 30}, "purgePolicy": purge}}

    async def scenario() -> None:
        plane.sicken("m1")
        await plane.place(in_order("m1", "m2"), failover=older)
        await plane.fleet.run(10)
        assert plane.copies() == {"m1": 0}
        await plane.fleet.run(40)
        assert plane.copies() == {"m2": 2}

    plane.play(scenario())


def using(cpu: str) -> Obj:
    return {"containers": [{"name": "web", "image": "nginx", "resources": {"requests": {"cpu": cpu}}}]}


def test_replicas_leave_a_cluster_that_others_fill_above_a_threshold(plane: Rehearsed) -> None:
    weights = {"dynamicWeight": "AvailableReplicas"}
    scheduling = {
        "replicaSchedulingType": "Divided",
        "replicaDivisionPreference": "Weighted",
        "weightPreference": weights,
    }
    rules = {"enabled": True, "interval": "60s", "threshold": {"cpuUtilization": 80, "memoryUtilization": 80}}
    kind = {"apiVersion": ReplicaSchedulingPolicy.gvk.api_version, "kind": "ReplicaSchedulingPolicy"}
    alien = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "alien", "namespace": "default"}}

    async def scenario() -> None:
        placement = {"clusterAffinity": {"clusterNames": ["m1", "m2"]}, "replicaScheduling": scheduling}
        await plane.place(placement, replicas=4, pod=using("500m"))
        assert plane.targets() == {"m1": 2, "m2": 2}
        made = {**kind, "metadata": {"name": "replica-reschedule"}, "spec": {"reschedulePolicy": rules}}
        await plane.client.create(ReplicaSchedulingPolicy.gvr, made)
        await plane.fleet.run(120)
        assert plane.targets() == {"m1": 2, "m2": 2}
        await plane.fleet.members["m1"].client.create(PODS, {**alien, "spec": using("2500m")})
        await plane.fleet.run(120)
        assert plane.targets() == {"m1": 1, "m2": 3}
        await plane.client.delete(ReplicaSchedulingPolicy.gvr, "replica-reschedule")
        await plane.fleet.members["m1"].client.delete(PODS, "alien", "default")

    plane.play(scenario())


# purging


def directly(part: str = "cluster", **more: Any) -> Obj:
    return {"failover": {part: {"purgeMode": "Directly", **more}}}


def test_with_directly_the_old_work_is_gone_before_the_new_one_is_made(plane: Rehearsed) -> None:
    async def scenario() -> None:
        await plane.place(in_order("m1", "m2"), **directly())
        async with plane.changes_of_works() as changes:
            await plane.taint("m1")
            await plane.fleet.run(30)
        assert changes.index(("DELETED", "m1")) < changes.index(("ADDED", "m2"))
        assert (plane.copies(), plane.leaving()) == ({"m2": 2}, [])

    plane.play(scenario())


async def recover(plane: Rehearsed) -> None:
    plane.fleet.change_network("m1", State.UP)
    await plane.fleet.run(DETECTED)
    assert plane.copies() == {"m2": 2}


async def run_out(plane: Rehearsed) -> None:
    await plane.fleet.run(260)
    assert plane.works() == {"m1", "m2"}, "the old Work still waits for its cluster"
    assert plane.copies()["m2"] == 2


@pytest.mark.parametrize("then", [recover, run_out])
def test_with_directly_the_new_copy_waits_for_a_dead_cluster_until(plane: Rehearsed, then: Any) -> None:
    async def scenario() -> None:
        await plane.place(in_order("m1", "m2"), **directly())
        plane.fleet.change_network("m1", State.DOWN)
        await plane.fleet.run(400)
        assert plane.targets() == {"m2": 2}
        assert plane.works() == {"m1"}
        old = plane.work("m1")
        assert old is not None
        assert meta.is_deleting(old)
        await then(plane)

    plane.play(scenario())


def test_with_directly_the_new_copy_waits_until_the_dead_cluster_is_unjoined(plane: Rehearsed) -> None:
    async def scenario() -> None:
        await plane.add("leaving")
        await plane.fleet.run(45)
        await plane.place(in_order("leaving", "m2"), **directly())
        plane.fleet.change_network("leaving", State.DOWN)
        await plane.fleet.run(200)
        assert plane.works() == {"leaving"}
        await plane.client.delete(Cluster.gvr, "leaving")
        await plane.fleet.run(DETECTED)
        assert plane.works() == {"m2"}
        assert plane.copies()["m2"] == 2
        await plane.fleet.members.pop("leaving").sim.stop()

    plane.play(scenario())


# what stays behind, what is not sent


def test_a_copy_that_is_preserved_stays_in_its_cluster_and_belongs_to_nobody(plane: Rehearsed) -> None:
    async def scenario() -> None:
        await plane.place(in_order("m1", "m2"), preserveResourcesOnDeletion=True)
        managed = plane.copy("m1")
        assert managed is not None
        assert MANAGED in meta.labels(managed)
        await plane.taint("m1")
        await plane.fleet.run(30)
        assert (plane.works(), plane.copies()) == ({"m2"}, {"m1": 2, "m2": 2})
        left = plane.copy("m1")
        assert left is not None
        assert MANAGED not in meta.labels(left)
        await plane.scale(3)
        assert plane.copies() == {"m1": 2, "m2": 3}
        await plane.fleet.members["m1"].client.delete(DEPLOYMENTS, "web", "default")
        await plane.change_policy(preserveResourcesOnDeletion=False)

    plane.play(scenario())


def test_while_dispatching_is_suspended_the_old_copy_serves_on(plane: Rehearsed) -> None:
    async def scenario() -> None:
        await plane.place(in_order("m1", "m2"))
        await plane.change_policy(suspension={"dispatching": True})
        await plane.taint("m1")
        await plane.fleet.run(3600)
        assert plane.targets() == {"m2": 2}
        assert (plane.leaving(), plane.copies()) == (["m1"], {"m1": 2})
        await plane.change_policy(suspension=None)
        await plane.fleet.run(30)
        assert (plane.leaving(), plane.copies()) == ([], {"m2": 2})

    plane.play(scenario())


# state

RULES = {"rules": [{"aliasLabelName": "web.example.io/replicas", "jsonPath": "{.replicas}"}]}


def test_each_move_takes_along_the_state_of_the_cluster_it_left_last(plane: Rehearsed) -> None:
    labels: dict[str, set[str]] = {name: set() for name in MEMBERS}

    def look() -> None:
        for name in MEMBERS:
            found = plane.copy(name)
            if found is not None and "web.example.io/replicas" in meta.labels(found):
                labels[name].add(meta.labels(found)["web.example.io/replicas"])

    async def scenario() -> None:
        for name in ("m1", "m2"):
            plane.sicken(name)
        conditions = {"decisionConditions": {"tolerationSeconds": 60}, "statePreservation": RULES}
        await plane.place(in_order(*MEMBERS), propagateDeps=True, **directly("application", **conditions))
        assert await plane.fleet.run(100, until=lambda: plane.copy("m2") is not None, each=look)
        await plane.fleet.run(5, each=look)
        await plane.scale(3)
        assert await plane.fleet.run(100, until=lambda: plane.copies() == {"m3": 3}, each=look)
        await plane.fleet.run(10, each=look)
        settled = plane.copy("m3")
        assert settled is not None
        assert (plane.leaving(), meta.labels(settled).get("web.example.io/replicas")) == ([], None)

    plane.play(scenario())
    assert labels == {"m1": set(), "m2": {"2"}, "m3": {"3"}}
