"""A whole control plane over simulated members: load rises and falls, replicas follow in both clusters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from karmada.api.autoscaling import FederatedHPA
from karmada.api.policy import PropagationPolicy
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.meta import get_condition
from karmada.kube.objects.types import Obj
from karmada.kube.sim.metrics.load import Setting
from karmada.rehearsal.network import State
from tests.controllers.federated_hpa.scaling_plane import CPU, HPAS
from tests.metricsadapter.measured_fleet import MEMBERS, MeasuredFleet
from tests.support.played_fleet import cleared, started
from tests.support.propagation import DEPLOYMENTS, deployment, policy

REQUESTS = {
    "type": "Pods",
    "pods": {"metric": {"name": "http_requests"}, "target": {"averageValue": "700m", "type": "Value"}},
}
QUICK = {"scaleDown": {"stabilizationWindowSeconds": 10}, "scaleUp": {"stabilizationWindowSeconds": 10}}


class Scaled:
    """A Deployment that is divided evenly between the members, and its FederatedHPA."""

    def __init__(self, fleet: MeasuredFleet) -> None:
        self.measured, self.fleet, self.client = fleet, fleet.fleet, fleet.client

    async def start(self, metric: Obj) -> None:
        container = {"name": "web", "image": "nginx", "resources": {"requests": {"cpu": "100m"}}}
        weights = [{"targetCluster": {"clusterNames": [name]}, "weight": 1} for name in MEMBERS]
        divided = {
            "replicaSchedulingType": "Divided",
            "replicaDivisionPreference": "Weighted",
            "weightPreference": {"staticWeightList": weights},
        }
        placement = {"clusterAffinity": {"clusterNames": list(MEMBERS)}, "replicaScheduling": divided}
        await self.client.create(DEPLOYMENTS, deployment("web", replicas=2, pod={"containers": [container]}))
        await self.client.create(PropagationPolicy.gvr, policy("web", placement=placement))
        await self.fleet.run(30)
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        spec = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 10, "behavior": QUICK, "metrics": [metric]}
        head = {"apiVersion": FederatedHPA.gvk.api_version, "kind": "FederatedHPA"}
        await self.client.create(HPAS, {**head, "metadata": {"name": "web", "namespace": "default"}, "spec": spec})

    def load(self, **amounts: Any) -> None:
        """Of all pods of a cluster together, the same in both."""
        for name in MEMBERS:
            setting = Setting(namespace="default", kind="Deployment", name="web", load=amounts)
            self.measured.put_load(name, setting)

    async def end(self) -> None:
        for kind in (HPAS, DEPLOYMENTS, PropagationPolicy.gvr):
            await self.client.delete(kind, "web", "default")

    async def replicas(self) -> dict[str, int]:
        """In each member."""
        found = {}
        for name, member in self.fleet.members.items():
            try:
                found[name] = (await member.client.get(DEPLOYMENTS, "web", "default"))["spec"]["replicas"]
            except NotFound:
                found[name] = 0
        return found

    async def active(self) -> str:
        status = (await self.client.get(HPAS, "web", "default")).get("status") or {}
        return (get_condition(status.get("conditions"), "ScalingActive") or {}).get("message", "")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeasuredFleet]:
    yield from started(MeasuredFleet(tmp_path_factory.mktemp("scaled")))


@pytest.fixture
def fleet(shared: MeasuredFleet) -> Iterator[MeasuredFleet]:
    yield from cleared(shared)


def test_replicas_follow_the_cpu_load_of_both_clusters(fleet: MeasuredFleet) -> None:
    async def scenario() -> None:
        web = Scaled(fleet)
        await web.start(CPU)
        web.load(**{"total-cpu": "200m"})
        await web.fleet.run(120)
        assert await web.replicas() == {"m1": 4, "m2": 4}  # 400m at 50 of 100m each
        web.load(**{"total-cpu": "10m"})
        await web.fleet.run(300)
        assert sum((await web.replicas()).values()) == 1
        await web.end()

    fleet.play(scenario())


def test_replicas_follow_a_custom_metric_and_a_cluster_that_fails_is_made_up_for(fleet: MeasuredFleet) -> None:
    async def scenario() -> None:
        web = Scaled(fleet)
        await web.start(REQUESTS)
        web.load(**{"total-http_requests": "1400m"})
        await web.fleet.run(120)
        assert await web.replicas() == {"m1": 2, "m2": 2}
        fleet.fleet.change_network("m2", State.DOWN)
        await web.fleet.run(60)
        assert "not counted: m2" in await web.active()
        assert sum((await web.replicas()).values()) == 4
        fleet.fleet.change_network("m2", State.UP)
        await web.end()

    fleet.play(scenario())
