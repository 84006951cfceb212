"""The control plane on a store with many Works: bytes of the file, memory of the process, and whether it still works.

One Deployment is propagated to all members by a control plane, which is stopped; then its template, binding and Works
are multiplied in the store (see benchmarks.multiplied), under other names and identities. The control plane starts on
that, with all its controllers. The clusters are in mode Pull by then: their agents, which are not part of this, would
apply the Works and keep what is in the members. What that takes is in `clusters.wide` (memory of a Work): there, all of
it is in one process. At last a cluster in mode Push joins and gets a Deployment.
"""

from __future__ import annotations

import time
from contextlib import AsyncExitStack

from benchmarks import objects
from benchmarks.multiplied import Original, database, multiply
from benchmarks.objects import DEPLOYMENTS
from benchmarks.planes import (
    Plane,
    bare_members,
    connected,
    join_all,
    plane_config,
    started_members,
    started_plane,
    until_ready,
)
from benchmarks.processes import CONTROL_PLANE, Meter, cpu_seconds, until_at_rest
from benchmarks.propagating import space
from benchmarks.scenario import Figure, Measurement, Place, Sizes
from karmada.kube.client.client import Client

_MOST_CLUSTERS = 100
_REST_SECONDS = 3_600.0
_MIB, _GIB = 1 << 20, 1 << 30
_MILLION = 1_000_000
_NEW = "after-the-start"
_NO_AGENTS = ("--cluster-monitor-grace-period=24h", "--cluster-startup-grace-period=24h")
"""Nobody renews the leases of the clusters, which are to count as alive."""


class Works:
    name = "works"
    title = "The control plane starts on a store with many Works, of 100 clusters"
    counted = "Works"
    sizes = Sizes(quick=1_000, base=10_000)
    foreign = False
    figures = (
        Figure(name="file", unit="GiB", goals={_MILLION: 1.5e9 / _GIB}),
        Figure(name="file, each Work", unit="bytes"),
        Figure(name="resident", unit="MiB", goals={_MILLION: 2.5e9 / _MIB}),
        Figure(name="peak", unit="MiB"),
        Figure(name="resident, each Work", unit="bytes"),
        Figure(name="controllers started", unit="s"),
        Figure(name="CPU until controllers started", unit="s"),
        Figure(name="everything is checked", unit="s"),
        Figure(name="CPU until everything is checked", unit="s"),
        Figure(name="a new Deployment is in its member", unit="s"),
    )

    async def run(self, size: int, place: Place) -> Measurement:
        clusters = max(1, min(_MOST_CLUSTERS, size // 100))
        with started_members(place.folder, clusters + 1):
            original = await _propagated(place, clusters)
            place.progress(f"writing {size:,} Works")
            names = [objects.numbered(number) for number in range(1, size // clusters)]
            await multiply(place.folder / "plane", original, names, pull=True)
            figures, measurement = await _started(place, clusters)
        stored = database(place.folder / "plane").stat().st_size
        figures |= {
            "file": stored / _GIB,
            "file, each Work": stored / size,
            "resident, each Work": figures["resident"] * _MIB / size,
        }
        measurement.costs = {
            "resident, MiB": figures["resident"],
            "file, MiB": stored / _MIB,
            "CPU until controllers started, s": figures["CPU until controllers started"],
            "CPU until everything is checked, s": figures["CPU until everything is checked"],
        }
        return measurement


class Million(Works):
    """It needs a few GiB of memory and of disk."""

    name = "works.million"
    title = "The control plane starts on a store with a million Works: 10,000 objects for 100 clusters"
    sizes = Sizes(quick=10_000, base=100_000)


async def _propagated(place: Place, clusters: int) -> Original:
    """What was propagated to all clusters."""
    place.progress(f"propagating a Deployment to {clusters} members")
    async with AsyncExitStack() as stack:
        process = stack.enter_context(started_plane(place))
        control = await stack.enter_async_context(connected(plane_config(place.folder)))
        members = (await stack.enter_async_context(bare_members(place.folder, clusters + 1)))[:clusters]
        await join_all(control, members)
        await until_ready(control, [member.name for member in members])
        where = await stack.enter_async_context(space(Plane(control, members, {}, ours=True), DEPLOYMENTS))
        await where.make(1)
        await where.until_there(1)
        await until_at_rest([process.pid])
    return Original(DEPLOYMENTS, "Deployment", where.namespace, objects.numbered(0))


async def _started(place: Place, clusters: int) -> tuple[dict[str, float], Measurement]:
    place.progress("starting on it")
    began = time.perf_counter()
    async with AsyncExitStack() as stack:
        process = stack.enter_context(started_plane(place, *_NO_AGENTS))
        meter = Meter({CONTROL_PLANE: process.pid})
        figures = {
            "controllers started": time.perf_counter() - began,
            "CPU until controllers started": cpu_seconds(process.pid),
        }
        control = await stack.enter_async_context(connected(plane_config(place.folder)))
        await until_at_rest([process.pid], seconds=_REST_SECONDS)
        figures["everything is checked"] = time.perf_counter() - began
        figures["CPU until everything is checked"] = cpu_seconds(process.pid)
        figures["a new Deployment is in its member"] = await _one_more(place, control, clusters)
        uses = meter.use()
    figures |= {"resident": uses[CONTROL_PLANE].resident, "peak": uses[CONTROL_PLANE].peak}
    return figures, Measurement(figures=figures, processes=uses)


async def _one_more(place: Place, control: Client, number: int) -> float:
    """To a member that joins now and is pushed to."""
    async with bare_members(place.folder, number + 1) as members:
        pushed = members[number:]
        await join_all(control, pushed)
        await until_ready(control, [member.name for member in pushed])
        async with space(Plane(control, pushed, {}, ours=True), DEPLOYMENTS) as where:
            began = time.perf_counter()
            await control.create(DEPLOYMENTS, objects.deployment(_NEW, where.namespace))
            await where.until_has(_NEW)
            return time.perf_counter() - began
