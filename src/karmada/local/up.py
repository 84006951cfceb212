"""Start a local environment, or extend a running one.

The programs start in parallel, with one exception: existing members start before the control plane, since its first
health check counts at once and would mark them all not ready. Then the members are created, joined and awaited. In the
foreground, local-up supervises the programs and stops all of them on an interrupt or when one exits by itself; a
control plane that served and then hung is started again. In the background it does so, too, but the others keep running
when a program exits for another reason.
Processes left over from a killed start are stopped first; the state is kept.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from karmada.kube.client.kubeconfig import KubeconfigError
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.errors import ApiError
from karmada.kube.runtime.waiting import cancel_and_wait
from karmada.kube.sim.admin_client import AdminClient
from karmada.local import etcd, foreign, programs
from karmada.local.attaching import Attached
from karmada.local.board import Board
from karmada.local.choosing import Requested, choose, pull_members, storage_of
from karmada.local.folder import ETCD, SQLITE, Choices, Folder, Refused, shown
from karmada.local.marks import Holder, Mark, Taken
from karmada.local.members import bring_members
from karmada.local.ports import free_port, is_free
from karmada.local.programs import KARMADA, SIM, Program, Running
from karmada.local.reaching import connected, way
from karmada.local.restarting import MOST, Restarts

SUPERVISOR = "local-up"
PLANE_ROW, SIM_ROW = "control plane", "simulator"
_OTHERS_SECONDS = 60.0
_PAUSE_SECONDS = 0.1
_QUICK = (
    "--cluster-status-update-frequency=5s",
    "--cluster-failure-threshold=10s",
    "--cluster-success-threshold=5s",
    "--feature-gates=MultiClusterService=true",
)
"""On one machine health checks are cheap and reliable: frequent checks and short thresholds react faster. What people
try out works; flags of theirs come after these and have precedence."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Outcome:
    choices: Choices
    already: bool = False
    """It was running already and is not stopped by us."""


class Interrupted(Exception):
    """Interrupted before everything was started."""


