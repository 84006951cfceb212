"""A scheduler with estimators of its members in its process: pods go where nodes take them, and all of them run.

A cordoned node counts in what a cluster reports of itself, so only an estimator knows that nothing fits there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from karmada.api.policy import FederatedResourceQuota, PropagationPolicy
from karmada.kube.objects.gvrs import DEPLOYMENTS, EVENTS, NODES
from karmada.kube.objects.meta import get_condition
from karmada.kube.objects.types import Obj
from karmada.kube.sim.profile import NodePool
from tests.support.played_fleet import PlayedFleet, cleared, started
from tests.support.propagation import BINDINGS, deployment, policy
from tests.support.scheduling_cases import DYNAMIC

ONE_CPU = {"containers": [{"name": "web", "image": "nginx", "resources": {"requests": {"cpu": "1"}}}]}
GROUPS = [{"affinityName": f"g{number}", "clusterNames": [f"m{number}"]} for number in (1, 2)]


class Fleet(PlayedFleet):
    """m1 has two nodes, m2 one with a label; each takes four pods of one cpu."""

    async def start(self) -> None:
        await self.begin("m1", nodes=2, seconds=0)
        await self.add("m2", NodePool(count=1, labels={"disk": "ssd"}))
        await self.fleet.run(45)

    async def clear(self) -> None:
        await self.remove(PropagationPolicy.gvr, DEPLOYMENTS, FederatedResourceQuota.gvr)
        for member in ("m1", "m2"):
            await self.cordon(member, 2, cordoned=False)
        await self.fleet.run(45)

    async def cordon(self, member: str, count: int, *, cordoned: bool = True) -> None:
        """So many nodes of a member."""
        client = self.fleet.members[member].client
        nodes = sorted((await client.list_all(NODES)).items, key=lambda node: str(node["metadata"]["name"]))
        for node in nodes[:count]:
            await client.patch(NODES, node["metadata"]["name"], "", {"spec": {"unschedulable": cordoned or None}})
        await self.fleet.run(1)

    async def place(self, replicas: int, pod: Obj | None = None, **placement: Any) -> None:
        where = {"replicaScheduling": DYNAMIC, **placement}
        await self.client.create(PropagationPolicy.gvr, policy("web", placement=where))
        await self.client.create(DEPLOYMENTS, deployment("web", replicas=replicas, pod=pod or ONE_CPU))
        await self.fleet.run(5)

    async def binding(self) -> Obj:
        return await self.client.get(BINDINGS, "web-deployment", "default")

    async def targets(self) -> dict[str, int]:
        return {one["name"]: one["replicas"] for one in (await self.binding())["spec"].get("clusters") or ()}

    async def scheduled(self) -> tuple[str, str]:
        found = get_condition((await self.binding())["status"]["conditions"], "Scheduled")
        assert found is not None
        return found["reason"], found["message"]

    async def ready(self) -> int:
        status = (await self.client.get(DEPLOYMENTS, "web", "default")).get("status") or {}
        return int(status.get("readyReplicas") or 0)

    async def failures(self) -> list[str]:
        events = (await self.client.list_all(EVENTS, "default")).items
        return [event["message"] for event in events if event["reason"] == "ScheduleBindingFailed"]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    yield from started(Fleet(tmp_path_factory.mktemp("fleet"), gates="FederatedQuotaEnforcement=true"))


@pytest.fixture
def fleet(shared: Fleet) -> Iterator[Fleet]:
    yield from cleared(shared)


def test_replicas_are_divided_by_what_nodes_take(fleet: Fleet) -> None:
    async def play() -> None:
        await fleet.cordon("m1", 2)
        await fleet.place(3)
        assert await fleet.targets() == {"m2": 3}
        assert await fleet.ready() == 3

    fleet.play(play())


def test_a_workload_goes_where_its_nodes_are(fleet: Fleet) -> None:
    async def play() -> None:
        await fleet.place(3, pod={**ONE_CPU, "nodeSelector": {"disk": "ssd"}})
        assert await fleet.targets() == {"m2": 3}
        assert await fleet.ready() == 3

    fleet.play(play())


def test_too_little_capacity_places_nothing_until_there_is_enough(fleet: Fleet) -> None:
    async def play() -> None:
        await fleet.cordon("m1", 1)
        await fleet.place(5, clusterAffinity={"clusterNames": ["m1"]})
        assert await fleet.targets() == {}
        assert await fleet.scheduled() == (
            "Unschedulable",
            "failed to assign replicas: failed to scale up: Clusters available replicas 4 are not enough to schedule.",
        )
        binding = await fleet.binding()
        assert "policy.karmada.io/applied-placement" not in binding["metadata"].get("annotations", {})
        assert "schedulerObservedGeneration" not in binding["status"]
        await fleet.cordon("m1", 1, cordoned=False)
        await fleet.fleet.run(60)
        assert await fleet.targets() == {"m1": 5}
        assert await fleet.ready() == 5

    fleet.play(play())


def test_the_next_group_of_clusters_takes_what_the_first_has_no_node_for(fleet: Fleet) -> None:
    async def play() -> None:
        await fleet.cordon("m1", 2)
        await fleet.place(2, clusterAffinities=GROUPS)
        assert await fleet.targets() == {"m2": 2}
        assert (await fleet.binding())["status"]["schedulerObservingAffinityName"] == "g2"
        assert any("with clusterAffiliates index(0): failed to assign" in text for text in await fleet.failures())
        await fleet.cordon("m1", 2, cordoned=False)
        await fleet.client.patch(DEPLOYMENTS, "web", "default", {"spec": {"replicas": 3}})
        await fleet.fleet.run(60)
        assert await fleet.targets() == {"m2": 3}, "it never returns to an earlier group"
        assert await fleet.ready() == 3

    fleet.play(play())


def test_when_no_group_has_nodes_for_it_nothing_is_placed_and_all_are_retried(
    fleet: Fleet,
) -> None:
    async def play() -> None:
        await fleet.cordon("m1", 2)
        await fleet.cordon("m2", 1)
        await fleet.place(2, clusterAffinities=GROUPS)
        assert await fleet.targets() == {}
        reason, message = await fleet.scheduled()
        assert (reason, "Clusters available replicas 0 are not enough" in message) == ("Unschedulable", True)
        assert "schedulerObservingAffinityName" not in (await fleet.binding())["status"]
        await fleet.cordon("m2", 1, cordoned=False)
        await fleet.fleet.run(60)
        assert await fleet.targets() == {"m2": 2}
        assert await fleet.ready() == 2

    fleet.play(play())


def test_what_exceeds_a_quota_stays_where_it_is_until_the_quota_allows_it(fleet: Fleet) -> None:
    async def play() -> None:
        head = {"apiVersion": "policy.karmada.io/v1alpha1", "kind": "FederatedResourceQuota"}
        quota = {**head, "metadata": {"name": "small", "namespace": "default"}, "spec": {"overall": {"cpu": "2"}}}
        await fleet.client.create(FederatedResourceQuota.gvr, quota)
        await fleet.place(2, clusterAffinity={"clusterNames": ["m1"]})
        assert await fleet.targets() == {"m1": 2}
        await fleet.client.patch(DEPLOYMENTS, "web", "default", {"spec": {"replicas": 3}})
        await fleet.fleet.run(5)
        assert await fleet.targets() == {"m1": 2}
        reason, message = await fleet.scheduled()
        assert reason == "QuotaExceeded"
        text = "FederatedResourceQuota(default/small) exceeded for resource cpu: requested sum 3, limit 2."
        assert message.endswith(text)
        assert await fleet.ready() == 2
        await fleet.client.patch(FederatedResourceQuota.gvr, "small", "default", {"spec": {"overall": {"cpu": "3"}}})
        await fleet.fleet.run(60)
        assert await fleet.targets() == {"m1": 3}
        assert await fleet.ready() == 3

    fleet.play(play())
