"""The controllers that come with the API server, put together: what a bare control plane needs to be one.

Besides those of an API server proper it runs those of a kube-controller-manager, unless one has a process of its own.
A server with a store of its own runs them itself. Where several servers share a store, a lease says which of them does;
the others have their informers ready and take over when it is lost.
"""

from __future__ import annotations

import asyncio
import os
import socket
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING

from karmada.kube.client.client import Client
from karmada.kube.runtime.controller import Reconciler
from karmada.kube.runtime.leader import LeaderElector
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.manager import LeadershipLost, Manager
from karmada.kube.runtime.periodic import Periodic
from karmada.kube.runtime.waiting import cancel_and_wait
from karmada.kube.server.addresses import claims
from karmada.kube.server.controllers import cluster_controllers, expiry
from karmada.kube.server.controllers.cluster_controllers import NAMESPACE_DEFAULTS, Needs
from karmada.kube.server.controllers.definitions import DefaultDefinitions
from karmada.kube.server.controllers.expiry import EventExpiry
from karmada.kube.server.controllers.flow_schemas import SCHEMAS, FlowSchemaStatus
from karmada.kube.server.controllers.garbage_collector import GarbageCollector
from karmada.kube.server.crds.serving import CustomResourceDefinitionController
from karmada.kube.server.storage.interface import PushStore

if TYPE_CHECKING:
    from karmada.kube.server.app import ApiServer

LEASE = ("kube-controller-manager", "kube-system")
SERVER_LEASE = ("kube-apiserver", "kube-system")
"""Where a kube-controller-manager has the other one: that of the controllers of an API server proper."""
RETRY_SECONDS = 1.0
log = get_logger("controllers")


class BuiltinControllers:
    def __init__(self, server: ApiServer, *, elect: bool) -> None:
        self._server = server
        self._elect = elect
        self.manager: Manager | None = None
        self.garbage_collector: GarbageCollector | None = None
        self.may_collect = asyncio.Event()
        """True if the garbage collector may read all objects; cleared by those who read them first."""
        self.may_collect.set()
        self._turns: asyncio.Task[None] | None = None
        server.custom_resources.changed.append(self._resources_changed)

    async def start(self) -> None:
        if self._elect:
            self._turns = asyncio.create_task(self._take_turns(), name="controllers")
            return
        self.manager = self._make(None)
        await self.manager.start()

    async def stop(self) -> None:
        if self._turns is not None:
            await cancel_and_wait(self._turns)
            self._turns = None
        elif self.manager is not None:
            await self.manager.stop()
        self.manager = None

    async def _take_turns(self) -> None:
        """Stand for election, work while elected, stand again."""
        identity = f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4()}"
        while True:
            client = self._client("kube-controller-manager")
            lease = LEASE if self._server.config.cluster_controllers else SERVER_LEASE
            elector = LeaderElector(client, *lease, identity, clock=self._server.clock)
            self.manager = self._make(elector)
            try:
                await self.manager.run()
            except LeadershipLost:
                log.info("Another server runs the controllers now")
            except Exception as error:
                log.exception("The controllers stopped, trying again", error)
            await self._server.clock.sleep(RETRY_SECONDS)

    def _resources_changed(self) -> None:
        if self.garbage_collector is not None:
            self.garbage_collector.resources_changed()

    def _client(self, name: str) -> Client:
        return self._server.client(user_agent=name)

    def _make(self, elector: LeaderElector | None) -> Manager:
        server, clock = self._server, self._server.clock
        manager = Manager(self._client("kube-controller-manager"), clock=clock, elector=elector)
        for part in (*self._of_the_server(manager), *self._of_the_cluster(manager)):
            manager.add_part(part)
            if isinstance(part, GarbageCollector):
                self.garbage_collector = part
        ordered = server.store if isinstance(server.store, PushStore) else None
        events = EventExpiry(manager.client, clock, ordered)
        rounds = [Periodic("event-expiry", events.sweep, expiry.SWEEP_SECONDS, clock)]
        if server.claims is not None:
            rounds.append(Periodic("claims", server.claims.sweep, claims.SWEEP_SECONDS, clock))
        for periodic in rounds:
            manager.add_component(periodic, needs_leader=True)
        return manager

    def _of_the_server(self, manager: Manager) -> Iterator[Reconciler]:
        server, informers = self._server, manager.informers
        client = self._client("kube-apiserver/customresourcedefinitions")
        yield CustomResourceDefinitionController(client, informers, server.registry, server.clock)
        definitions = [obj for obj in server.more_defaults if obj["kind"] == "CustomResourceDefinition"]
        if definitions:
            yield DefaultDefinitions(manager.client, informers, definitions)
        if server.registry.get(SCHEMAS) is not None:
            yield FlowSchemaStatus(self._client("kube-apiserver"), informers, server.clock)

    def _of_the_cluster(self, manager: Manager) -> list[cluster_controllers.Part]:
        server = self._server
        if not server.config.cluster_controllers:
            return []
        needs = Needs(
            client=self._client,
            informers=manager.informers,
            clock=server.clock,
            rights=server.authorizer,
            namespace_deletion_delay=server.config.namespace_deletion_delay,
            root_pem=server.credentials.root_pem,
            issuer=server.issuer,
            signer=server.pki.ca,
            collect_after=self.may_collect.wait,
        )
        wanted = ("*",) if server.config.namespace_defaults else ("*", f"-{NAMESPACE_DEFAULTS}")
        return cluster_controllers.made(needs, wanted)
