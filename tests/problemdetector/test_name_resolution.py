"""A cluster that cannot resolve the names of Services gets no traffic, by a Remedy, and a taint, by a policy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from karmada.api.cluster import Cluster
from karmada.api.policy import ClusterTaintPolicy
from karmada.api.remedy import Remedy
from karmada.kube.objects import meta
from karmada.kube.objects.gvrs import EVENTS, NODES
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.events import EventRecorder
from karmada.kube.runtime.manager import Component
from karmada.problemdetector.name_resolution import ClusterReporter, NodeDetector, Resolve
from karmada.problemdetector.rules import (
    CONDITION,
    Observation,
    Seen,
    Thresholds,
    cluster_condition,
    damped,
    node_condition,
)
from tests.support.cases import cases
from tests.support.played_fleet import PlayedFleet

TAINT = {"key": "no-names", "effect": "NoSchedule"}
POD: Obj = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "detector", "namespace": "default"}}


class DetectingFleet(PlayedFleet):
    """A member with two nodes, each with a detector; `failing` are the nodes that resolve nothing."""

    failing: set[str]
    all_parts: list[Component]

    async def start(self) -> None:
        self.failing = set()
        await self.begin("m1", nodes=2, seconds=30)
        member, clock = self.fleet.members["m1"].client, self.fleet.clock
        recorder = EventRecorder(member, "detector", clock=clock)
        thresholds = Thresholds()
        detectors = [
            NodeDetector(
                member,
                name,
                recorder,
                clock,
                period=5,
                thresholds=thresholds,
                pod=POD,
                resolve=self.resolver(name),
            )
            for name in (*await self.nodes(), "none")
        ]
        leader = ClusterReporter(member, self.client, "m1", clock, period=5, stale=thresholds.stale)
        self.all_parts = [recorder, *detectors, leader]
        for part in self.all_parts:
            await part.start()

    def resolver(self, node: str) -> Resolve:
        async def resolve(name: str) -> None:
            if node in self.failing:
                raise OSError(f"lookup {name}: no such host")

        return resolve

    async def nodes(self) -> list[str]:
        return [meta.name(node) for node in (await self.fleet.members["m1"].client.list_all(NODES)).items]

    async def shut_down(self) -> None:
        for part in reversed(self.all_parts):
            await part.stop()

    async def cluster(self) -> Obj:
        return await self.client.get(Cluster.gvr, "m1")


@pytest.fixture
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DetectingFleet]:
    found = DetectingFleet(tmp_path_factory.mktemp("detecting"), gates="Failover=true")
    found.play(found.start())
    yield found
    found.play(found.shut_down())
    found.stop()


def remedy() -> Obj:
    match = {"conditionType": CONDITION, "operator": "Equal", "conditionStatus": "False"}
    spec = {"decisionMatches": [{"clusterConditionMatch": match}], "actions": ["TrafficControl"]}
    return {"apiVersion": Remedy.gvk.api_version, "kind": "Remedy", "metadata": {"name": "names"}, "spec": spec}


def taint_policy() -> Obj:
    on = {"conditionType": CONDITION, "operator": "In"}
    spec = {
        "addOnConditions": [{**on, "statusValues": ["False"]}],
        "removeOnConditions": [{**on, "statusValues": ["True"]}],
        "taints": [TAINT],
    }
    head = {"apiVersion": ClusterTaintPolicy.gvk.api_version, "kind": "ClusterTaintPolicy"}
    return {**head, "metadata": {"name": "names"}, "spec": spec}


def seen(cluster: Obj) -> tuple[str, list[str], bool]:
    """The status of the condition, the actions, and whether the taint is there."""
    condition = meta.get_condition(cluster["status"].get("conditions"), CONDITION) or {}
    taints = [taint["key"] for taint in cluster["spec"].get("taints") or ()]
    return condition.get("status", ""), cluster["status"].get("remedyActions") or [], TAINT["key"] in taints


def test_a_cluster_without_names_is_remedied_until_it_has_them(fleet: DetectingFleet) -> None:
    async def scenario() -> None:
        await fleet.client.create(Remedy.gvr, remedy())
        await fleet.client.create(ClusterTaintPolicy.gvr, taint_policy())
        await fleet.fleet.run(20)
        assert seen(await fleet.cluster()) == ("True", [], False)
        one, other = await fleet.nodes()
        fleet.failing = {one}
        await fleet.fleet.run(60)
        assert seen(await fleet.cluster()) == ("True", [], False)
        fleet.failing = {one, other}
        await fleet.fleet.run(25)
        assert seen(await fleet.cluster()) == ("True", [], False)
        await fleet.fleet.run(35)
        assert seen(await fleet.cluster()) == ("False", ["TrafficControl"], True)
        condition = meta.get_condition((await fleet.cluster())["status"]["conditions"], CONDITION)
        assert condition is not None
        assert condition["reason"] == "ServiceDomainNameResolutionFailed"
        fleet.failing = set()
        await fleet.fleet.run(60)
        assert seen(await fleet.cluster()) == ("True", [], False)

    fleet.play(scenario())


def test_a_node_that_cannot_be_read_is_an_event_of_the_pod(fleet: DetectingFleet) -> None:
    async def scenario() -> None:
        await fleet.fleet.run(20)
        events = (await fleet.fleet.members["m1"].client.list_all(EVENTS, "default")).items
        assert "LoadCorednsConditionFailed" in {event["reason"] for event in events}

    fleet.play(scenario())


THRESHOLDS = Thresholds(success=30, failure=20, stale=60)
WORKS, FAILS = Observation("True", "Ready", ""), Observation("False", "Failed", "no such host")
NOW = 1_700_000_000.0


def history(current: Obj | None, *moments: tuple[float, Observation]) -> list[str]:
    """The statuses of a node's condition after each of these observations."""
    seen: Seen | None = None
    found = []
    for at, observed in moments:
        seen, wanted = damped(seen, observed, current, NOW + at, THRESHOLDS)
        current = node_condition(current, wanted, NOW + at)
        found.append(wanted.status)
    return found


