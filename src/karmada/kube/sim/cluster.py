"""One simulated cluster: an API server with its controllers, scheduler and kubelets.

Its state is in one folder (SQLite that leaves syncing to the system: it survives the process, not a power cut), or
in memory. The parts are reconcilers in one Manager, all working in-process; only what comes over HTTPS passes the gate
where faults happen. The cluster's clock may be skewed or sped up as a whole.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from pathlib import Path

from karmada.kube.client.client import Client
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.gvrs import PODS
from karmada.kube.objects.shapes import BARE
from karmada.kube.runtime.controller import Reconciler
from karmada.kube.runtime.manager import Manager
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig
from karmada.kube.server.registry import Registry
from karmada.kube.server.watchcache.collection import History
from karmada.kube.sim.behaviours import Behaviours, Rule
from karmada.kube.sim.clocks import ClusterClock
from karmada.kube.sim.context import CONTROLLER_MANAGER, Context
from karmada.kube.sim.controllers.all import member_controllers
from karmada.kube.sim.controllers.nodelifecycle import NodeLifecycle
from karmada.kube.sim.faults.gate import FaultGate
from karmada.kube.sim.faults.injector import Injector
from karmada.kube.sim.faults.kinds import Isolated, Matched, Unavailable
from karmada.kube.sim.initial_objects import initial_objects
from karmada.kube.sim.kubelet.connector import PodConnector
from karmada.kube.sim.kubelet.heartbeats import VirtualHeartbeats
from karmada.kube.sim.kubelet.kubelet import Kubelet
from karmada.kube.sim.kubelet.registration import NodeRegistration
from karmada.kube.sim.metrics.api import MetricsApis
from karmada.kube.sim.metrics.load import LoadModel
from karmada.kube.sim.pausing import Pausable
from karmada.kube.sim.processes.cluster import ProcessCluster
from karmada.kube.sim.processes.images import ImageTable
from karmada.kube.sim.profile import Profile
from karmada.kube.sim.scheduler.scheduler import Scheduler

_IDS = uuid.UUID("6e1c4d0f-52b7-4a36-9d1e-0a4c7f3b8e21")
"""The namespace of the clusters' ids: the same name and seed give the same id."""


_HISTORY = History(look_back=100, seconds=30.0, at_least=20, at_most=500, most_bytes=2 << 20, uncompressed=64)
"""Short, since hundreds of clusters share one process; older revisions are read from the store."""


class UnknownComponent(KeyError):
    """No component of the cluster has that name."""


