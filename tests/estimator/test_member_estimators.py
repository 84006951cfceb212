from __future__ import annotations

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from karmada.api.cluster import Cluster
from karmada.estimator.in_process_first import InProcessFirst
from karmada.estimator.members import UNKNOWN, MemberEstimators
from karmada.estimator.terms import EstimateError
from karmada.features import default_gates
from karmada.kube.client.client import Client
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.gvrs import NODES
from karmada.kube.runtime.informers import Informers
from karmada.members.access import NoAccess
from tests.support.eventually import eventually
from tests.support.fake_api import KINDS, FakeApi, FakeTransport

READY = {"conditions": [{"type": "Ready", "status": "True"}]}


class Fleet:
    """Clusters of a control plane, and members with one node each."""

    def __init__(self) -> None:
        self.client = Client(FakeTransport(FakeApi({**KINDS, Cluster.gvr: ("Cluster", False, ())})))
        self.clock = FakeClock()
        self.clusters = Informers(self.client, clock=self.clock)
        self.members: dict[str, Any] = {}
        self.estimators = MemberEstimators(self.clusters, cast("Any", self), default_gates(), self.clock)

    def get(self, name: str) -> Any:
        if name not in self.members:
            raise NoAccess("no credentials")
        return self.members[name]

    async def add_member(self, name: str, pods: int = 5) -> None:
        client = Client(FakeTransport(FakeApi()))
        await client.create(NODES, {"metadata": {"name": "n1"}, "status": {"allocatable": {"pods": str(pods)}}})
        informers = Informers(client, clock=self.clock)
        informers.start()
        self.members[name] = SimpleNamespace(informers=informers)

    async def join(self, name: str, mode: str = "Push", status: Any = READY) -> None:
        await self.client.create(
            Cluster.gvr, {"metadata": {"name": name}, "spec": {"syncMode": mode}, "status": status}
        )

    def capacity(self, name: str) -> int | None:
        found = self.estimators.get(name)
        return found.max_available_replicas(None) if found is not None and found.synced else None


@pytest.fixture
async def fleet() -> AsyncIterator[Fleet]:
    found = Fleet()
    found.clusters.start()
    await found.clusters.wait_synced()
    await found.estimators.start()
    yield found
    await found.estimators.stop()
    await found.clusters.stop()
    for member in found.members.values():
        await member.informers.stop()


async def test_a_cluster_that_is_ready_has_an_estimator_until_it_is_gone(fleet: Fleet) -> None:
    await fleet.add_member("m1")
    await fleet.join("m1")
    await eventually(lambda: fleet.capacity("m1") == 5)
    await fleet.client.delete(Cluster.gvr, "m1")
    await eventually(lambda: fleet.estimators.get("m1") is None)


async def test_it_follows_members_while_one_of_its_users_runs(fleet: Fleet) -> None:
    await fleet.estimators.start()
    await fleet.estimators.stop()
    await fleet.add_member("m1")
    await fleet.join("m1")
    await eventually(lambda: fleet.capacity("m1") == 5)


async def test_others_have_none(fleet: Fleet) -> None:
    for name in ("pull", "unready", "m1"):
        await fleet.add_member(name)
    await fleet.join("pull", mode="Pull")
    await fleet.join("unready", status={})
    await fleet.join("no-access")
    await fleet.join("m1")
    await eventually(lambda: fleet.capacity("m1"))
    assert [fleet.estimators.get(name) for name in ("pull", "unready", "no-access")] == [None] * 3


async def test_another_member_behind_the_name_has_another_estimator(fleet: Fleet) -> None:
    await fleet.add_member("m1")
    await fleet.join("m1")
    await eventually(lambda: fleet.capacity("m1") == 5)
    first = fleet.members["m1"]
    await fleet.add_member("m1", pods=9)
    await fleet.client.patch(Cluster.gvr, "m1", "", {"status": {**READY, "kubernetesVersion": "v1.30"}})
    await eventually(lambda: fleet.capacity("m1") == 9)
    await first.informers.stop()


async def test_unschedulable_replicas_are_unknown_where_nothing_is_known(fleet: Fleet) -> None:
    web = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web"}
    await fleet.add_member("m1")
    await fleet.join("m1")
    await eventually(lambda: fleet.capacity("m1"))
    assert await fleet.estimators.unschedulable_replicas(["m1", "m2"], web, 0) == {"m1": UNKNOWN, "m2": UNKNOWN}


class Remote:
    """Estimators of other processes: numbers, or an error."""

    def __init__(self, answer: dict[str, int] | EstimateError) -> None:
        self.answer = answer

    async def unschedulable_replicas(self, clusters: Any, resource: Any, threshold: float) -> dict[str, int]:  # noqa: ARG002
        assert list(clusters) == ["remote"]
        if isinstance(self.answer, EstimateError):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(("answer", "counted"), [({"remote": 3}, 3), (EstimateError("away"), UNKNOWN)])
async def test_clusters_without_an_estimator_here_are_called(fleet: Fleet, answer: Any, counted: int) -> None:
    await fleet.add_member("m1")
    await fleet.join("m1")
    await eventually(lambda: fleet.capacity("m1"))
    both = InProcessFirst(fleet.estimators, Remote(answer))
    assert await both.unschedulable_replicas(["m1", "remote"], {}, 0) == {"m1": UNKNOWN, "remote": counted}
