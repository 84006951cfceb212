"""Faults by name and by time."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import DEPLOYMENTS, NODES
from karmada.kube.objects.times import parse_time
from karmada.kube.sim.cluster import UnknownComponent
from karmada.kube.sim.faults import kinds
from karmada.kube.sim.faults.injector import UnknownFault
from karmada.kube.sim.kubelet.registration import UnknownNode
from tests.kube.sim.faults.reaching import eventually_reaches, hangs, jump, reaches
from tests.kube.sim.whole_cluster import Whole, fetch, whole_cluster
from tests.support.cases import cases
from tests.support.eventually import LIMIT, eventually


async def test_a_timed_fault_heals_by_itself(whole: Whole) -> None:
    await whole.sim.faults.inject(kinds.Down(), seconds=0.05)
    await eventually_reaches(whole.admin, True)
    await eventually(lambda: not whole.sim.faults.active)


async def test_the_end_of_a_healed_fault_does_not_end_another_of_its_name(whole: Whole) -> None:
    await whole.sim.faults.inject(kinds.Unhealthy(), name="sick", seconds=0.05)
    await whole.sim.faults.inject(kinds.Unhealthy(), name="sick")
    await whole.sim.faults.inject(kinds.Slow(seconds=0), seconds=0.1)
    await eventually(lambda: list(whole.sim.faults.active) == ["sick"])
    assert (await fetch(whole.admin, "/readyz")).status == 500


async def test_faults_have_names_of_their_own_and_are_healed_by_them(whole: Whole) -> None:
    faults = whole.sim.faults
    assert await faults.inject(kinds.Slow(seconds=0)) == "slow"
    assert await faults.inject(kinds.Slow(seconds=0)) == "slow-2"
    assert await faults.inject(kinds.Unhealthy(), name="sick") == "sick"
    assert await faults.heal("slow") == ["slow"]
    assert list(faults.active) == ["slow-2", "sick"]
    assert await faults.heal() == ["slow-2", "sick"]
    assert await faults.heal() == []


async def test_two_faults_that_take_it_down_must_both_be_healed(whole: Whole) -> None:
    await whole.sim.faults.inject(kinds.Down(), name="power")
    await whole.sim.faults.inject(kinds.Down(), name="network")
    await whole.sim.faults.heal("power")
    assert not await reaches(whole.admin)
    await whole.sim.faults.heal("network")
    assert await reaches(whole.admin)


@cases(
    (kinds.Paused(component="nonsense"), UnknownComponent),
    (kinds.NodeLost(nodes=("nonsense",)), UnknownNode),
    (kinds.Pressure(nodes=("nonsense",)), UnknownNode),
)
async def test_what_does_not_exist_cannot_fail(fault: kinds.Fault, error: type[Exception], whole: Whole) -> None:
    with pytest.raises(error, match="nonsense"):
        await whole.sim.faults.inject(fault)
    assert not whole.sim.faults.active
    with pytest.raises(UnknownFault):
        await whole.sim.faults.heal("nonsense")


@cases(
    {"type": "nonsense"},
    {"type": "slow", "seconds": -1},
    {"type": "slow", "percent": 101},
    {"type": "slow", "users": "("},
    {"type": "flap", "up": 0},
    {"type": "clock", "rate": 0},
    {"type": "errors", "code": 418},
    {"type": "down", "nonsense": 1},
)
def test_a_fault_that_makes_no_sense_is_refused(description: object) -> None:
    with pytest.raises(msgspec.ValidationError):
        kinds.read(description)


async def test_a_cluster_with_requests_that_hang_stops_at_once(tmp_path: Path) -> None:
    async with whole_cluster(tmp_path) as whole:
        await whole.sim.faults.inject(kinds.BlackHole())
        waiting = await hangs(whole.admin.get(NODES, "small-node-1"))
        began = time.monotonic()
        await whole.sim.stop()
        assert time.monotonic() - began < LIMIT
        with suppress(ConnectionFailed, ApiError):
            await waiting


@cases(
    kinds.Down(),
    kinds.Flap(up=0.01, down=0.01),
    kinds.Paused(component="scheduler"),
    kinds.Paused(component="kubelet"),
    kinds.NodeLost(pool="node"),
    kinds.Clock(rate=1000),
    ids=lambda fault: type(fault).__name__,
)
async def test_a_cluster_with_a_fault_can_be_stopped_and_starts_without_it(fault: kinds.Fault, tmp_path: Path) -> None:
    async with whole_cluster(tmp_path, in_memory=False) as whole:
        await whole.deploy(2)
        await whole.sim.faults.inject(fault)
    async with whole_cluster(tmp_path, in_memory=False) as whole:
        assert await reaches(whole.admin)
        await whole.admin.patch(DEPLOYMENTS, "web", "default", {"spec": {"replicas": 3}})
        await eventually(lambda: whole.ready() == 3, show=whole.states)


async def test_leases_show_live_nodes_renewed_and_the_lost_one_not(whole: Whole) -> None:
    leases = GVR("coordination.k8s.io", "v1", "leases")

    async def ages() -> dict[str, float]:
        found = (await whole.admin.list(leases, "kube-node-lease"))["items"]
        now = whole.sim.clock.now()
        return {lease["metadata"]["name"]: now - parse_time(lease["spec"]["renewTime"]) for lease in found}

    await whole.sim.faults.inject(kinds.NodeLost(nodes=("small-node-1",)))
    await jump(whole, 100)
    seen = await ages()
    assert seen["small-node-2"] <= 11
    assert seen["small-node-1"] >= 100
    await whole.sim.faults.heal("node")
    assert (await ages())["small-node-1"] <= 11


async def test_nobody_gets_into_the_pods_of_a_lost_node(whole: Whole) -> None:
    await whole.deploy(1)
    [pod] = whole.pods()
    logs = f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}/log"
    assert (await fetch(whole.admin, logs)).status == 200
    await whole.sim.faults.inject(kinds.NodeLost(pool="node"))
    lost = await fetch(whole.admin, logs)
    assert lost.status == 500
    assert b"no route to host" in lost.body
    await whole.sim.faults.heal()
    assert (await fetch(whole.admin, logs)).status == 200
