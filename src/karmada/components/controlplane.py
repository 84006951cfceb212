"""The control plane in one process: the embedded API server with Karmada's kinds, and every controller on it.

Controllers work in-process: an informer and the server share the same objects. Controllers, scheduler and (if enabled)
descheduler each hold a lease while they run: of several such processes on one etcd, or beside a karmada-scheduler or
karmada-controller-manager of its own process, one works and the others stand by.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from karmada.apiserver.mount import until_served
from karmada.components import election
from karmada.components.assembly import Assembly
from karmada.components.election import Election, of_the_only_server
from karmada.components.estimates_page import estimates_page
from karmada.components.server import control_plane_server
from karmada.controllers.context import Context, Settings
from karmada.estimator.client.options import ClientOptions
from karmada.features import default_gates
from karmada.kube.objects.clock import Clock, RealClock
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.runtime.backlog import backlog
from karmada.kube.runtime.features import FeatureGates
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.manager import LeadershipLost, Manager
from karmada.kube.runtime.waiting import cancel_and_wait
from karmada.kube.server.config import ServerConfig
from karmada.metricsadapter import adapter as metrics_adapter
from karmada.scheduler.service.estimates import PATH
from karmada.search import service as search_service

if TYPE_CHECKING:
    from karmada.components.dashboard_service import DashboardService
    from karmada.components.workers import WorkerOptions, Workers
    from karmada.dashboard.server import Options as DashboardOptions
    from karmada.descheduler.controller import Options

_NAMESPACES = GroupResource("", "namespaces")
_RETRY_SECONDS = 1.0
_SEARCH = search_service.Options()
log = get_logger("control-plane")


class ControlPlane:
    def __init__(
        self,
        config: ServerConfig,
        *,
        settings: Settings | None = None,
        gates: FeatureGates | None = None,
        clock: Clock | None = None,
        allow_no_execute_taint_policy: bool = False,
        estimators: ClientOptions | None = None,
        descheduling: Options | None = None,
        in_process_estimator: bool = False,
        search: search_service.Options | None = _SEARCH,
        dashboard: DashboardOptions | None = None,
        workers: WorkerOptions | None = None,
    ) -> None:
        """`estimators`: how those of the clusters are called by the scheduler, if so. `search`, `dashboard`: if on.

        `workers`: the controllers run in processes of their own.
        """
        self.clock = clock or RealClock()
        self.settings = settings or Settings()
        self.gates = gates or default_gates()
        self._estimators = estimators
        self._descheduling = descheduling
        self._in_process = in_process_estimator
        self.server = control_plane_server(
            config,
            self.clock,
            self.gates,
            allow_no_execute_taint_policy=allow_no_execute_taint_policy,
            allow_insecure_members=self.settings.allow_insecure_members,
        )
        metrics_adapter.install(self.server, allow_insecure=self.settings.allow_insecure_members)
        self.search: search_service.Search | None = None
        if search is not None:
            insecure = self.settings.allow_insecure_members
            self.search = search_service.install(self.server, replace(search, allow_insecure=insecure))
        self.dashboard: DashboardService | None = None
        if dashboard is not None:
            from karmada.components.dashboard_service import DashboardService

            self.dashboard = DashboardService(self.server, dashboard)
        self.manager: Manager | None = None
        self.context: Context | None = None
        self._turns: asyncio.Task[None] | None = None
        self._collecting: asyncio.Task[None] | None = None
        self._worker_options = workers
        self.workers: Workers | None = None

    @property
    def url(self) -> str:
        return self.server.url

    @property
    def kubeconfig(self) -> Path:
        return self.server.kubeconfig

    async def start(self) -> None:
        """Until the API is served and, unless another process holds the leases, everything runs.

        The server's garbage collector reads all objects, so it begins after the controllers, and after what is new.
        """
        builtin = self.server.controllers
        if builtin is not None:
            builtin.may_collect.clear()
        try:
            await self._start()
        finally:
            if builtin is not None:
                self._collecting = asyncio.create_task(_collect(builtin.may_collect), name="garbage collector's turn")

    async def _start(self) -> None:
        await self.server.start()
        await until_served(self.server)
        if self.search is not None:
            await self.search.start()
        if self.dashboard is not None:
            await self.dashboard.start()
        manager = self.manager = self._assemble()
        alone = not self.server.config.shares_storage
        if alone:
            await manager.start()
            await manager.stood()
        self._turns = asyncio.create_task(self._take_turns(manager, started=alone), name="control plane")
        if self._worker_options is not None:
            from karmada.components.workers import Workers

            former = self._election(election.CONTROLLERS).identity
            self.workers = Workers(self.server, self._worker_options, former, self.clock)
            await self.workers.start()

    async def stop(self) -> None:
        if self._collecting is not None:
            await cancel_and_wait(self._collecting)
        if self.dashboard is not None:
            await self.dashboard.stop()
        if self.workers is not None:
            await self.workers.stop()
        if self._turns is not None:
            await cancel_and_wait(self._turns)
        elif self.manager is not None:
            await self.manager.stop()
        await self.server.stop()

    def _assemble(self) -> Manager:
        assembly = Assembly(
            lambda name: self.server.client(user_agent=name),
            settings=self.settings,
            gates=self.gates,
            clock=self.clock,
            follow_ups=self.server.follow_ups,
        )
        self.context = assembly.context
        if self._worker_options is None:
            assembly.add_controllers(self._election(election.CONTROLLERS))
        scheduler = assembly.add_scheduler(
            election=self._election(election.SCHEDULER), client=self._estimators, in_process=self._in_process
        )
        self.server.pipeline.paths[PATH] = estimates_page(scheduler)
        if self._descheduling is not None:
            lease = self._election(election.DESCHEDULER)
            assembly.add_descheduler(self._descheduling, lease, client=self._estimators, in_process=True)
        self.server.metrics.others = lambda: assembly.metrics.expose()[0]
        return assembly.manager

    def _election(self, lease: str) -> Election:
        if self.server.config.shares_storage:
            return Election(name=lease)
        system = self.server.cache.get(_NAMESPACES, "", "kube-system")
        assert system is not None, "a server that has started has its namespaces"
        return of_the_only_server(lease, system["metadata"]["uid"])

    async def _take_turns(self, manager: Manager, *, started: bool) -> None:
        """Work while elected; when a lease is lost, stop everything and stand again."""
        while True:
            try:
                await (manager.work() if started else manager.run())
            except LeadershipLost as error:
                log.info("Another process took over", err=str(error))
            except Exception as error:
                log.exception("The controllers stopped, trying again", error)
            await self.clock.sleep(_RETRY_SECONDS)
            manager, started = self._assemble(), False
            self.manager = manager


async def _collect(may_collect: asyncio.Event) -> None:
    await backlog().until_quiet()
    may_collect.set()
