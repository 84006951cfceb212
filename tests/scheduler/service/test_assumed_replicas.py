"""What was placed a moment ago is taken into account until it shows."""

from __future__ import annotations

from pathlib import Path

from karmada.estimator.terms import Assumption
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key
from karmada.scheduler.service.assumptions import Assumptions
from tests.support.scheduling_cases import AGGREGATED, DYNAMIC, deployment, placement
from tests.support.scheduling_plane import BINDINGS, scheduling

M1, M2 = {"name": "m1", "replicas": 2}, {"name": "m2", "replicas": 3}
GATE = "SchedulingOvercommitProtection=true"


def binding(name: str = "web-deployment", *healthy: str, **spec: object) -> Obj:
    items = [{"clusterName": cluster, "health": "Healthy"} for cluster in healthy]
    return {
        "metadata": {"namespace": "default", "name": name},
        "spec": {**deployment(5, {}), **spec},
        "status": {"aggregatedStatus": items},
    }


def assumed(held: Assumptions) -> dict[str, list[int]]:
    return {
        cluster: [component["replicas"] for one in found for component in one.components]
        for cluster, found in held.by_cluster().items()
    }


def test_every_target_is_assumed_with_what_it_needs() -> None:
    held = Assumptions(FakeClock())
    held.note(binding(replicaRequirements={"resourceRequest": {"cpu": "1"}}), [M1, M2])
    needs = {"resourceRequest": {"cpu": "1"}}
    component = {"name": "web", "replicas": 2, "replicaRequirements": needs}
    assert held.by_cluster()["m1"] == [Assumption("default", [component])]
    held.note(binding("other"), [M1])
    assert assumed(held) == {"m1": [2, 2], "m2": [3]}


def test_components_are_assumed_as_they_are() -> None:
    held = Assumptions(FakeClock())
    parts = [{"name": "a", "replicas": 1}, {"name": "b", "replicas": 4}]
    held.note(binding(components=parts), [{"name": "m1"}])
    assert held.by_cluster() == {"m1": [Assumption("default", parts)]}


def test_what_is_placed_anew_replaces_what_was_assumed() -> None:
    held = Assumptions(FakeClock())
    held.note(binding(), [M1, M2])
    held.by_cluster()
    held.note(binding(), [{"name": "m1", "replicas": 7}])
    assert assumed(held) == {"m1": [7]}
    held.note(binding(), [])
    assert assumed(held) == {}


def test_it_ends_for_a_cluster_where_it_comes_to_run_well() -> None:
    held = Assumptions(FakeClock())
    held.note(binding(), [M1, M2])
    held.observe(binding("web-deployment", "m1"), binding("web-deployment", "m1"))
    assert assumed(held) == {"m1": [2], "m2": [3]}, "it ran well before, too"
    held.observe(binding("web-deployment"), binding("web-deployment", "m1", "m9"))
    assert assumed(held) == {"m2": [3]}
    held.observe(binding("web-deployment", "m1"), binding("web-deployment", "m1", "m2"))
    assert assumed(held) == {}
    held.observe(binding(), binding("web-deployment", "m1"))


async def test_it_ends_after_five_minutes() -> None:
    clock = FakeClock()
    held = Assumptions(clock)
    held.note(binding("a"), [M1])
    held.note(binding("b"), [M1])
    await clock.advance(200)
    held.note(binding("a"), [M2])
    await clock.advance(100)
    assert assumed(held) == {"m2": [3]}
    await clock.advance(200)
    assert assumed(held) == {}


def test_what_is_gone_is_forgotten() -> None:
    held = Assumptions(FakeClock())
    held.note(binding(), [M1, M2])
    held.forget(Key("default", "web-deployment"))
    held.forget(Key("default", "web-deployment"))
    assert assumed(held) == {}


# through the server


async def test_two_workloads_are_not_given_the_same_room(folder: Path) -> None:
    async with scheduling(folder, gates=GATE) as plane:
        await plane.clusters("m1", pods=6)
        await plane.clusters("m2", pods=5)
        for name in ("a-deployment", "b-deployment"):
            await plane.bind(name, deployment(4, placement(AGGREGATED)))
        assert await plane.targets("a-deployment") == {"m1": 4}
        assert await plane.targets("b-deployment") == {"m2": 4}
        await plane.bind("c-deployment", deployment(4, placement(DYNAMIC)))
        condition = await plane.condition("c-deployment")
        assert condition is not None
        assert condition[1] == "Unschedulable"


async def test_without_the_gate_they_are(folder: Path) -> None:
    async with scheduling(folder) as plane:
        await plane.clusters("m1", pods=6)
        await plane.clusters("m2", pods=5)
        for name in ("a-deployment", "b-deployment"):
            await plane.bind(name, deployment(4, placement(AGGREGATED)))
        assert await plane.targets("b-deployment") == {"m1": 4}


async def test_workloads_that_come_at_once_know_of_each_other(folder: Path) -> None:
    async with scheduling(folder, gates=GATE, scheduler=False) as plane:
        await plane.clusters("m1", "m2", "m3", pods=5)
        for name in ("a", "b", "c"):
            await plane.bind(f"{name}-deployment", deployment(4, placement(AGGREGATED)))
        async with plane.another():
            found = [set(await plane.targets(f"{name}-deployment")) for name in ("a", "b", "c")]
        assert set().union(*found) == {"m1", "m2", "m3"}


async def test_room_comes_back_when_a_workload_is_deleted_or_taken_away(folder: Path) -> None:
    async with scheduling(folder, gates=GATE) as plane:
        await plane.clusters("m1", pods=6)
        await plane.bind("a-deployment", deployment(4, placement(AGGREGATED)))
        await plane.client.delete(BINDINGS, "a-deployment", "default")
        await plane.rest()
        await plane.bind("b-deployment", deployment(4, placement(AGGREGATED)))
        assert await plane.targets("b-deployment") == {"m1": 4}
        await plane.change("b-deployment", {"schedulerName": "other"})
        await plane.bind("c-deployment", deployment(4, placement(AGGREGATED)))
        assert await plane.targets("c-deployment") == {"m1": 4}
