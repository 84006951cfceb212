"""Stop a local environment, in whatever state it is."""

from __future__ import annotations

import asyncio

from karmada.local import foreign, programs
from karmada.local.folder import Folder
from karmada.local.status import look
from karmada.local.up import SUPERVISOR

_SUPERVISED_SECONDS = 60.0


async def down(folder: Folder) -> list[str]:
    """Stop the programs and return their names. A supervisor is stopped first; it stops them in order."""
    if not folder.run.exists():
        return ["simulated clusters"] if await foreign.stop_simulator(folder) else []
    ran = list(programs.found(folder))
    await programs.end(programs.mark_of(folder, SUPERVISOR), _SUPERVISED_SECONDS)
    await programs.stop_found(folder, programs.stop_order(folder.choices()))
    if await foreign.stop_simulator(folder):
        ran.append("simulated clusters")
    return ran


async def attached_names(folder: Folder) -> list[str]:
    """Members that are not simulated: propagated resources stay in them."""
    simulated = {path.name for path in (folder.sim / "clusters").glob("*")}
    return [member.name for member in (await look(folder)).clusters if member.name not in simulated]


async def purge(folder: Folder) -> None:
    foreign.check_control_plane(folder)
    await asyncio.to_thread(folder.purge)
