"""The manager: puts a process together, starts it in order and takes it down cleanly.

Informers start first and must sync; then come the components that run on every replica, then the controllers, in the
order they were added. Controllers may be in teams, each with a lease: a team starts once this process holds its lease.
All controllers of a team get the existing objects in one pass, while they work on what is new; teams whose leases were
free at the start begin together. A team may also share its work with those of other processes (see membership): then
it holds a Lease of its own. Stopping goes the other way round. A manager that loses one of its leases stops
everything and `run` raises LeadershipLost: a process that led must not go on as if nothing had happened.
"""

from __future__ import annotations

import asyncio
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn, Protocol

from karmada.kube.client.client import Client
from karmada.kube.objects.clock import Clock, RealClock
from karmada.kube.objects.gvk import GVK, GVR
from karmada.kube.objects.shapes import WHOLE, Shape
from karmada.kube.runtime.back_off import BackOff
from karmada.kube.runtime.controller import Controller, Reconciler
from karmada.kube.runtime.health import Health
from karmada.kube.runtime.informers import Informers, Limit
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.owned_component import OwnedComponent
from karmada.kube.runtime.waiting import cancel_and_wait, with_timeout

if TYPE_CHECKING:
    from karmada.kube.runtime.membership import Membership
    from karmada.kube.runtime.metrics import Metrics

log = get_logger("manager")


class LeadershipLost(Exception):
    """The process led and does so no more."""


class Component(Protocol):
    """Anything that starts and stops: an event recorder, an HTTP server, a periodic job."""

    name: str

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


class Elector(Protocol):
    """A candidate for a lease; of all candidates at most one leads (see leader.py)."""

    name: str

    @property
    def leading(self) -> bool: ...

    async def try_acquire(self) -> bool: ...

    async def acquire(self) -> None: ...

    async def hold(self) -> None: ...

    async def release(self) -> None: ...


@dataclass(slots=True, eq=False)
class Team:
    """Components that run while this process holds a lease; without an elector, always."""

    elector: Elector | None = None
    components: list[Component] = field(default_factory=list)
    sharing: Membership | None = None
    """Membership by which its controllers share their work with other replicas."""


