"""A whole fleet in memory on a fast clock, with failover and state injection on, for one test after the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from karmada.api.cluster import Cluster
from karmada.api.policy import ClusterTaintPolicy, PropagationPolicy
from karmada.api.well_known import execution_namespace, work_name
from karmada.api.work import ResourceBinding, Work
from karmada.controllers.context import Settings
from karmada.kube.objects import meta
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import DEPLOYMENTS
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.waiting import cancel_and_wait
from karmada.kube.sim.behaviours import Outcome, Rule
from karmada.rehearsal.network import State
from tests.controllers.failover.histories import DEAD
from tests.support.played_fleet import PlayedFleet
from tests.support.propagation import deployment, policy

MEMBERS = ("m1", "m2", "m3")
SETTINGS = Settings(enable_no_execute_taint_eviction=True)


def in_order(*clusters: str) -> Obj:
    """A placement in the first of these clusters that can take it."""
    return {"clusterAffinities": [{"affinityName": name, "clusterNames": [name]} for name in clusters]}


class Rehearsed(PlayedFleet):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder, settings=SETTINGS, gates="Failover=true,StatefulFailoverInjection=true")
        self._sick: set[str] = set()

    # life

    async def start(self) -> None:
        await self.begin(*MEMBERS, seconds=0)
        head = {"apiVersion": ClusterTaintPolicy.gvk.api_version, "kind": "ClusterTaintPolicy"}
        await self.client.create(ClusterTaintPolicy.gvr, {**head, "metadata": {"name": "dead"}, "spec": DEAD})
        await self.fleet.run(45)

    async def repair(self) -> None:
        """Everything works again, and nothing is left of the last test."""
        for name in MEMBERS:
            self.fleet.change_network(name, State.UP)
            await self.taint(name, evicting=False)
            self.cure(name)
        await self.remove(PropagationPolicy.gvr, DEPLOYMENTS)
        await self.fleet.run(100)

    # what happens

    async def place(self, placement: Obj, replicas: int = 2, pod: Obj | None = None, **spec: Any) -> None:
        await self.client.create(PropagationPolicy.gvr, policy("web", placement=placement, **spec))
        await self.client.create(DEPLOYMENTS, deployment("web", replicas=replicas, pod=pod))
        await self.fleet.run(15)

    async def change_policy(self, **spec: Any) -> None:
        await self.client.patch(PropagationPolicy.gvr, "web", "default", {"spec": spec})
        await self.fleet.run(5)

    async def scale(self, replicas: int) -> None:
        await self.client.patch(DEPLOYMENTS, "web", "default", {"spec": {"replicas": replicas}})
        await self.fleet.run(5)

    async def taint(self, member: str, *, evicting: bool = True) -> None:
        taints = [{"key": "work", "effect": "NoExecute", "timeAdded": rfc3339(self.fleet.clock.now())}]
        await self.client.patch(Cluster.gvr, member, "", {"spec": {"taints": taints if evicting else None}})

    def sicken(self, member: str) -> None:
        """Pods that start there from now on never become ready."""
        self._sick.add(member)
        self.fleet.members[member].sim.add_rule("sick", Rule(Outcome("never-ready"), namespace="default"))

    def cure(self, member: str) -> None:
        if member in self._sick:
            self._sick.discard(member)
            self.fleet.members[member].sim.remove_rule("sick")

    # what is there

    def targets(self) -> dict[str, int]:
        spec = self._binding()["spec"]
        return {target["name"]: target.get("replicas", 0) for target in spec.get("clusters") or ()}

    def leaving(self) -> list[str]:
        return [task["fromCluster"] for task in self._binding()["spec"].get("gracefulEvictionTasks") or ()]

    def _binding(self) -> Obj:
        found = self._stored(ResourceBinding.gvr, "web-deployment", "default")
        assert found is not None
        return found

    def works(self) -> set[str]:
        """The members with a Work of the workload, be it on its way out or not."""
        return {name for name in self.fleet.members if self.work(name) is not None}

    @asynccontextmanager
    async def changes_of_works(self) -> AsyncIterator[list[tuple[str, str]]]:
        """What happens to Works from now on: the type of the event, and the member."""
        seen: list[tuple[str, str]] = []
        start = meta.resource_version(await self.client.list(Work.gvr))

        async def follow() -> None:
            async for event in await self.client.watch(Work.gvr, resource_version=start):
                place = meta.namespace(event.object).removeprefix("karmada-es-")
                seen.extend([(event.type, place)] if meta.name(event.object).startswith("web-") else ())

        following = asyncio.create_task(follow())
        yield seen
        await cancel_and_wait(following)

    def work(self, member: str) -> Obj | None:
        return self._stored(Work.gvr, work_name("Deployment", "web", "default"), execution_namespace(member))

    def _stored(self, gvr: GVR, name: str, namespace: str) -> Obj | None:
        return self.fleet.server.cache.get(gvr.group_resource, namespace, name)

    def copy(self, member: str) -> Obj | None:
        """The Deployment in a member."""
        return self.fleet.members[member].sim.server.cache.get(DEPLOYMENTS.group_resource, "default", "web")

    def copies(self) -> dict[str, int]:
        """The members that have it, with the replicas that are ready, whether they can be reached or not."""
        found = {name: self.copy(name) for name in self.fleet.members}
        return {
            name: (obj.get("status") or {}).get("readyReplicas", 0) for name, obj in found.items() if obj is not None
        }