class SimCluster:
    def __init__(
        self,
        profile: Profile,
        folder: Path,
        *,
        port: int = 0,
        in_memory: bool = False,
        namespace_deletion_delay: float = 0.0,
        clock: Clock | None = None,
        process_images: ImageTable | None = None,
    ) -> None:
        """`clock` takes the place of the cluster's own, which follows the machine's and can be skewed.

        With `process_images`, containers of these images run as processes; the profile's ranges are then a block of
        loopback addresses (see processes.loopback).
        """
        self.profile = profile
        self.folder = folder
        self.processes: ProcessCluster | None = None
        self._own_clock = None if clock is not None else ClusterClock()
        self.clock: Clock = clock or self._own_clock or ClusterClock()
        self.server = ApiServer(self._config(port, in_memory, namespace_deletion_delay), self.clock)
        self.manager = Manager(self._client(CONTROLLER_MANAGER), clock=self.clock, shape=BARE)
        self.context = Context(self._client, self.manager.informers, self.clock, profile)
        self.behaviours = Behaviours()
        self.load = LoadModel(self.context)
        self.heartbeats = VirtualHeartbeats(self.context)
        self.registration = NodeRegistration(self.context)
        self.gate = FaultGate(self.clock, self.context.random)
        self.faults = Injector(self)
        self._parts: dict[str, Pausable] = {}
        self._listening = False
        self._assemble(process_images)

    def _config(self, port: int, in_memory: bool, namespace_deletion_delay: float) -> ServerConfig:
        profile = self.profile
        state = (self.folder / "state.db").absolute()
        return ServerConfig(
            data_dir=self.folder,
            storage="memory://" if in_memory else f"sqlite://{state}?sync=off",
            port=port,
            kubernetes_version=profile.version,
            service_cidr=profile.service_cidr,
            cluster_id=str(uuid.uuid5(_IDS, f"{profile.name}/{profile.seed}")),
            context=profile.name,
            namespace_deletion_delay=namespace_deletion_delay,
            history=_HISTORY,
        )

    def _client(self, name: str) -> Client:
        return self.server.client(user_agent=name)

    def _assemble(self, process_images: ImageTable | None) -> None:
        context = self.context
        connector = PodConnector(context, self.load)
        if process_images is not None:
            self.processes = ProcessCluster(context, self.folder, process_images, self._address, connector)
        runtime = self.processes.runtime if self.processes is not None else None
        kubelet = Kubelet(context, self.behaviours, self.heartbeats, runtime)
        reconcilers: list[Reconciler] = [
            *member_controllers(context),
            NodeLifecycle(context, self.heartbeats),
            kubelet,
            self.registration,
        ]
        if self.processes is not None:
            reconcilers.append(self.processes.relays)
        for reconciler in reconcilers:
            self._add(reconciler)
        self.scheduler = Scheduler(context)
        self.manager.add_component(self.scheduler)
        self.manager.add_component(self.heartbeats)
        for recorder in context.recorders.values():
            self.manager.add_component(recorder)
        connector.access.ended = kubelet.end
        connector.failed = self.heartbeats.failed
        self.server.endpoints.connector = connector
        if self.profile.metrics:
            MetricsApis(context, self.load).install(self.server)
        self.server.more_defaults += initial_objects(self.profile)
        self.server.http.gate = self.gate
        self.gate.before_leases = self.heartbeats.materialise
        self.gate.lease_watchers = self.heartbeats.watched

    def _add(self, reconciler: Reconciler) -> None:
        part = Pausable(reconciler)
        self._parts[part.name] = part
        self.manager.add(part)

    # life cycle

    def _address(self) -> tuple[str, int]:
        return self.server.config.host, self.server.port

    async def start(self) -> None:
        if self.processes is not None:
            await self.processes.start()
        await self.server.start()
        self._listening = True
        await self.manager.start()
        if self.profile.without:
            await self.faults.inject(Unavailable(what=self.profile.without), name="profile")

    async def stop(self) -> None:
        await self.faults.close()
        for part in self._parts.values():
            part.resume()
        await self.manager.stop()
        if self.processes is not None:
            await self.processes.stop()
        await self.server.stop()

    @property
    def kubeconfig(self) -> Path:
        return self.server.kubeconfig

    @property
    def url(self) -> str:
        return self.server.url

    @property
    def pods(self) -> int:
        """Return the number of pods."""
        return len(self.context.informers.of(PODS))

    # fault injection (see faults.injector.FaultTarget)

    @property
    def registry(self) -> Registry:
        return self.server.registry

    async def listen(self) -> None:
        if not self._listening:
            await self.server.http.start(self.server.config.host, self.server.port, self.server.tls())
            self._listening = True

    async def stop_listening(self) -> None:
        if self._listening:
            self._listening = False
            await self.server.http.refuse()

    def cut(self, which: Matched) -> None:
        self.server.http.responses.cut(which.matches)

    def nodes_of(self, nodes: Iterable[str], pool: str, zone: str) -> list[str]:
        return self.registration.select(nodes, pool=pool, zone=zone)

    def stop_nodes(self, nodes: Iterable[str]) -> None:
        self.heartbeats.fail(nodes)

    def resume_nodes(self, nodes: Iterable[str]) -> None:
        self.heartbeats.heal(nodes)

    def set_pressure(self, nodes: Iterable[str], condition: str, on: bool) -> None:
        self.registration.set_pressure(nodes, condition, on)

    def add_rule(self, name: str, rule: Rule) -> None:
        self.behaviours.add(name, rule)

    def remove_rule(self, name: str) -> None:
        self.behaviours.remove(name)

    def isolate(self, faults: Iterable[Isolated]) -> None:
        if self.processes is None:
            raise ValueError(f"cluster {self.profile.name} runs no processes, whose connections could be cut")
        self.processes.network.isolate(faults)

    async def pause(self, component: str) -> None:
        if component == self.scheduler.name:
            await self.scheduler.stop()
        else:
            self._part(component).pause()

    async def resume(self, component: str) -> None:
        if component == self.scheduler.name:
            await self.scheduler.start()
        else:
            self._part(component).resume()

    def _part(self, component: str) -> Pausable:
        part = self._parts.get(component) or self._parts.get(f"{component}-controller")
        if part is None:
            known = ", ".join(sorted([*self._parts, self.scheduler.name]))
            raise UnknownComponent(f'no component "{component}" (known: {known})')
        return part

    def change_clock(self, rate: float, skip: float) -> None:
        if self._own_clock is not None:
            self._own_clock.change(rate=rate, skip=skip)

    def reset_clock(self) -> None:
        if self._own_clock is not None:
            self._own_clock.reset()
