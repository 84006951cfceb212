"""What is common to all that is measured of many objects: the seconds until the last member has the last of them.

A Work is one object on its way to one member. CPU is counted until the control plane is at rest again, since what comes
after the arrival (conditions, aggregated status, events) is part of the cost; what it uses at rest anyway is looked at
before. Its writes are counted for the same time, those of events apart. What the members use is reported too: they do
the same in every run, so it shows how fast the machine was just then.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from contextlib import nullcontext
from typing import ClassVar

from benchmarks.objects import DEPLOYMENTS
from benchmarks.planes import plane
from benchmarks.processes import CLIENT, MEMBERS, Meter, at_rest, until_at_rest
from benchmarks.propagating import Space, space
from benchmarks.scenario import Figure, Measurement, Place, Sizes
from benchmarks.writes import written
from karmada.kube.objects.gvk import GVR

_LOOK_SECONDS = 2.0
_REST_SECONDS = 60.0


def throughput_figures(
    rate: dict[int, float] | None = None,
    memory: dict[int, float] | None = None,
    cpu: dict[int, float] | None = None,
    writes: dict[int, float] | None = None,
) -> tuple[Figure, ...]:
    """With the goals of the rate, the memory, the CPU for a Work and the writes of an object on its way."""
    return (
        Figure(name="Works", unit="/s", better="higher", goals=rate or {}),
        Figure(name="all requested", unit="s"),
        Figure(name="all done", unit="s"),
        Figure(name="control plane, CPU per Work", unit="ms", goals=cpu or {}),
        Figure(name="members, CPU per Work", unit="ms"),
        Figure(name="control plane, resident", unit="MiB", goals=memory or {}),
        Figure(name="writes per object", goals=writes or {}),
        Figure(name="events per object", better="higher"),
    )


class Throughput(ABC):
    name: ClassVar[str]
    title: ClassVar[str]
    counted: ClassVar[str] = "Deployments"
    sizes: ClassVar[Sizes] = Sizes(quick=50, base=100)
    figures: ClassVar[tuple[Figure, ...]] = throughput_figures()
    foreign: ClassVar[bool] = True
    kind: ClassVar[GVR] = DEPLOYMENTS
    overridden: ClassVar[bool] = False

    def shape(self, size: int) -> tuple[int, int]:
        """Objects and members of a size."""
        return size, 2

    async def prepare(self, space: Space, objects: int) -> None:  # noqa: B027 - for most, nothing
        """What must be there before the clock starts."""

    @abstractmethod
    async def request(self, space: Space, objects: int) -> None:
        """Make all requests to the control plane."""

    @abstractmethod
    async def wait(self, space: Space, objects: int) -> None:
        """Until it is so in all members."""

    async def check(self, space: Space) -> None:  # noqa: B027 - for most, the arrival says it all
        """That the members have what they should have."""

    async def run(self, size: int, place: Place) -> Measurement:
        return await self.load(size, place)

    async def load(self, size: int, place: Place) -> Measurement:
        objects, members = self.shape(size)
        async with plane(place, members) as found, space(found, self.kind, overridden=self.overridden) as where:
            await self.prepare(where, objects)
            return await self.measure(where, objects, members, place)

    async def measure(self, space: Space, objects: int, members: int, place: Place) -> Measurement:
        pids = space.plane.pids
        control = {name: pid for name, pid in pids.items() if name not in (CLIENT, MEMBERS)}
        if space.plane.ours:
            await until_at_rest(control.values(), seconds=_REST_SECONDS)
        always = 0.0 if space.plane.ours else await at_rest(control.values(), _LOOK_SECONDS)
        before = await written(space.plane.control)
        meter, began = Meter(pids), time.perf_counter()
        with place.looking_at(control) if space.plane.ours else nullcontext():
            await self.request(space, objects)
            requested = time.perf_counter() - began
            await self.wait(space, objects)
        seconds = time.perf_counter() - began
        if control:
            await until_at_rest(control.values(), above=always, seconds=_REST_SECONDS)
        uses = meter.use()
        wrote = (await written(space.plane.control)).since(before)
        await self.check(space)
        figures = {"Works": objects * members / seconds, "all requested": requested, "all done": seconds}
        if control:
            busy = sum(uses[name].cpu_seconds for name in control)
            figures["control plane, CPU per Work"] = busy / (objects * members) * 1e3
            figures["control plane, resident"] = sum(uses[name].resident for name in control)
            figures["writes per object"] = (wrote.revisions - wrote.events) / objects
            figures["events per object"] = wrote.events / objects
        if MEMBERS in uses:
            figures["members, CPU per Work"] = uses[MEMBERS].cpu_seconds / (objects * members) * 1e3
        costs = {f"CPU of {name}, s": uses[name].cpu_seconds for name in pids if name != CLIENT}
        return Measurement(figures=figures, processes=uses, costs={"until all done, s": seconds, **costs})
