"""The node side of a simulated cluster, put together for tests, and pods that are on a node from the start."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.gvrs import NODES, PODS
from karmada.kube.objects.meta import get_condition
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key
from karmada.kube.sim.behaviours import Behaviours
from karmada.kube.sim.context import Context
from karmada.kube.sim.controllers.nodelifecycle import NodeLifecycle
from karmada.kube.sim.controllers.tainteviction import TaintEviction
from karmada.kube.sim.kubelet.heartbeats import VirtualHeartbeats
from karmada.kube.sim.kubelet.kubelet import Kubelet
from karmada.kube.sim.kubelet.registration import NodeRegistration
from karmada.kube.sim.profile import INSTANT, NodePool, Profile
from tests.kube.sim.harness import Harness, running
from tests.support.eventually import eventually

NODE = "t-node-1"


@dataclass
class Parts:
    cluster: Harness
    behaviours: Behaviours
    heartbeats: VirtualHeartbeats
    registration: NodeRegistration
    kubelet: Kubelet

    async def create(self, name: str = "p", *containers: Obj, annotations: Obj | None = None, **spec: Any) -> Obj:
        made = list(containers) or [{"name": "c", "image": "nginx:1.27"}]
        metadata: Obj = {"name": name, "annotations": annotations or {}}
        whole = {"nodeName": NODE, "containers": made, **spec}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": whole}
        return await self.cluster.client.create(PODS, pod, "default")

    def pod(self, name: str = "p") -> Obj | None:
        return self.cluster.context.informers.of(PODS).get(Key("default", name))

    def node(self, name: str = NODE) -> Obj | None:
        return self.cluster.context.informers.of(NODES).get(Key("", name))

    def nodes(self) -> list[str]:
        return sorted(node["metadata"]["name"] for node in self.cluster.context.informers.of(NODES).list())

    async def until_phase(self, phase: str, name: str = "p") -> Obj:
        """Within no time: whatever is due now."""
        await eventually(
            lambda: (pod := self.pod(name)) is not None and pod["status"]["phase"] == phase, show=lambda: self.pod(name)
        )
        pod = self.pod(name)
        assert pod is not None
        return pod

    async def until_ready(self, name: str = "p", status: str = "True") -> Obj:
        await eventually(lambda: condition(self.pod(name), "Ready") == status, show=lambda: self.pod(name))
        pod = self.pod(name)
        assert pod is not None
        return pod

    async def until_gone(self, name: str = "p") -> None:
        await eventually(lambda: self.pod(name) is None, show=lambda: self.pod(name))

    async def pass_time(self, seconds: float, step: float = 0.5) -> None:
        """In steps, so that what one moment brings about is done before the next."""
        while seconds > 0:
            await self.cluster.clock.advance(min(step, seconds))
            seconds -= step


def condition(obj: Obj | None, kind: str) -> str:
    found = get_condition(((obj or {}).get("status") or {}).get("conditions"), kind)
    return str(found["status"]) if found is not None else ""


@asynccontextmanager
async def node_parts(
    folder: Path,
    *,
    pools: Iterable[NodePool] = (NodePool(count=1),),
    lifecycle: bool = True,
    clock: FakeClock | None = None,
    **profile: Any,
) -> AsyncIterator[Parts]:
    """Ready when the nodes are."""
    made: dict[str, Any] = {}

    def parts(context: Context) -> list[Any]:
        behaviours, heartbeats, registration = Behaviours(), VirtualHeartbeats(context), NodeRegistration(context)
        kubelet = Kubelet(context, behaviours, heartbeats)
        made.update(behaviours=behaviours, heartbeats=heartbeats, registration=registration, kubelet=kubelet)
        controllers = [NodeLifecycle(context, heartbeats), TaintEviction(context)] if lifecycle else []
        return [heartbeats, registration, kubelet, *controllers]

    whole = Profile("t", pools=tuple(pools), **{"latencies": INSTANT, **profile})
    async with running(folder, parts, profile=whole, clock=clock) as cluster:
        found = Parts(cluster, **made)
        settling = asyncio.create_task(found.registration.settled())
        while not settling.done():
            await cluster.clock.advance(0.1 if whole.latencies != INSTANT else 0.0)
        yield found
