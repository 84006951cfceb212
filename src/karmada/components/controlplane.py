"""The control plane in one process: the embedded API server with Karmada's kinds, and every controller on it.

Controllers work in-process: an informer and the server share the same objects. Several such processes may share an
etcd; then a lease says which of them runs the controllers, and the others stand by.
"""

from __future__ import annotations

import asyncio
import os
import socket
import uuid
from dataclasses import replace

from karmada.api.work import ClusterResourceBinding, ResourceBinding, Work
from karmada.apiserver.mount import SYSTEM_NAMESPACE, mount, until_served
from karmada.controllers.all import controllers
from karmada.controllers.context import CONTROLLER_MANAGER, Context, Settings
from karmada.features import default_gates
from karmada.kube.objects.clock import Clock, RealClock
from karmada.kube.objects.meta import without_managed_fields
from karmada.kube.runtime.features import FeatureGates
from karmada.kube.runtime.leader import LeaderElector
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.manager import LeadershipLost, Manager
from karmada.kube.runtime.metrics import Metrics
from karmada.kube.runtime.waiting import cancel_and_wait
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig
from karmada.kube.server.watchcache.history import History
from karmada.members.members import Members

WITHOUT_PODS = frozenset({"StorageObjectInUseProtection", "ServiceAccount"})
"""Admission that makes sense only where pods run."""
_HISTORY = History(most_bytes=4 << 20)
"""Its own watchers are in the same process and never far behind; who is finds the rest in the store."""
MANY = frozenset({Work.gvr, ResourceBinding.gvr, ClusterResourceBinding.gvr})
"""What there are most of, each for itself of interest only now and then."""
_RETRY_SECONDS = 1.0
log = get_logger("control-plane")


class ControlPlane:
    def __init__(
        self,
        config: ServerConfig,
        *,
        settings: Settings | None = None,
        gates: FeatureGates | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.clock = clock or RealClock()
        self.settings = settings or Settings()
        self.gates = gates or default_gates()
        config = replace(
            config,
            namespace_defaults=False,
            disabled_admission=config.disabled_admission | WITHOUT_PODS,
            history=_HISTORY,
        )
        self.server = ApiServer(config, self.clock)
        mount(self.server, self.gates)
        self.manager: Manager | None = None
        self.context: Context | None = None
        self._turns: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await self.server.start()
        await until_served(self.server)
        if self.server.config.shares_storage:
            self._turns = asyncio.create_task(self._take_turns(), name="control plane")
        else:
            self.manager = self._assemble(None)
            await self.manager.start()

    async def stop(self) -> None:
        if self._turns is not None:
            await cancel_and_wait(self._turns)
        elif self.manager is not None:
            await self.manager.stop()
        await self.server.stop()

    def _assemble(self, elector: LeaderElector | None) -> Manager:
        server, clock = self.server, self.clock
        client = server.client(user_agent=CONTROLLER_MANAGER)
        metrics = Metrics()
        manager = Manager(
            client,
            clock=clock,
            elector=elector,
            metrics=metrics,
            transform=without_managed_fields,
            on_demand=MANY,
        )
        members = Members(manager.informers, clock)
        context = self.context = Context(
            lambda name: server.client(user_agent=name), manager.informers, clock, members, self.gates, self.settings
        )
        manager.add_component(members)
        parts = controllers(context)
        for recorder in context.recorders.values():
            manager.add_component(recorder, needs_leader=True)
        for part in parts:
            manager.add_part(part)
        for collector in {part.metrics for part in parts if hasattr(part, "metrics")}:
            metrics.registry.register(collector)
        server.metrics.others = lambda: metrics.expose()[0]
        return manager

    async def _take_turns(self) -> None:
        """Stand for election, work while elected, stand again."""
        identity = f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4()}"
        while True:
            client = self.server.client(user_agent=CONTROLLER_MANAGER)
            elector = LeaderElector(client, CONTROLLER_MANAGER, SYSTEM_NAMESPACE, identity, clock=self.clock)
            self.manager = self._assemble(elector)
            try:
                await self.manager.run()
            except LeadershipLost:
                log.info("Another process runs the controllers now")
            except Exception as error:
                log.exception("The controllers stopped, trying again", error)
            await self.clock.sleep(_RETRY_SECONDS)
