"""Simulated nodes in a cluster that is not simulated: the node parts run against any API server by its kubeconfig.

The nodes carry the label type=sim and a taint against other pods; their kubelets serve logs and exec on ports of this
process. Controllers and scheduler run here, too, unless the target has its own: those hold Leases in kube-system, and
two of a kind must never work on the same objects.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import msgspec

from karmada.kube.client.client import Client
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.kubeconfig import load_config
from karmada.kube.objects.clock import SYSTEM
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvrs import LEASES, NODES, PODS
from karmada.kube.objects.shapes import BARE
from karmada.kube.objects.times import parse_time
from karmada.kube.runtime.controller import Reconciler
from karmada.kube.runtime.manager import Manager
from karmada.kube.runtime.waiting import with_timeout
from karmada.kube.sim.behaviours import Behaviours
from karmada.kube.sim.context import CONTROLLER_MANAGER, KUBELET, SCHEDULER, Context
from karmada.kube.sim.controllers.all import member_controllers
from karmada.kube.sim.controllers.nodelifecycle import NodeLifecycle
from karmada.kube.sim.controllers.podcontrol import BY_NODE, index_by_node
from karmada.kube.sim.kubelet.endpoint import KubeletServer
from karmada.kube.sim.kubelet.heartbeats import LeaseLiveness, VirtualHeartbeats
from karmada.kube.sim.kubelet.kubelet import Kubelet
from karmada.kube.sim.kubelet.managed import pool_of
from karmada.kube.sim.kubelet.registration import NodeRegistration
from karmada.kube.sim.metrics.load import LoadModel
from karmada.kube.sim.profile import FAKE_NODE_LABEL, FAKE_NODE_VALUE, VERSIONS, NodePool, Profile, Taint
from karmada.kube.sim.scheduler.scheduler import Scheduler

TAINT = Taint("sim.io/node", "NoSchedule", "true")
_FRESH_SECONDS = 60.0
_LEAVE_SECONDS = 20.0


class AttachedCluster:
    def __init__(self, profile: Profile, kubeconfig: Path, context: str = "") -> None:
        pools = tuple(_marked(pool) for pool in profile.pools)
        self.profile = msgspec.structs.replace(profile, pools=pools, real_heartbeats=True)
        self.kubeconfig = kubeconfig
        self.clock = SYSTEM
        self._config = load_config(kubeconfig, context=context)
        self._transports: list[HttpTransport] = []
        self.manager = Manager(self._client(CONTROLLER_MANAGER), clock=self.clock, shape=BARE)
        self.context = Context(self._client, self.manager.informers, self.clock, self.profile)
        self.behaviours = Behaviours()
        self.load = LoadModel(self.context)
        self.heartbeats = VirtualHeartbeats(self.context)
        self.registration = NodeRegistration(self.context)
        self.runs: tuple[str, ...] = ()
        """The components that the target does not run itself and that run here."""

    def _client(self, name: str) -> Client:
        transport = HttpTransport(replace(self._config, user_agent=name))
        self._transports.append(transport)
        return Client(transport)

    @property
    def url(self) -> str:
        return self._config.server

    @property
    def pods(self) -> int:
        """Return the number of pods on all simulated nodes."""
        return len(self.context.informers.of(PODS))

    async def start(self) -> None:
        await self._take_version()
        self.runs = tuple([name for name in (CONTROLLER_MANAGER, SCHEDULER) if not await self._has(name)])
        context = self.context
        kubelet = Kubelet(context, self.behaviours, self.heartbeats)
        reconcilers: list[Reconciler] = [kubelet, self.registration]
        if CONTROLLER_MANAGER in self.runs:
            reconcilers += [*member_controllers(context), NodeLifecycle(context, LeaseLiveness(context))]
        if SCHEDULER in self.runs:
            self.manager.add_component(Scheduler(context))
        for reconciler in reconcilers:
            self.manager.add(reconciler)
        self.manager.add_component(self.heartbeats)
        endpoint = KubeletServer(context, self.load)
        endpoint.access.ended = kubelet.end
        self.manager.add_component(endpoint)
        for recorder in context.recorders.values():
            self.manager.add_component(recorder)
        await self.manager.start()

    async def _take_version(self) -> None:
        """Select the kinds that the target serves: an older target has fewer than the profile's version."""
        served = await self.context.client(KUBELET).raw("GET", "/version")
        version = ".".join(str(served["gitVersion"]).lstrip("v").split(".")[:2])
        if version in VERSIONS and VERSIONS.index(version) < VERSIONS.index(self.profile.version):
            self.context.profile = msgspec.structs.replace(self.profile, version=version)

    async def _has(self, component: str) -> bool:
        """Return whether the target runs this component itself: its Lease was renewed recently."""
        try:
            lease = await self.context.client(KUBELET).get(LEASES, component, "kube-system")
        except NotFound:
            return False
        renewed = lease.get("spec", {}).get("renewTime")
        return bool(renewed) and self.clock.now() - parse_time(renewed) < _FRESH_SECONDS

    async def stop(self) -> None:
        """Stop; the nodes stay and become NotReady, as if their machines were switched off."""
        await self.manager.stop()
        for transport in self._transports:
            await transport.close()

    async def leave(self) -> None:
        """Delete the nodes and their pods. TimeoutError when the target does not respond."""
        nodes = [node["metadata"]["name"] for node in self.context.informers.of(NODES).list() if pool_of(node)]
        self.registration.set_pools(())
        await with_timeout(self.clock, self.registration.settled(), _LEAVE_SECONDS)
        pods = self.context.informers.of(PODS, indexes={BY_NODE: index_by_node})
        client = self.context.client(KUBELET)
        for pod in [pod for node in nodes for pod in pods.by_index(BY_NODE, node)]:
            meta = pod["metadata"]
            with suppress(NotFound):
                await client.delete(PODS, meta["name"], meta["namespace"], grace_period=0, uid=meta["uid"])


def _marked(pool: NodePool) -> NodePool:
    labels = {FAKE_NODE_LABEL: FAKE_NODE_VALUE, **pool.labels}
    taints = pool.taints if TAINT in pool.taints else (TAINT, *pool.taints)
    return msgspec.structs.replace(pool, labels=labels, taints=taints)
