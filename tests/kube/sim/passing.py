"""Time in tests of simulated clusters: let everything happen that is due now, then move the clock on."""

from __future__ import annotations

import asyncio

from tests.kube.sim.harness import Harness

_QUIET_TURNS = 60


async def settled(cluster: Harness) -> None:
    """Until no controller has anything to do but wait for the clock."""
    quiet = 0
    while quiet < _QUIET_TURNS:
        await asyncio.sleep(0)
        quiet = quiet + 1 if all(c.queue.idle for c in cluster.manager.controllers.values()) else 0


async def after(cluster: Harness, seconds: float) -> None:
    await settled(cluster)
    await cluster.clock.advance(seconds)
    await settled(cluster)
