"""Deployments in several namespaces to several members: with the controllers in the server's process, and in workers.

Both are measured one after the other. What the process with the API server and the scheduler uses is shown apart from
what the workers use: on a machine with few cores, which members and load share, that split, and not the rate, says what
more cores would bring.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from dataclasses import replace

from benchmarks.objects import DEPLOYMENTS
from benchmarks.planes import Plane, plane
from benchmarks.processes import CLIENT, CONTROL_PLANE, MEMBERS, Meter, children, until_at_rest
from benchmarks.propagating import Space, space
from benchmarks.scenario import Figure, Measurement, Place, Sizes, Use
from karmada.components.election import CONTROLLERS, NAMESPACE
from karmada.components.workers import PROGRAM
from karmada.kube.objects.gvrs import LEASES
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.membership import GROUP, view_of

_MEMBERS = 4
_NAMESPACES = 4
_WORKERS = (1, 2)
_REST_SECONDS = 60.0
_LEASE = "60s"
"""So that no worker is taken for dead on a busy machine."""


def _label(workers: int) -> str:
    return "1 process" if workers == 1 else f"{workers} workers"


class Workers:
    name = "workers"
    title = f"Deployments in {_NAMESPACES} namespaces to {_MEMBERS} members, by the number of workers"
    counted = "Deployments"
    sizes = Sizes(quick=40, base=400)
    foreign = False
    figures = tuple(
        figure
        for workers in _WORKERS
        for figure in (
            Figure(name=f"{_label(workers)}: Works", unit="/s", better="higher"),
            Figure(name=f"{_label(workers)}: server and scheduler, CPU per Work", unit="ms"),
            *(
                Figure(name=f"{_label(workers)}: worker {number}, CPU per Work", unit="ms")
                for number in range(1, workers + 1)
                if workers > 1
            ),
            Figure(name=f"{_label(workers)}: resident", unit="MiB"),
        )
    )

    async def run(self, size: int, place: Place) -> Measurement:
        figures: dict[str, float] = {}
        costs: dict[str, float] = {}
        uses: dict[str, Use] = {}
        for workers in _WORKERS:
            folder = place.folder / f"workers-{workers}"
            folder.mkdir()
            place.progress(_label(workers))
            flags = (f"--workers={workers}", f"--worker-lease-duration={_LEASE}")
            async with plane(replace(place, folder=folder), _MEMBERS, *flags) as found:
                measured, used = await _measure(found, size, workers)
            figures |= {f"{_label(workers)}: {name}": value for name, value in measured.items()}
            uses |= {f"{_label(workers)}: {name}": use for name, use in used.items()}
            costs[f"{_label(workers)}, s"] = size * _MEMBERS / measured["Works"]
        return Measurement(figures=figures, processes=uses, costs=costs)


async def _measure(found: Plane, size: int, workers: int) -> tuple[dict[str, float], dict[str, Use]]:
    if workers > 1:
        await _until_divided(found, workers)
    control = found.pids[CONTROL_PLANE]
    own = dict(enumerate(sorted(children(control, PROGRAM)), start=1))
    async with AsyncExitStack() as stack:
        spaces = [await stack.enter_async_context(space(found, DEPLOYMENTS)) for _ in range(_NAMESPACES)]
        await until_at_rest([control], seconds=_REST_SECONDS)
        meter = Meter({**found.pids, **{f"worker {number}": pid for number, pid in own.items()}})
        began = time.perf_counter()
        await asyncio.gather(*(_propagated(one, size // _NAMESPACES) for one in spaces))
        seconds = time.perf_counter() - began
        await until_at_rest([control], seconds=_REST_SECONDS)
        uses = meter.use()
        if set(children(control, PROGRAM)) != set(own.values()):
            raise RuntimeError("a worker was started again while it was measured")
    works = size // _NAMESPACES * _NAMESPACES * _MEMBERS
    of_workers = {name: use.cpu_seconds for name, use in uses.items() if name.startswith("worker ")}
    alone = uses[CONTROL_PLANE].cpu_seconds - sum(of_workers.values())  # which counts its children
    figures = {
        "Works": works / seconds,
        "server and scheduler, CPU per Work": alone / works * 1e3,
        **{f"{name}, CPU per Work": cpu / works * 1e3 for name, cpu in of_workers.items()},
        "resident": uses[CONTROL_PLANE].resident,
    }
    return figures, {name: use for name, use in uses.items() if name in (CONTROL_PLANE, MEMBERS, CLIENT)}


async def _propagated(where: Space, count: int) -> None:
    await where.make(count)
    await where.until_there(count)


async def _until_divided(found: Plane, workers: int) -> None:
    """Until all workers divide the work by the same members."""
    leases = Informer(found.control, LEASES, NAMESPACE, label_selector=f"{GROUP}={CONTROLLERS}")
    leases.start()
    try:
        await leases.until(
            lambda: len(leases) == workers and all(len(view_of(lease)) == workers for lease in leases.list())
        )
    finally:
        await leases.stop()
