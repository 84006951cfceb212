"""What `karmadactl simulate --fail` foretells is what then happens, in random fleets."""

from __future__ import annotations

import random
from pathlib import Path

from karmada.api.policy import PropagationPolicy
from karmada.api.work import ResourceBinding
from karmada.kube.objects.gvrs import DEPLOYMENTS
from karmada.kube.objects.types import Obj
from karmada.prediction.scheduling import counts
from karmada.prediction.simulation import Given, simulate
from karmada.prediction.trials import Trial
from karmada.prediction.world import World
from karmada.rehearsal.event_loop import rehearse
from karmada.rehearsal.network import State
from tests.controllers.failover.histories import DIVIDED, MEMBERS, NOT_READY, ONE_CLUSTER, History
from tests.support.propagation import deployment, policy

FLEETS = 10
WORKLOADS = 10
"""In each: what one fleet goes through costs as much as ten workloads in it."""
AGGREGATED = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}
SCHEDULINGS: list[Obj] = [
    {},
    {"spreadConstraints": ONE_CLUSTER},
    {"replicaScheduling": DIVIDED},
    {"replicaScheduling": AGGREGATED},
]
FOREVER = [{"key": NOT_READY, "operator": "Exists"}]


def random_placement(draw: random.Random) -> Obj:
    names = draw.sample(MEMBERS, draw.randint(1, 3))
    tolerations = {"clusterTolerations": FOREVER} if draw.random() < 0.2 else {}
    return {"clusterAffinity": {"clusterNames": names}, **draw.choice(SCHEDULINGS), **tolerations}


async def one_fleet(history: History, draw: random.Random, number: int) -> None:
    """Some workloads somewhere; one cluster fails, comes back, and everything goes."""
    fleet = history.fleet
    names = [f"w{number}-{index}" for index in range(WORKLOADS)]
    for name in names:
        selector = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
        await fleet.client.create(PropagationPolicy.gvr, policy(name, selector, placement=random_placement(draw)))
        await fleet.client.create(DEPLOYMENTS, deployment(name, replicas=draw.randint(1, 5)))
    await fleet.run(15)
    failing = draw.choice(MEMBERS)
    expected = await predict(history, failing)
    fleet.change_network(failing, State.DOWN)
    await fleet.run(90)
    for name in names:
        binding = await fleet.client.get(ResourceBinding.gvr, f"{name}-deployment", "default")
        found = counts(binding["spec"].get("clusters") or ())
        assert found == expected[name], (name, failing, binding["spec"])
    fleet.change_network(failing, State.UP)
    for name in names:
        await fleet.client.delete(PropagationPolicy.gvr, name, "default")
        await fleet.client.delete(DEPLOYMENTS, name, "default")
    await fleet.run(60)


async def predict(history: History, failing: str) -> dict[str, dict[str, int]]:
    """By name."""
    world = await World().over(history.fleet.client)
    trial = Trial(failing=frozenset({failing}), with_failover=True)
    outcomes = (await simulate(world, Given([], [], []), trial, "default")).outcomes
    return {
        one.resource["name"]: {} if one.decision.failure is not None else counts(one.decision.targets)
        for one in outcomes
    }


def test_simulate_foretells_what_happens(tmp_path: Path) -> None:
    async def play() -> None:
        history = History(tmp_path)
        await history.start()
        draw = random.Random(7)
        for number in range(FLEETS):
            await one_fleet(history, draw, number)
        await history.fleet.stop()

    rehearse(play())
