"""Clients of a cluster that has faults, and its clock."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from karmada.kube.client.client import Client
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.gvrs import NODES
from karmada.kube.sim.faults import kinds
from tests.kube.sim.whole_cluster import Whole
from tests.support.eventually import eventually

A_MOMENT = 0.15
"""Long enough that an answer would have come."""


def config_map(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default"}}


async def reaches(client: Client) -> bool:
    try:
        await client.get(NODES, "small-node-1")
    except ConnectionFailed:
        return False
    return True


async def eventually_reaches(client: Client, wanted: bool) -> None:
    async def as_wanted() -> bool:
        return await reaches(client) == wanted

    await eventually(as_wanted)


async def hangs(call: Awaitable[Any]) -> asyncio.Future[Any]:
    """The call as a task that is still without an answer."""
    task = asyncio.ensure_future(call)
    done, _ = await asyncio.wait({task}, timeout=A_MOMENT)
    assert not done, f"answered: {task.result()}"
    return task


async def jump(whole: Whole, seconds: float) -> None:
    await whole.sim.faults.inject(kinds.Clock(skip=seconds))
