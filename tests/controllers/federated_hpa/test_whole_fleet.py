"""A whole control plane over simulated members: load rises and falls, replicas follow in both clusters."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from karmada.api.autoscaling import CronFederatedHPA, FederatedHPA
from karmada.api.policy import PropagationPolicy
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvrs import DEPLOYMENTS, EVENTS
from karmada.kube.objects.meta import get_condition
from karmada.kube.objects.types import Obj
from karmada.kube.server.aggregation.backends import Inside
from karmada.kube.server.http.results import Result
from karmada.kube.sim.metrics.api import METRICS_SERVER
from karmada.kube.sim.metrics.load import Setting
from karmada.rehearsal.network import State
from tests.controllers.federated_hpa.scaling_plane import CPU, HPAS
from tests.metricsadapter.measured_fleet import MEMBERS, MeasuredFleet
from tests.support.cases import cases
from tests.support.played_fleet import started
from tests.support.propagation import deployment, policy

REQUESTS = {
    "type": "Pods",
    "pods": {"metric": {"name": "http_requests"}, "target": {"averageValue": "700m", "type": "Value"}},
}
TENTH_OF_CPU = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 10}},
}
QUICK = {"scaleDown": {"stabilizationWindowSeconds": 10}, "scaleUp": {"stabilizationWindowSeconds": 10}}


class Scaled:
    """A Deployment that is divided evenly between the members, and its FederatedHPA."""

    def __init__(self, fleet: MeasuredFleet) -> None:
        self.measured, self.fleet, self.client, self.play = fleet, fleet.fleet, fleet.client, fleet.play

    async def start(self, metric: Obj, *, replicas: int = 2, cpu: str = "100m") -> None:
        container = {"name": "web", "image": "nginx", "resources": {"requests": {"cpu": cpu}}}
        weights = [{"targetCluster": {"clusterNames": [name]}, "weight": 1} for name in MEMBERS]
        divided = {
            "replicaSchedulingType": "Divided",
            "replicaDivisionPreference": "Weighted",
            "weightPreference": {"staticWeightList": weights},
        }
        placement = {"clusterAffinity": {"clusterNames": list(MEMBERS)}, "replicaScheduling": divided}
        await self.client.create(DEPLOYMENTS, deployment("web", replicas=replicas, pod={"containers": [container]}))
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
        for kind in (CronFederatedHPA.gvr, HPAS, DEPLOYMENTS, PropagationPolicy.gvr, EVENTS):
            await self.client.delete_collection(kind, "default")
        await self.measured.clear()

    async def replicas(self) -> dict[str, int]:
        """In each member."""
        found = {}
        for name, member in self.fleet.members.items():
            try:
                found[name] = (await member.client.get(DEPLOYMENTS, "web", "default"))["spec"]["replicas"]
            except NotFound:
                found[name] = 0
        return found

    async def total(self) -> int:
        return sum((await self.replicas()).values())

    async def condition(self, kind: str) -> Obj:
        status = (await self.client.get(HPAS, "web", "default")).get("status") or {}
        return get_condition(status.get("conditions"), kind) or {}

    async def active(self) -> str:
        message: str = (await self.condition("ScalingActive")).get("message", "")
        return message

    async def until(self, look: Callable[[], Awaitable[int]], wanted: int) -> float:
        """The time at which it has become so."""
        for _ in range(60):
            if await look() == wanted:
                return self.fleet.clock.now()
            await self.fleet.run(5)
        raise AssertionError(f"not {wanted} but {await look()}")

    async def schedule(self, bounds: dict[str, int], *, at: float) -> None:
        """Have a CronFederatedHPA set these bounds at a full minute."""
        moment = datetime.fromtimestamp(at, UTC)
        rule = {"name": "bounds", "schedule": f"{moment.minute} {moment.hour} * * *", "timeZone": "UTC", **bounds}
        head = {"apiVersion": CronFederatedHPA.gvk.api_version, "kind": "CronFederatedHPA"}
        target = {"apiVersion": FederatedHPA.gvk.api_version, "kind": "FederatedHPA", "name": "web"}
        made = {"metadata": {"generateName": "web-"}, "spec": {"scaleTargetRef": target, "rules": [rule]}}
        await self.client.create(CronFederatedHPA.gvr, {**head, **made}, "default")

    async def rescaled(self) -> list[str]:
        """The messages of its changes of replicas, in their order; events are written behind."""
        await self.fleet.run(1)
        events = (await self.client.list_all(EVENTS, "default")).items
        found = [event for event in events if event["reason"] == "SuccessfulRescale"]
        return [event["message"] for event in sorted(found, key=lambda event: event["firstTimestamp"])]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeasuredFleet]:
    yield from started(MeasuredFleet(tmp_path_factory.mktemp("scaled")))


@pytest.fixture
def web(shared: MeasuredFleet) -> Iterator[Scaled]:
    made = Scaled(shared)
    yield made
    made.play(made.end())


def test_replicas_follow_the_cpu_load_of_both_clusters(web: Scaled) -> None:
    async def scenario() -> None:
        await web.start(CPU)
        web.load(**{"total-cpu": "200m"})
        await web.fleet.run(120)
        assert await web.replicas() == {"m1": 4, "m2": 4}  # 400m at 50 of 100m each
        web.load(**{"total-cpu": "10m"})
        await web.fleet.run(300)
        assert await web.total() == 1

    web.play(scenario())


def test_replicas_follow_a_custom_metric_and_a_cluster_that_fails_is_made_up_for(web: Scaled) -> None:
    async def scenario() -> None:
        await web.start(REQUESTS)
        web.load(**{"total-http_requests": "1400m"})
        await web.fleet.run(120)
        assert await web.replicas() == {"m1": 2, "m2": 2}
        web.fleet.change_network("m2", State.DOWN)
        await web.fleet.run(60)
        assert "not counted: m2" in await web.active()
        assert await web.total() == 4
        web.fleet.change_network("m2", State.UP)

    web.play(scenario())


QUIET, BUSY = 0, 1


@cases(
    (TENTH_OF_CPU, ({"cpu": "1m"}, {"total-cpu": "50m"}), "cpu resource utilization (percentage of request)"),
    (REQUESTS, ({"http_requests": "66m"}, {"total-http_requests": "40"}), "pods metric http_requests"),
    ids=["cpu", "custom metric"],
)
def test_one_replica_becomes_ten_in_steps_and_one_again_after_the_load(
    metric: Obj, loads: tuple[dict[str, str], dict[str, str]], name: str, web: Scaled
) -> None:
    async def scenario() -> None:
        web.load(**loads[QUIET])
        await web.start(metric, replicas=1, cpu="25m")
        await web.fleet.run(60)
        assert await web.total() == 1
        web.load(**loads[BUSY])
        await web.fleet.run(120)
        assert await web.replicas() == {"m1": 5, "m2": 5}
        assert (await web.condition("ScalingLimited"))["reason"] == "TooManyReplicas"
        web.load(**loads[QUIET])
        ended = web.fleet.clock.now()
        assert await web.until(web.total, 1) - ended < 60
        changes = await web.rescaled()
        growing, last = [change for change in changes if "above" in change], changes[-1]
        assert growing == [f"New size: {size}; reason: {name} above target" for size in (5, 10)]
        assert last == "New size: 1; reason: All metrics below target"

    web.play(scenario())


class HangingMetrics:
    """A metrics server that accepts requests and never answers."""

    generation = 0

    def __init__(self, real: Inside) -> None:
        self.resources = real.resources

    async def handle(self, *_: Any) -> Result:
        await asyncio.Event().wait()
        raise AssertionError


def test_replicas_do_not_fall_while_the_metrics_of_a_cluster_hang_and_the_status_names_it(web: Scaled) -> None:
    async def scenario() -> None:
        await web.start(CPU)
        web.load(**{"total-cpu": "200m"})
        await web.fleet.run(120)
        assert await web.replicas() == {"m1": 4, "m2": 4}
        backends = web.fleet.members["m2"].sim.server.aggregator.inside
        real = backends[METRICS_SERVER]
        backends[METRICS_SERVER] = HangingMetrics(real)
        web.load(cpu="10m")
        await web.fleet.run(120)
        backends[METRICS_SERVER] = real
        assert (await web.active()).endswith("; not counted: m2 (no metrics of its pods)")
        assert await web.total() == 8  # those of m2 may be busy
        await web.fleet.run(120)
        assert "not counted" not in await web.active()
        assert await web.total() == 1

    web.play(scenario())


def test_bounds_that_a_schedule_moves_count_at_once_and_metrics_between_them(web: Scaled) -> None:
    async def scenario() -> None:
        await web.start(CPU)
        web.load(**{"total-cpu": "100m"})
        await web.fleet.run(120)
        assert await web.total() == 4
        ahead = web.fleet.clock.now() // 60 * 60 + 120
        await web.schedule({"targetMinReplicas": 6, "targetMaxReplicas": 8}, at=ahead)
        await web.schedule({"targetMinReplicas": 1, "targetMaxReplicas": 2}, at=ahead + 180)
        await web.fleet.run(ahead + 30 - web.fleet.clock.now())
        assert await web.replicas() == {"m1": 3, "m2": 3}
        web.load(**{"total-cpu": "350m"})
        await web.fleet.run(120)
        assert await web.replicas() == {"m1": 4, "m2": 4}
        await web.fleet.run(60)
        assert await web.replicas() == {"m1": 1, "m2": 1}
        assert "New size: 2; reason: Current number of replicas above Spec.MaxReplicas" in await web.rescaled()

    web.play(scenario())
