"""The manager: puts a process together, starts it in order and takes it down cleanly.

Informers start first and must sync; then come the components that run on every replica, then, once this process leads
(or at once when no election was asked for), the controllers, in the order they were added, each lot after all of it has
been told what there is. Stopping goes the other way round. A manager that loses its lease stops what needs it and `run`
raises LeadershipLost: a process that led must not go on as if nothing had happened.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container
from typing import TYPE_CHECKING, Protocol, cast, runtime_checkable

from karmada.kube.client.client import Client
from karmada.kube.objects.clock import Clock, RealClock
from karmada.kube.objects.gvk import GVK, GVR
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Controller, Reconciler
from karmada.kube.runtime.health import Health
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.waiting import cancel_and_wait, with_timeout

if TYPE_CHECKING:
    from karmada.kube.runtime.leader import LeaderElector
    from karmada.kube.runtime.metrics import Metrics

log = get_logger("manager")


class LeadershipLost(Exception):
    """This process led and does so no more."""


class Component(Protocol):
    """Anything with a life: an event recorder, an HTTP server, a periodic job."""

    name: str

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


@runtime_checkable
class Listener(Protocol):
    """A component that hears of objects as a stranger (see Informer): told what there is before it starts."""

    def listen(self) -> None: ...


class Manager:
    def __init__(
        self,
        client: Client,
        *,
        clock: Clock | None = None,
        metrics: Metrics | None = None,
        health: Health | None = None,
        elector: LeaderElector | None = None,
        sync_timeout: float = 120.0,
        transform: Callable[[Obj], Obj] | None = None,
        on_demand: Container[GVR | GVK] = (),
    ) -> None:
        """`transform` and `on_demand` tell what the informers keep of objects (see Informers)."""
        self.client = client
        self.clock = clock or RealClock()
        self.informers = Informers(client, clock=self.clock, transform=transform, on_demand=on_demand)
        self.health = health or Health()
        self.controllers: dict[str, Controller] = {}
        self._metrics = metrics
        self._elector = elector
        self._sync_timeout = sync_timeout
        self._everywhere: list[Component] = []
        self._leading: list[Component] = []
        self._started: list[Component] = []
        self._leader_task: asyncio.Task[None] | None = None
        self._over = asyncio.Event()
        self._failure: Exception | None = None
        self.health.add_ready("informer-sync", lambda: self.informers.synced)
        self.health.add_live("controllers", lambda: all(c.healthy for c in self.controllers.values()))

    # putting together

    def add(self, reconciler: Reconciler, *, workers: int | None = None) -> Controller:
        """Run a reconciler; on the leader only, unless it says `needs_leader = False`."""
        if reconciler.name in self.controllers:
            raise ValueError(f"a controller named {reconciler.name!r} was already added")
        queue: str = getattr(reconciler, "queue_name", "")
        metrics = self._metrics.controller(reconciler.name, queue) if self._metrics else None
        controller = Controller(reconciler, self.informers, workers=workers, clock=self.clock, metrics=metrics)
        self.controllers[reconciler.name] = controller
        self.add_component(controller, needs_leader=controller.needs_leader)
        return controller

    def add_part(self, part: Reconciler | Component) -> None:
        """Run a reconciler, or on the leader a component."""
        if hasattr(part, "reconcile"):
            self.add(cast("Reconciler", part))
        else:
            self.add_component(part, needs_leader=True)

    def add_component(self, component: Component, *, needs_leader: bool = False) -> None:
        (self._leading if needs_leader else self._everywhere).append(component)

    # life

    async def start(self) -> None:
        """Returns when everything that runs without a lease runs; with a lease the rest follows when it is won."""
        self.informers.start()
        await self._sync()
        await self._start_all(self._everywhere)
        if self._elector is None:
            await self._start_all(self._leading)
        else:
            self._leader_task = asyncio.create_task(self._lead(self._elector), name="manager leader")

    async def _sync(self) -> None:
        try:
            await with_timeout(self.clock, self.informers.wait_synced(), self._sync_timeout)
        except TimeoutError:
            missing = ", ".join(
                f"{i.gvr.group_resource if isinstance(i.gvr, GVR) else i.gvr} ({i.last_error or 'no answer yet'})"
                for i in self.informers.unsynced()
            )
            await self.informers.stop()
            raise TimeoutError(f"no sync within {self._sync_timeout:g}s: {missing}") from None

    async def _start_all(self, components: list[Component]) -> None:
        """What there is, all listeners are told in one go: every look at an object may cost its parsing."""
        for component in components:
            if isinstance(component, Listener):
                component.listen()
        await self.informers.introduce()
        for component in components:
            self._started.append(component)
            await component.start()
            log.v(1).info("Started", component=component.name)

    async def _lead(self, elector: LeaderElector) -> None:
        try:
            await elector.acquire()
            await self._work_while(elector)
            self._fail(LeadershipLost(f"lost the lease {elector.name}"))
        except Exception as error:
            log.exception("Leading failed", error)
            self._fail(error)

    async def _work_while(self, elector: LeaderElector) -> None:
        """Start what needs the lease while it is being renewed; returns when it is lost."""
        holding = asyncio.create_task(elector.hold(), name="manager lease")
        starting = asyncio.create_task(self._start_all(self._leading), name="manager start")
        try:
            await asyncio.wait({holding, starting}, return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                starting.result()
                await holding
        finally:
            await cancel_and_wait(holding, starting)

    def _fail(self, error: Exception) -> None:
        self._failure = error
        self._over.set()

    async def stop(self) -> None:
        """Components in reverse order, then the lease, then the informers."""
        self._over.set()
        if self._leader_task is not None:
            await cancel_and_wait(self._leader_task)
            self._leader_task = None
        lost = isinstance(self._failure, LeadershipLost)
        for controller in self.controllers.values():
            controller.queue.shut_down()  # none takes a new key while the others stop
        while self._started:
            component = self._started.pop()
            try:
                if lost and isinstance(component, Controller):
                    await component.stop(grace=0)  # somebody else may lead already
                else:
                    await component.stop()
            except Exception as error:
                log.exception("A component did not stop cleanly", error, component=component.name)
        if self._elector is not None:
            await self._elector.release()
        await self.informers.stop()

    def finish(self) -> None:
        """Make `run` return."""
        self._over.set()

    async def run(self) -> None:
        """Start, work until `finish` (or a cancellation), stop; raises what made the work impossible."""
        try:
            await self.start()
            await self._over.wait()
        finally:
            await self.stop()
        if self._failure is not None:
            raise self._failure

    async def __aenter__(self) -> Manager:
        try:
            await self.start()
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()
