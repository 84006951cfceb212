"""The control plane in one process: the embedded API server with Karmada's kinds, and every controller on it.

Controllers work in-process: an informer and the server share the same objects. Several such processes may share an
etcd; then a lease says which of them runs the controllers, and the others stand by.
"""

from __future__ import annotations

import asyncio
import os
import socket
import uuid

from karmada.apiserver.mount import SYSTEM_NAMESPACE, until_served
from karmada.components.assembly import Assembly
from karmada.components.server import control_plane_server
from karmada.controllers.context import CONTROLLER_MANAGER, Context, Settings
from karmada.features import default_gates
from karmada.kube.objects.clock import Clock, RealClock
from karmada.kube.runtime.features import FeatureGates
from karmada.kube.runtime.leader import LeaderElector
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.manager import LeadershipLost, Manager
from karmada.kube.runtime.waiting import cancel_and_wait
from karmada.kube.server.config import ServerConfig

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
        self.server = control_plane_server(config, self.clock, self.gates)
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
        assembly = Assembly(
            lambda name: self.server.client(user_agent=name),
            settings=self.settings,
            gates=self.gates,
            clock=self.clock,
            elector=elector,
        )
        self.context = assembly.context
        assembly.add_controllers()
        assembly.add_scheduler()
        self.server.metrics.others = lambda: assembly.metrics.expose()[0]
        return assembly.manager

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
