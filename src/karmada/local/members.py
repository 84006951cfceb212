"""Create missing members of a local environment, join them, and wait until they are Ready.

Members are handled in parallel: each joins as soon as it and the control plane serve, and a failed one does not block
the others. The work is idempotent, so it may be interrupted anywhere.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from karmada.api.cluster import Cluster
from karmada.joining.join import JoinError
from karmada.joining.waiting import wait_for
from karmada.kube.client.client import Client
from karmada.kube.client.kubeconfig import KubeconfigError
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.clock import SYSTEM
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.meta import get_condition
from karmada.kube.objects.types import Obj
from karmada.kube.sim.admin_client import AdminClient, AdminError
from karmada.local.attaching import Attached
from karmada.local.board import Board
from karmada.local.folder import Choices, Folder
from karmada.local.joined import ensure_joined
from karmada.local.reaching import connected, way
from karmada.local.registered import ensure_registered

READY_SECONDS = 40.0
_VERSION = "1.36"
Arrival = Callable[[], Awaitable[None]]


async def bring_members(
    folder: Folder,
    choices: Choices,
    board: Board,
    plane: Arrival,
    simulator: Arrival,
    attach: Sequence[Attached] = (),
) -> None:
    """Return when every member is Ready or has failed. `plane` and `simulator` return when these serve."""
    async with _alone(folder.run / "members.lock"):
        bringing = _Bringing(folder, board, plane, simulator)
        ways = [bringing.simulated(name, pull=choices.is_pull(name)) for name in choices.member_names]
        ways += [bringing.attached(one) for one in attach]
        await asyncio.gather(*ways)


@asynccontextmanager
async def _alone(path: Path) -> AsyncIterator[None]:
    """Serialise concurrent starts."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                await asyncio.sleep(0.1)
        yield
    finally:
        os.close(descriptor)


class _Bringing:
    def __init__(self, folder: Folder, board: Board, plane: Arrival, simulator: Arrival) -> None:
        self._folder, self._board = folder, board
        self._plane, self._simulator = plane, simulator
        self._admin = AdminClient(folder.sim)
        self._listed: asyncio.Task[dict[str, Any]] | None = None

    async def simulated(self, name: str, *, pull: bool) -> None:
        self._board.doing(name, "waiting for the simulator")

        async def bring() -> None:
            await self._simulator()
            await self._exists(name, run_processes=pull)
            await self._join(name, self._folder.members_kubeconfig, name, renew=True, pull=pull)

        await self._report_failure(name, bring)

    async def attached(self, wanted: Attached) -> None:
        async def bring() -> None:
            await self._join(wanted.name, wanted.kubeconfig, wanted.context, renew=False)

        await self._report_failure(wanted.name, bring)

    async def _report_failure(self, name: str, bring: Callable[[], Awaitable[None]]) -> None:
        try:
            await bring()
        except (AdminError, ApiError, ConnectionFailed, JoinError, KubeconfigError, TimeoutError) as error:
            self._board.fail(name, str(error) or type(error).__name__)

    async def _exists(self, name: str, *, run_processes: bool) -> None:
        if self._listed is None:
            self._listed = asyncio.create_task(self._list())
        known = (await self._listed).get(name)
        if known is None:
            self._board.doing(name, "is made")
            order = {"profile": {"name": name, "version": _VERSION}, "run_processes": run_processes}
            await asyncio.to_thread(self._admin.request, "POST", "/clusters", order)
        elif "error" in known:
            raise AdminError(f"does not start: {known['error']} (karmadactl sim delete {name} removes it)")
        elif run_processes and known.get("processes") is None:
            raise AdminError(
                f"runs no processes, and so no agent; karmadactl unjoin and sim delete {name}, then start again"
            )

    async def _list(self) -> dict[str, Any]:
        return {
            cluster["name"]: cluster for cluster in await asyncio.to_thread(self._admin.request, "GET", "/clusters")
        }

    async def _join(self, name: str, kubeconfig: Path, context: str, *, renew: bool, pull: bool = False) -> None:
        """Join the cluster, or in mode `pull` register it, and wait until it is Ready."""
        self._board.doing(name, "waiting for the control plane")
        await self._plane()
        self._board.doing(name, "registers" if pull else "joins")
        control_way, config = way(self._folder.control_kubeconfig), way(kubeconfig, context)
        async with connected(control_way) as control:
            async with connected(config) as member:
                if pull:
                    await ensure_registered(control, member, control_way, config, name)
                else:
                    await ensure_joined(control, member, config, name, renew=renew)
            self._board.doing(name, "checking")
            cluster = await _ready(control, name)
        self._board.done(name, summary(cluster) + (", mode Pull" if pull else ""))


async def _ready(control: Client, name: str) -> Obj:
    """Return the Cluster once it is Ready; TimeoutError has its condition."""
    last: Obj = {}

    def look(cluster: Obj | None) -> Obj | None:
        nonlocal last
        last = ready_condition(cluster or {})
        return cluster if last.get("status") == "True" else None

    try:
        return await wait_for(control, Cluster.gvr, name, "", look, clock=SYSTEM, seconds=READY_SECONDS)
    except TimeoutError:
        why = f"{last.get('reason')}: {last.get('message')}" if last else "its health is not known yet"
        raise TimeoutError(f"joined, but is not Ready after {READY_SECONDS:g} s ({why})") from None


def ready_condition(cluster: Obj) -> Obj:
    return get_condition((cluster.get("status") or {}).get("conditions"), "Ready") or {}


def summary(cluster: Obj) -> str:
    """Return the row of a Ready member."""
    status = cluster.get("status") or {}
    nodes = (status.get("nodeSummary") or {}).get("totalNum")
    parts = ["Ready", status.get("kubernetesVersion"), f"{nodes} nodes" if nodes else ""]
    return ", ".join(part for part in parts if part)