class Up:
    """One start."""

    def __init__(
        self,
        folder: Folder,
        board: Board,
        *,
        detach: bool = False,
        flags: Sequence[str] = (),
        attach: Sequence[Attached] = (),
    ) -> None:
        self._folder = folder
        self._board = board
        self._detach = detach
        self._flags = flags
        self._attach = attach
        self._supervisor = programs.mark_of(folder, SUPERVISOR)
        self._lock = -1
        self._running: dict[str, Running] = {}
        self._restarts = Restarts()
        self._stopping = asyncio.Event()
        self._died: asyncio.Future[Running] = asyncio.get_running_loop().create_future()

    # life cycle

    async def start(self, requested: Requested) -> Outcome:
        """Start it. After Refused or Interrupted nothing runs that did not before."""
        self._folder.make()
        try:
            self._lock = self._supervisor.take()
        except Taken:
            return await self._beside(requested)
        Mark.write(self._lock, Holder(os.getpid(), self._detach))
        try:
            if self._runs_detached():
                self._release()
                return await self._beside(requested)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                asyncio.get_running_loop().add_signal_handler(number, self._stopping.set)
            return Outcome(await self._watched(self._start(requested)))
        except BaseException:
            await self.stop()
            raise

    async def until_stopped(self) -> None:
        """Supervise until it is stopped; Refused when a program exits by itself."""
        try:
            await self._watched(_forever())
        except Interrupted:
            return

    async def stop(self) -> None:
        """Stop the programs in order."""
        for name in programs.stop_order(self._folder.choices()):
            if name in self._running:
                await self._running.pop(name).stop()
        self._release()

    def leave(self) -> None:
        """Leave the programs running."""
        for running in self._running.values():
            running.let_go()
        self._running.clear()
        self._release()

    def _release(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    async def _watched(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of the work, unless it is interrupted or a program exits before."""
        task, stopping = asyncio.create_task(work), asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait({task, stopping, self._died}, return_when=asyncio.FIRST_COMPLETED)
            if self._stopping.is_set():
                raise Interrupted
            if self._died.done():
                raise Refused(self._died.result().exit_report())
            return task.result()
        finally:
            await cancel_and_wait(task, stopping)

    # a start from scratch

    async def _start(self, requested: Requested) -> Choices:
        folder, board = self._folder, self._board
        if await programs.stop_found(folder, programs.stop_order(folder.choices())):
            board.say("stopped processes of an earlier start")
        foreign.check_control_plane(folder)
        if await foreign.stop_simulator(folder):
            board.say("stopped the simulated clusters that ran in the folder; they are started again")
        kept = folder.choices()
        choices, notes = choose(
            requested, kept, has_database=folder.database.exists(), is_free=is_free, free_port=free_port
        )
        if choices.storage == ETCD:
            etcd.check_installed()
        folder.keep(choices)
        folder.link_kubeconfigs()
        if kept is not None and choices.members < kept.members:
            notes.append(f"members beyond {choices.members} are kept; karmadactl unjoin and sim delete remove them")
        for note in notes:
            board.say(note)
        self._check_names(choices)
        plane = await self._bring_up(choices)
        choices = msgspec.structs.replace(choices, dashboard=plane.addresses.get("dashboard", ""))
        folder.keep(choices)
        return choices

    def _check_names(self, choices: Choices) -> None:
        for wanted in self._attach:
            if wanted.name in choices.member_names:
                raise Refused(f"--attach: {wanted.name} is the name of a simulated member; add =NAME")

    async def _bring_up(self, choices: Choices) -> Running:
        """Everything; the result is the control plane."""
        board = self._board
        board.doing(PLANE_ROW, "starts")
        board.doing(SIM_ROW, "starts")
        if choices.storage == ETCD:
            board.doing(ETCD, "starts")
            self._launch(etcd.program(self._folder, choices))
            board.done(ETCD, f"127.0.0.1:{choices.etcd_ports[0]}")
        simulator = self._launch(programs.module(SIM, "karmada.components.sim", "--data-dir", str(self._folder.sim)))
        if any((self._folder.sim / "clusters").glob("*/cluster.json")):
            await simulator.served()
        plane = self._launch(self._control_plane(choices))

        async def plane_serves() -> None:
            await plane.served()
            board.done(PLANE_ROW, way(self._folder.control_kubeconfig).server)

        async def simulator_serves() -> None:
            await simulator.served()
            board.done(SIM_ROW, "serves")

        await asyncio.gather(
            plane_serves(),
            simulator_serves(),
            bring_members(self._folder, choices, board, plane_serves, simulator_serves, self._attach),
        )
        return plane

    def _control_plane(self, choices: Choices) -> Program:
        storage = {SQLITE: "", ETCD: etcd.address(self._folder, choices)}.get(choices.storage, choices.storage)
        where = ["--data-dir", str(self._folder.root), "--port", str(choices.port)]
        return programs.module(
            KARMADA,
            "karmada.components.karmada",
            *where,
            *(["--storage", storage] if storage else []),
            *_QUICK,
            *_dashboard(choices),
            *self._flags,
        )

    def _launch(self, program: Program) -> Running:
        running = self._running[program.name] = programs.start(self._folder, program, detached=self._detach)

        def ended(_: object) -> None:
            if program.name not in self._running or self._died.done() or self._stopping.is_set():
                return
            if not self._start_again(running):
                self._died.set_result(running)

        running.ended.add_done_callback(ended)
        return running

    def _start_again(self, ended: Running) -> bool:
        """Start a control plane again that hung, after it had served once: until then a start waits for it."""
        if ended.program.name != KARMADA or not (ended.ready.done() or self._restarts.recent):
            return False
        if not self._restarts.take(ended.code):
            return False
        try:
            self._launch(ended.program)
        except Refused:
            return False
        self._board.say(
            f"{KARMADA} hung and was started again ({self._restarts.recent} of {MOST} times in ten minutes); "
            f"karmadactl quarantine list shows on what, and {shown(ended.log)} where"
        )
        return True

    # a running environment

    def _runs_detached(self) -> bool:
        choices, holders = self._folder.choices(), programs.found(self._folder)
        return choices is not None and all(
            name in holders and holders[name].detached for name in programs.names_of(choices)
        )

    async def _beside(self, requested: Requested) -> Outcome:
        """Add missing members to a running environment."""
        choices = await self._others()
        if requested.port not in (None, choices.port) or storage_of(requested) not in (None, choices.storage):
            raise Refused(
                f"it runs already in {shown(self._folder.root)} with another port or store; karmadactl local-down first"
            )
        if self._flags:
            raise Refused(f"it runs already in {shown(self._folder.root)}; karmadactl local-down first to change flags")
        members = choices.members if requested.members is None else requested.members
        pulling = pull_members(requested, choices.pull_members, members)
        wanted = msgspec.structs.replace(choices, members=members, pull_members=pulling)
        self._check_names(wanted)
        self._folder.keep(wanted)
        await bring_members(self._folder, wanted, self._board, _at_once, _at_once, self._attach)
        return Outcome(wanted, already=True)

    async def _others(self) -> Choices:
        """Return the settings of the running environment, once it serves."""
        loop = asyncio.get_running_loop()
        end = loop.time() + _OTHERS_SECONDS
        while loop.time() < end:
            choices = self._folder.choices()
            if choices is not None and await self._serves():
                return choices
            if self._supervisor.holder() is None and not self._runs_detached():
                raise Refused(f"what ran in {shown(self._folder.root)} has just ended; start it again")
            await asyncio.sleep(_PAUSE_SECONDS)
        raise Refused(
            f"another process starts it in {shown(self._folder.root)} and makes no progress; "
            "see karmadactl local-status; karmadactl local-down stops it"
        )

    async def _serves(self) -> bool:
        try:
            async with connected(way(self._folder.control_kubeconfig)) as control:
                await control.raw("GET", "/readyz")
        except (ApiError, ConnectionFailed, KubeconfigError, TimeoutError):
            return False
        return await asyncio.to_thread(AdminClient(self._folder.sim).running)


def _dashboard(choices: Choices) -> list[str]:
    """On this machine, for whoever has the kubeconfig: it may change what they may."""
    if not choices.dashboard_port:
        return []
    return ["--dashboard", "--dashboard-writes", "--dashboard-port", str(choices.dashboard_port)]


async def _forever() -> None:
    await asyncio.Event().wait()


async def _at_once() -> None:
    """Return whether it serves already."""