@cases(
    (None, [(0, FAILS)], ["False"]),
    ("True", [(0, FAILS)], ["False"]),
    ("True", [(0, WORKS), (5, FAILS), (24, FAILS), (25, FAILS)], ["True", "True", "True", "False"]),
    ("False", [(0, FAILS), (5, WORKS), (34, WORKS), (35, WORKS)], ["False", "False", "False", "True"]),
    ("True", [(0, WORKS), (5, FAILS), (20, WORKS), (25, FAILS), (44, FAILS)], ["True"] * 5),
    ("Unknown", [(0, FAILS), (5, FAILS)], ["False", "False"]),
    ("True", [(0, WORKS), (5, WORKS)], ["True", "True"]),
    ids=[
        "a node without condition gets the first observation",
        "the first observation of a process counts at once",
        "a failure counts after its threshold",
        "success counts after its threshold",
        "an interruption starts the time anew",
        "unknown is as good as false",
        "the same is reported on",
    ],
)
def test_a_condition_changes_after_what_is_observed_has_lasted(
    current: str | None, moments: list[tuple[float, Observation]], statuses: list[str]
) -> None:
    before = {"type": CONDITION, "status": current} if current else None
    assert history(before, *moments) == statuses


def test_the_transition_time_changes_with_the_status_only() -> None:
    first = node_condition(None, WORKS, NOW)
    later = node_condition(first, WORKS, NOW + 5)
    assert later["lastTransitionTime"] == first["lastTransitionTime"]
    assert later["lastHeartbeatTime"] == rfc3339(NOW + 5)
    assert node_condition(later, FAILS, NOW + 9)["lastTransitionTime"] == rfc3339(NOW + 9)


def node(status: str | None, *, ready: str = "True", age: float = 0) -> Obj:
    conditions: list[dict[str, Any]] = [{"type": "Ready", "status": ready}]
    if status is not None:
        conditions.append({"type": CONDITION, "status": status, "lastHeartbeatTime": rfc3339(NOW - age)})
    return {"status": {"conditions": conditions}}


@cases(
    ([], None),
    ([node("False", ready="False")], None),
    ([node("False"), node(None)], None),
    ([node("False"), node("False", age=61)], None),
    ([node("False"), node("False")], "False"),
    ([node("False"), node("True")], "True"),
    ([node("False"), node("True", ready="Unknown")], "False"),
    ids=["no node", "none ready", "one silent", "one stale", "all fail", "one works", "a lost node does not count"],
)
def test_a_cluster_fails_when_all_its_ready_nodes_do(nodes: list[Obj], status: str | None) -> None:
    found = cluster_condition(nodes, NOW, THRESHOLDS.stale)
    assert (found and found["status"]) == status
