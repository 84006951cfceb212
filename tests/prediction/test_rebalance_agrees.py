"""What `karmadactl simulate --rebalance` foretells is what a WorkloadRebalancer then does, in random fleets."""

from __future__ import annotations

import random
from pathlib import Path

from karmada.api.apps import WorkloadRebalancer
from karmada.api.cluster import Cluster
from karmada.controllers.workload_rebalancer import WorkloadRebalancers
from karmada.kube.objects.types import Obj
from karmada.prediction.scheduling import counts
from karmada.prediction.simulation import Given, simulate
from karmada.prediction.trials import Trial
from karmada.prediction.world import World
from tests.support.scheduling_cases import AGGREGATED, DUPLICATED, DYNAMIC, WEIGHTED, deployment, placement, spread
from tests.support.scheduling_plane import BINDINGS, Scheduling, scheduling

FLEETS = 25
NAMES = ("m1", "m2", "m3", "m4")
STRATEGIES = (DYNAMIC, DYNAMIC, AGGREGATED, AGGREGATED, WEIGHTED, DUPLICATED)


def some(draw: random.Random) -> list[str]:
    return draw.sample(NAMES, draw.randint(1, len(NAMES)))


def random_placement(draw: random.Random) -> Obj:
    constraints = [spread("cluster", 1, draw.randint(1, 3))] if draw.random() < 0.3 else []
    strategy = draw.choice(STRATEGIES)
    match draw.randint(0, 3):
        case 0:
            return placement(strategy, *constraints)
        case 1:
            return placement(strategy, *constraints, clusterAffinity={"clusterNames": some(draw)})
        case _:
            terms = [{"affinityName": name, "clusterNames": some(draw)} for name in ("g1", "g2")]
            return placement(strategy, *constraints, clusterAffinities=terms)


async def vary(plane: Scheduling, draw: random.Random) -> None:
    for name in NAMES:
        summary = {"allocatable": {"pods": str(draw.choice((0, 1, 3, 6, 20)))}}
        await plane.client.patch(Cluster.gvr, name, "", {"status": {"resourceSummary": summary}}, subresource="status")
        taints = [{"key": "full", "effect": "NoSchedule"}] if draw.random() < 0.15 else None
        await plane.client.patch(Cluster.gvr, name, "", {"spec": {"taints": taints}})
    await plane.rest()


async def predict(plane: Scheduling, workload: Obj) -> dict[str, int]:
    world, given = await World().over(plane.client), Given([], [], [workload])
    [outcome] = (await simulate(world, given, Trial(rebalance=True), "default")).outcomes
    return counts(outcome.after)


async def test_simulate_foretells_what_a_rebalancer_does(tmp_path: Path) -> None:
    draw = random.Random(11)
    changed = 0
    async with scheduling(tmp_path, more=lambda context: [WorkloadRebalancers(context)]) as plane:
        await plane.clusters(*NAMES, pods=0)
        for number in range(FLEETS):
            name = f"w{number}"
            await vary(plane, draw)
            spec = deployment(draw.randint(1, 8), random_placement(draw))
            spec["resource"] = {**spec["resource"], "name": name, "uid": f"uid-{number}"}
            await plane.bind(f"{name}-deployment", spec)
            await vary(plane, draw)
            await plane.wait(1)
            before = await plane.targets(f"{name}-deployment")
            workload = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": name}
            expected = await predict(plane, workload)
            head = {"apiVersion": WorkloadRebalancer.gvk.api_version, "kind": "WorkloadRebalancer"}
            made = {**head, "metadata": {"name": name}, "spec": {"workloads": [workload]}}
            await plane.client.create(WorkloadRebalancer.gvr, made)
            await plane.rest()
            assert await plane.targets(f"{name}-deployment") == expected, (number, spec, before)
            changed += before != expected
            await plane.client.delete(BINDINGS, f"{name}-deployment", "default")
    assert changed > FLEETS // 5