class Manager:
    def __init__(
        self,
        client: Client,
        *,
        clock: Clock | None = None,
        metrics: Metrics | None = None,
        health: Health | None = None,
        elector: Elector | None = None,
        back_off: BackOff | None = None,
        sync_timeout: float = 120.0,
        shape: Shape = WHOLE,
        shapes: Mapping[GVR | GVK, Shape] | None = None,
        limits: Mapping[GVR | GVK, Limit] | None = None,
        optional: Container[GVR | GVK] = (),
    ) -> None:
        """`shape`, `shapes`, `limits` and `optional` say what the informers keep (see Informers)."""
        self.client = client
        self.clock = clock or RealClock()
        self.informers = Informers(
            client, clock=self.clock, shape=shape, shapes=shapes, limits=limits, optional=optional
        )
        self.health = health or Health()
        self.controllers: dict[str, Controller] = {}
        self._metrics = metrics
        self._back_off = back_off
        self._sync_timeout = sync_timeout
        self._everywhere: list[Component] = []
        self._teams = [Team(elector)]
        self._started: list[Component] = []
        self._leader_task: asyncio.Task[None] | None = None
        self._stood = asyncio.Event()
        self._over = asyncio.Event()
        self._failure: Exception | None = None
        self.health.add_ready("informer-sync", lambda: self.informers.synced)
        self.health.add_live("controllers", lambda: all(c.healthy for c in self.controllers.values()))

    # assembly

    def team(self, elector: Elector) -> Team:
        """Return a team with a lease of its own, for `add` and its like; otherwise they add to the first team."""
        self._teams.append(Team(elector))
        return self._teams[-1]

    def sharing_team(self, elector: Elector, membership: Membership) -> Team:
        """Return a team that runs on every member of a group at the same time, each with its part of the work."""
        self._teams.append(Team(elector, sharing=membership))
        return self._teams[-1]

    def add(self, reconciler: Reconciler, *, workers: int | None = None, team: Team | None = None) -> Controller:
        """Run a reconciler; on the leader only, unless it says `needs_leader = False`."""
        if reconciler.name in self.controllers:
            raise ValueError(f"a controller named {reconciler.name!r} was already added")
        metrics = self._metrics.controller(reconciler.name, reconciler.options.queue_name) if self._metrics else None
        controller = Controller(
            reconciler,
            self.informers,
            workers=workers,
            clock=self.clock,
            metrics=metrics,
            back_off=self._back_off,
            sharing=team.sharing if team is not None else None,
        )
        self.controllers[reconciler.name] = controller
        self.add_component(controller, needs_leader=controller.needs_leader, team=team)
        return controller

    def add_part(self, part: Reconciler | Component, *, team: Team | None = None) -> None:
        """Run a reconciler, or on the leader a component."""
        if isinstance(part, Reconciler):
            self.add(part, team=team)
        elif team is not None and team.sharing is not None:
            self.add_component(OwnedComponent(part, team.sharing), needs_leader=True, team=team)
        else:
            self.add_component(part, needs_leader=True, team=team)

    def add_component(self, component: Component, *, needs_leader: bool = False, team: Team | None = None) -> None:
        if needs_leader:
            (team or self._teams[0]).components.append(component)
        else:
            self._everywhere.append(component)

    @property
    def components(self) -> list[Component]:
        """Return everything that was added, whether it runs or stands by."""
        return [*self._everywhere, *(component for team in self._teams for component in team.components)]

    # life

    async def start(self) -> None:
        """Wait until everything that needs no lease runs; the rest follows when its lease is won."""
        self.informers.start()
        await self._sync()
        await self._start_all(self._everywhere)
        await self._start_teams([team for team in self._teams if team.elector is None])
        candidates = [team for team in self._teams if team.elector is not None and team.components]
        if candidates:
            self._leader_task = asyncio.create_task(self._lead(candidates), name="manager leader")

    async def stood(self) -> None:
        """Until the first attempt at every lease was made and the teams that won theirs run; raises what failed."""
        if self._leader_task is None:
            return
        over = asyncio.create_task(self._over.wait())
        stood = asyncio.create_task(self._stood.wait())
        try:
            await asyncio.wait({over, stood}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await cancel_and_wait(over, stood)
        if self._failure is not None:
            raise self._failure

    async def _sync(self) -> None:
        """TimeoutError when nothing was listed for that long: the whole takes as long as there are objects."""
        stored, before = 0, -1
        while stored != before:
            try:
                await with_timeout(self.clock, self.informers.wait_synced(), self._sync_timeout)
                return
            except TimeoutError:
                before, stored = stored, sum(map(len, self.informers.unsynced()))
        await self._not_synced()

    async def _not_synced(self) -> NoReturn:
        missing = ", ".join(
            f"{i.gvr.group_resource if isinstance(i.gvr, GVR) else i.gvr} ({i.last_error or 'no response yet'})"
            for i in self.informers.unsynced()
        )
        await self.informers.stop()
        raise TimeoutError(f"no sync within {self._sync_timeout:g}s: {missing}")

    async def _start_all(self, components: list[Component]) -> None:
        """Let controllers work on what is new while existing objects are delivered.

        These are delivered to all subscribers together: every read of an object may cost its parsing.
        """
        for component in components:
            if isinstance(component, Controller):
                component.subscribe()
        for component in components:
            self._started.append(component)
            await component.start()
            log.v(1).info("Started", component=component.name)
        await self.informers.deliver_existing()

    async def _start_teams(self, teams: Iterable[Team]) -> None:
        await self._start_all([component for team in teams for component in team.components])

    async def _lead(self, candidates: list[Team]) -> None:
        """Work in the teams whose leases are held, wait for the other leases; ends with the first that is lost."""
        working: list[asyncio.Task[None]] = []
        try:
            won = await asyncio.gather(*(_elector(team).try_acquire() for team in candidates))
            first = [team for team, held in zip(candidates, won, strict=True) if held]
            working.append(asyncio.create_task(self._work(first, self._stood), name="manager lease"))
            others = (team for team in candidates if team not in first)
            working.extend(asyncio.create_task(self._stand(team), name="manager candidate") for team in others)
            await asyncio.gather(*working)
        except Exception as error:
            if not isinstance(error, LeadershipLost):
                log.exception("Leading failed", error)
            self._fail(error)
        finally:
            await cancel_and_wait(*working)

    async def _stand(self, team: Team) -> None:
        await _elector(team).acquire()
        await self._work([team], asyncio.Event())

    async def _work(self, teams: list[Team], started: asyncio.Event) -> None:
        """Start teams while their leases are being renewed; LeadershipLost when one is lost."""
        holding = [asyncio.create_task(_elector(team).hold(), name="manager lease") for team in teams]
        starting = asyncio.create_task(self._start_teams(teams), name="manager start")
        try:
            await asyncio.wait({*holding, starting}, return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                starting.result()
                started.set()
                if not holding:
                    return
                ended, _ = await asyncio.wait(holding, return_when=asyncio.FIRST_COMPLETED)
                for task in ended:
                    task.result()
        finally:
            await cancel_and_wait(*holding, starting)
        lost = ", ".join(elector.name for team in teams if not (elector := _elector(team)).leading)
        raise LeadershipLost(f"lost the lease {lost}")

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
                    await component.stop(grace=0)  # another process may lead already
                else:
                    await component.stop()
            except Exception as error:
                log.exception("A component did not stop cleanly", error, component=component.name)
        for team in self._teams:
            if team.elector is not None:
                await team.elector.release()
        await self.informers.stop()

    def finish(self) -> None:
        """Make `run` return."""
        self._over.set()

    async def run(self) -> None:
        """Start, then `work`."""
        try:
            await self.start()
        except BaseException:
            await self.stop()
            raise
        await self.work()

    async def work(self) -> None:
        """After `start`: until `finish` (or a cancellation), then stop; raises what made the work impossible."""
        try:
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


def _elector(team: Team) -> Elector:
    assert team.elector is not None
    return team.elector
