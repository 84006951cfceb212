"""One Deployment at a time, beside so many that are there already: from the request to the object in all members."""

from __future__ import annotations

import asyncio
import time

from benchmarks.objects import DEPLOYMENTS, deployment
from benchmarks.planes import plane
from benchmarks.processes import CLIENT, Meter
from benchmarks.propagating import Space, space
from benchmarks.scenario import Figure, Measurement, Place, Sizes
from benchmarks.timings import percentile

_SINGLE = 50
_PAUSE = 0.05
"""Between two: the first must be done with, its status included."""


class Latency:
    name = "propagation.latency"
    title = "One Deployment to two members"
    counted = "Deployments there already"
    sizes = Sizes(quick=100, base=100)
    figures = (
        Figure(name="half of them within", unit="ms", goals=dict.fromkeys((100, 300, 1_000), 25)),
        Figure(name="99 of 100 within", unit="ms"),
        Figure(name="slowest", unit="ms"),
    )
    foreign = True

    async def run(self, size: int, place: Place) -> Measurement:
        async with plane(place, 2) as found, space(found, DEPLOYMENTS) as where:
            await where.make(size)
            await where.until_there(size)
            await asyncio.sleep(1)
            meter = Meter(found.pids)
            taken = [await _single(where, number) for number in range(_SINGLE)]
            uses = meter.use()
        middle = percentile(taken, 0.5)
        figures = {"half of them within": middle, "99 of 100 within": percentile(taken, 0.99), "slowest": max(taken)}
        costs = {f"CPU of {name}, s": use.cpu_seconds for name, use in uses.items() if name != CLIENT}
        return Measurement(figures=figures, processes=uses, costs={"half of them within, ms": middle, **costs})


async def _single(where: Space, number: int) -> float:
    name = f"single-{number}"
    began = time.perf_counter()
    await where.plane.control.create(where.kind, deployment(name, where.namespace))
    await where.until_has(name)
    taken = time.perf_counter() - began
    await asyncio.sleep(_PAUSE)
    return taken * 1e3
