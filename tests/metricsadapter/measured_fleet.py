"""A fleet in memory whose members measure what their pods use, for one test after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from karmada.kube.objects import meta
from karmada.kube.objects.gvrs import PODS
from karmada.kube.objects.types import Obj
from karmada.kube.sim.metrics.load import Setting
from karmada.rehearsal.network import State
from tests.support.objects import kube_object
from tests.support.played_fleet import PlayedFleet

MEMBERS = ("m1", "m2")


class MeasuredFleet(PlayedFleet):
    async def start(self) -> None:
        await self.begin(*MEMBERS, seconds=60)

    async def clear(self) -> None:
        for name, member in self.fleet.members.items():
            self.fleet.change_network(name, State.UP)
            for setting in list(member.sim.load.rules):
                member.sim.load.remove(setting)
            for pod in (await member.client.list_all(PODS)).items:
                await member.client.delete(PODS, meta.name(pod), meta.namespace(pod), grace_period=0)
        await self.fleet.run(60)

    async def run_pods(self, member: str, *names: str, namespace: str = "default", load: str = "cpu=100m") -> None:
        """Pods labelled app=web that use this much."""
        for name in names:
            pod = kube_object("v1", "Pod", name, labels={"app": "web"}, annotations={"sim.io/load": load}) | {
                "spec": {"containers": [{"name": "c", "image": "nginx"}]}
            }
            await self.fleet.members[member].client.create(PODS, pod, namespace)
        await self.fleet.run(60)

    def put_load(self, member: str, setting: Setting) -> None:
        self.fleet.members[member].sim.load.set(setting.name, setting)

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Obj:
        """As clients get it from the control plane; time passes meanwhile, for those who wait for a time-out."""
        waiting = asyncio.ensure_future(self.client.raw("GET", path, query=query))
        await self.fleet.run(20, until=waiting.done)
        answer: Obj = await waiting
        return answer
