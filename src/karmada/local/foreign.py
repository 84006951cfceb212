"""Processes that use the folder and were not started by local-up: `karmada`, and the simulator of `karmadactl sim`."""

from __future__ import annotations

import asyncio
import fcntl
import os
from pathlib import Path

from karmada.kube.sim.admin_client import AdminClient, AdminError
from karmada.local.folder import Folder, Refused, shown

_STOP_SECONDS = 30.0
_POLL_SECONDS = 0.02


def check_control_plane(folder: Folder) -> None:
    """Refused when another control plane uses the state."""
    lock = folder.database.with_name(f"{folder.database.name}.lock")
    if in_use(lock):
        pid = lock.read_text(errors="replace").strip() or "unknown"
        raise Refused(
            f"{shown(folder.root)} is in use by another control plane (process {pid}): stop that one, or "
            "choose another folder with --data-dir"
        )


async def stop_simulator(folder: Folder) -> bool:
    """Stop the simulated clusters, if they run, and return whether they did; their state is kept."""
    lock = folder.sim / "process.lock"
    if not in_use(lock):
        return False
    try:
        await asyncio.to_thread(AdminClient(folder.sim).request, "POST", "/stop")
    except AdminError as error:
        raise Refused(
            f"the simulated clusters in {shown(folder.sim)} run but do not accept requests: {error}"
        ) from error
    loop = asyncio.get_running_loop()
    end = loop.time() + _STOP_SECONDS
    while in_use(lock):
        if loop.time() > end:
            raise Refused(f"the simulated clusters in {shown(folder.sim)} do not stop")
        await asyncio.sleep(_POLL_SECONDS)
    return True


def in_use(lock: Path) -> bool:
    """Return whether a process holds the lock of this file."""
    try:
        descriptor = os.open(lock, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
