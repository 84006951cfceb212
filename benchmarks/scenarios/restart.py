"""A control plane that starts on a store with many propagated Deployments; its members have been there all the time.

Ready is when /readyz answers; it works again when a Deployment that is made then has arrived in both members; and what
is there is checked when the control plane is at rest. CPU is given at each of these moments, since it depends less on
what else the machine does.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from msgspec import structs

from benchmarks.objects import DEPLOYMENTS, deployment
from benchmarks.planes import (
    PROGRAM,
    Member,
    Plane,
    bare_members,
    connected,
    join_all,
    plane_config,
    started_members,
    started_plane,
    until_ready,
)
from benchmarks.processes import CONTROL_PLANE, MEMBERS, Meter, cpu_seconds, until_at_rest
from benchmarks.propagating import Arrivals, space
from benchmarks.scenario import STEPS, Figure, Measurement, Place, Sizes, Use
from benchmarks.servers import running

_MEMBERS = 2
_NEW = "zz-after-the-restart"
"""Behind all others by name: it must not owe its turn to that."""
_REST_SECONDS = 300.0
_SIZES = Sizes(quick=100, base=2_000)


def _at_most(goal: float) -> dict[int, float]:
    """The goal of the greatest size, which smaller ones reach, too."""
    return dict.fromkeys((first * step for first in (_SIZES.quick, _SIZES.base) for step in STEPS), goal)


class Restart:
    name = "restart"
    title = "The control plane starts again, with Deployments in two members"
    counted = "Deployments"
    sizes = _SIZES
    foreign = False
    figures = (
        Figure(name="API ready", unit="s", goals=_at_most(2)),
        Figure(name="a new Deployment is in both members", unit="s", goals=_at_most(3)),
        Figure(name="everything is checked", unit="s", goals=_at_most(30)),
        Figure(name="CPU until ready", unit="s"),
        Figure(name="CPU until a new Deployment is in both members", unit="s"),
        Figure(name="CPU until at rest", unit="s"),
        Figure(name="resident", unit="MiB"),
        Figure(name="peak", unit="MiB"),
        Figure(name="peak beside resident", unit="times", goals=_at_most(1.3)),
    )

    async def run(self, size: int, place: Place) -> Measurement:
        with started_members(place.folder, _MEMBERS) as others:
            async with bare_members(place.folder, _MEMBERS) as members:
                namespace = await _filled(place, members, size)
                arrivals = [Arrivals(member, DEPLOYMENTS, namespace) for member in members]
                await asyncio.gather(*(one.start() for one in arrivals))
                figures, uses = await _restarted(place, arrivals, namespace, others.pid)
                await asyncio.gather(*(one.stop() for one in arrivals))
        costs = {f"{name}, s": figures[name] for name in figures if name.startswith("CPU until")}
        return Measurement(figures=figures, processes=uses, costs=costs)


async def _filled(place: Place, members: Sequence[Member], size: int) -> str:
    """The namespace that the Deployments are in."""
    place.progress(f"propagating {size:,} Deployments")
    with started_plane(place) as process:
        async with connected(plane_config(place.folder)) as control:
            await join_all(control, members)
            await until_ready(control, [member.name for member in members])
            async with space(Plane(control, members, {}, ours=True), DEPLOYMENTS) as where:
                await where.make(size)
                await where.until_there(size)
            await until_at_rest([process.pid], seconds=_REST_SECONDS)
            return where.namespace


async def _restarted(
    place: Place, arrivals: Sequence[Arrivals], namespace: str, members: int
) -> tuple[dict[str, float], dict[str, Use]]:
    began = time.perf_counter()
    with running(PROGRAM, place.folder / "plane") as server:
        pid = server.process.pid
        ready = cpu_seconds(pid)
        meter = Meter({CONTROL_PLANE: pid, MEMBERS: members})
        async with connected(plane_config(place.folder)) as control:
            await control.create(DEPLOYMENTS, deployment(_NEW, namespace))
            await asyncio.gather(*(one.until_has(_NEW) for one in arrivals))
            works, busy = time.perf_counter() - began, cpu_seconds(pid)
            await until_at_rest([pid], seconds=_REST_SECONDS)
            checked, uses = time.perf_counter() - began, meter.use()
        control_plane = structs.replace(uses[CONTROL_PLANE], cpu_seconds=cpu_seconds(pid))
        figures = {
            "API ready": server.seconds_to_ready,
            "a new Deployment is in both members": works,
            "everything is checked": checked,
            "CPU until ready": ready,
            "CPU until a new Deployment is in both members": busy,
            "CPU until at rest": control_plane.cpu_seconds,
            "resident": control_plane.resident,
            "peak": control_plane.peak,
            "peak beside resident": control_plane.peak / control_plane.resident,
        }
    return figures, {**uses, CONTROL_PLANE: control_plane}
