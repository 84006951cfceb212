"""Pods that find no node in a member leave it: real controllers, scheduler, descheduler and simulated members."""

from __future__ import annotations

import asyncio
from pathlib import Path

from karmada.api.policy import PropagationPolicy
from karmada.components.assembly import Assembly
from karmada.kube.objects.gvrs import DEPLOYMENTS, EVENTS, PODS
from karmada.rehearsal.fleet import RehearsalFleet
from tests.support.played_fleet import PlayedFleet
from tests.support.propagation import BINDINGS, deployment, policy
from tests.support.scheduling_cases import DYNAMIC

LARGE = {"containers": [{"name": "web", "image": "nginx", "resources": {"requests": {"cpu": "1"}}}]}


async def place_while_a_member_fills_up(fleet: RehearsalFleet) -> None:
    """The scheduler knows m1 as it was before its own pods came."""
    hog = {"containers": [{"name": "hog", "image": "nginx", "resources": {"requests": {"cpu": "3500m"}}}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "hog", "namespace": "default"}, "spec": hog}
    await fleet.members["m1"].client.create(PODS, pod)
    selector = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    where = {"replicaScheduling": DYNAMIC}
    await fleet.client.create(PropagationPolicy.gvr, policy("web", selector, placement=where))
    await fleet.client.create(DEPLOYMENTS, deployment("web", replicas=4, pod=LARGE))


async def targets(fleet: RehearsalFleet) -> dict[str, int]:
    binding = await fleet.client.get(BINDINGS, "web-deployment", "default")
    return {target["name"]: target.get("replicas", 0) for target in binding["spec"]["clusters"]}


async def ready(fleet: RehearsalFleet) -> int:
    status = (await fleet.client.get(DEPLOYMENTS, "web", "default")).get("status") or {}
    return int(status.get("readyReplicas") or 0)


async def descheduled(fleet: RehearsalFleet) -> set[tuple[str, str]]:
    """Kind and message of the descheduler's events."""
    found = (await fleet.client.list_all(EVENTS, "default")).items
    return {
        (event["involvedObject"]["kind"], event["message"])
        for event in found
        if event["source"]["component"] == "karmada-descheduler"
    }


def test_pods_that_find_no_node_run_elsewhere_after_the_threshold(tmp_path: Path) -> None:
    two = PlayedFleet(tmp_path)

    async def play() -> None:
        await two.begin("m1", "m2")
        fleet = two.fleet
        assembly = Assembly(
            lambda name: fleet.server.client(user_agent=name), clock=fleet.clock, open_member=fleet._open
        )
        assembly.add_descheduler(in_process=True)
        await assembly.manager.start()
        await place_while_a_member_fills_up(fleet)
        await fleet.run(280)
        assert await targets(fleet) == {"m1": 2, "m2": 2}
        assert await ready(fleet) == 2
        await fleet.run(160)
        assert await targets(fleet) == {"m2": 4}
        assert await ready(fleet) == 4
        text = "Binding has been descheduled, 2 replica(s) in cluster(m1), 2 total descheduled replica(s)"
        assert await descheduled(fleet) == {("Deployment", text), ("ResourceBinding", text)}
        stopping = asyncio.create_task(assembly.manager.stop())
        while not stopping.done():
            await fleet.clock.advance(1.0)
        await stopping

    two.play(play())
    two.stop()
