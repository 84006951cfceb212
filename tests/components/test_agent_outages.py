"""An agent while the control plane, the network or the agent itself is away: it goes on, and catches up."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from karmada.api import well_known
from karmada.api.work import Work
from karmada.kube.objects import meta
from karmada.kube.objects.gvrs import CONFIG_MAPS, DEPLOYMENTS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.waiting import cancel_and_wait
from tests.support.agents import PullFleet, pull_fleet
from tests.support.eventually import eventually
from tests.support.fleet import TestMember, condition, deployment
from tests.support.objects import kube_object
from tests.support.relay import Relay, relay_to

MANY = 500
SPACE = well_known.execution_namespace("m1")


@asynccontextmanager
async def fleet_over_a_relay(folder: Path) -> AsyncIterator[tuple[PullFleet, Relay]]:
    """The agent reaches the control plane over a relay."""
    async with pull_fleet(folder, "m1", start=False) as found:
        agent = found.agents["m1"]
        async with relay_to(agent.plane.server) as relay:
            agent.plane = replace(agent.plane, server=relay.url)
            agent.start()
            await found.until_ready("m1")
            yield found, relay
            await agent.kill()


def work(number: int) -> Obj:
    """A Work with one ConfigMap, as the binding controller makes it."""
    name = f"settings-{number}"
    annotations = {well_known.WORK_NAMESPACE: SPACE, well_known.WORK_NAME: name}
    manifest = kube_object(
        "v1", "ConfigMap", name, "default", labels={well_known.MANAGED: well_known.TRUE}, annotations=annotations
    ) | {"data": {"number": str(number)}}
    return kube_object(
        Work.gvk.api_version, Work.gvk.kind, name, SPACE, finalizers=[well_known.EXECUTION_FINALIZER]
    ) | {"spec": {"workload": {"manifests": [manifest]}}}


class Arrivals:
    """What happened to the ConfigMaps of a member, as a watch shows it."""

    def __init__(self, member: TestMember) -> None:
        self.events: Counter[tuple[str, str]] = Counter()
        self._task = asyncio.create_task(self._follow(member))

    async def _follow(self, member: TestMember) -> None:
        items, version = await member.client.list_all(CONFIG_MAPS, "default")
        assert not [item for item in items if meta.name(item).startswith("settings-")]
        stream = await member.client.watch(CONFIG_MAPS, "default", resource_version=version)
        async for event, obj in stream:
            if event != "BOOKMARK":
                self.events[event, meta.name(obj)] += 1

    @property
    def count(self) -> int:
        return sum(1 for event, name in self.events if event == "ADDED" and name.startswith("settings-"))

    async def stop(self) -> None:
        await cancel_and_wait(self._task)

    def assert_once(self) -> None:
        expected = {("ADDED", f"settings-{number}"): 1 for number in range(MANY)}
        assert {key: count for key, count in self.events.items() if key[1].startswith("settings-")} == expected


async def all_applied(found: PullFleet) -> None:
    async def applied() -> bool:
        works = (await found.client.list_all(Work.gvr, SPACE)).items
        return len(works) == MANY and all(condition(each, "Applied") == "True" for each in works)

    await eventually(applied)


async def test_drift_is_corrected_while_the_control_plane_is_away_and_reported_when_it_is_back(tmp_path: Path) -> None:
    async with fleet_over_a_relay(tmp_path) as (found, relay):
        member = found.members["m1"]
        await found.fleet.propagate(DEPLOYMENTS, deployment(), {"m1": 2})
        await found.fleet.until_work("m1", deployment(), lambda w: condition(w, "Applied") == "True")
        relay.cut()
        live = await member.client.get(DEPLOYMENTS, "web", "default")
        await member.client.update(DEPLOYMENTS, {**live, "spec": {**live["spec"], "replicas": 7}})
        corrected = await member.until(DEPLOYMENTS, "web", lambda obj: obj["spec"]["replicas"] == 2)
        status = {"replicas": 2, "readyReplicas": 2, "observedGeneration": meta.generation(corrected)}
        await member.client.update_status(DEPLOYMENTS, {**corrected, "status": status})
        await member.client.delete(DEPLOYMENTS, "web", "default")
        again = await member.until(DEPLOYMENTS, "web", lambda obj: meta.uid(obj) != meta.uid(corrected))
        status = {"replicas": 2, "readyReplicas": 1, "observedGeneration": meta.generation(again)}
        await member.client.update_status(DEPLOYMENTS, {**again, "status": status})
        relay.restore()
        await found.fleet.until_work("m1", deployment(), lambda w: "'readyReplicas': 1" in str(w.get("status")))


async def test_the_network_is_cut_in_the_middle_of_many_objects_and_each_arrives_once(tmp_path: Path) -> None:
    async with fleet_over_a_relay(tmp_path) as (found, relay):
        arrivals = Arrivals(found.members["m1"])
        for number in range(MANY):
            await found.client.create(Work.gvr, work(number))
            if number in (MANY // 3, MANY // 2):
                await eventually(lambda: arrivals.count > 20)
                relay.cut()
            if number in (MANY // 3 + 50, MANY - 1):
                relay.restore()
        await all_applied(found)
        arrivals.assert_once()
        await arrivals.stop()


async def test_the_agent_is_killed_in_the_middle_of_many_objects_and_each_arrives_once(tmp_path: Path) -> None:
    async with pull_fleet(tmp_path, "m1") as found:
        arrivals = Arrivals(found.members["m1"])
        for number in range(MANY):
            await found.client.create(Work.gvr, work(number))
            if number in (100, 300):
                await eventually(lambda least=number // 2: arrivals.count > least)
                await found.agents["m1"].kill()
                found.agents["m1"].start()
        await all_applied(found)
        arrivals.assert_once()
        await arrivals.stop()
