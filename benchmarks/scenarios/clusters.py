"""Cluster status: members join one by one, a fifth of them dies, half of those by hanging.

What counts is that the others stay Ready, and what the control plane needs when nothing happens.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec

from benchmarks.planes import connected, is_ready, plane_config, started_plane
from benchmarks.processes import CONTROL_PLANE, MEMBERS, Meter, at_rest
from benchmarks.scenario import Figure, Measurement, Place, Sizes
from benchmarks.simulated import Simulated, simulated
from karmada.api.cluster import Cluster
from karmada.joining.join import Joining, join
from karmada.kube.client.client import Client
from karmada.kube.client.kubeconfig import load_config
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer
from karmada.kube.sim.fleet import Stored
from karmada.kube.sim.profile import NodePool, Profile

_DEAD_SHARE = 5
"""One in so many members dies."""
_FLAGS = ("--cluster-status-update-frequency=2s", "--cluster-failure-threshold=2s")
"""Health checks five times as often as by default: their cost shows sooner."""
_REST_SECONDS = 6.0
"""Three rounds of health checks."""
_STEPS = (10, 30, 100)


class Clusters:
    name = "clusters"
    title = "Members join, and a fifth of them dies"
    counted = "members"
    sizes = Sizes(quick=5, base=10)
    foreign = False
    figures = (
        Figure(name="the first joined and Ready", unit="s", goals=dict.fromkeys(_STEPS, 3)),
        Figure(name="all joined one by one and Ready", unit="s"),
        Figure(name="the dead are known", unit="s"),
        Figure(name="Ready of those alive", unit="%", better="higher", goals=dict.fromkeys(_STEPS, 100)),
        Figure(name="CPU at rest, checked every 2 s", unit="% of a core"),
        Figure(name="control plane, resident", unit="MiB"),
    )

    async def run(self, size: int, place: Place) -> Measurement:
        with simulated(place) as sim, started_plane(place, *_FLAGS) as process:
            await asyncio.to_thread(_make, sim, size)
            meter = Meter({CONTROL_PLANE: process.pid, MEMBERS: sim.process.pid})
            async with connected(plane_config(place.folder)) as control, _following(control) as clusters:
                figures = await _join(control, clusters, sim, size)
                joining = meter.cpu()[CONTROL_PLANE]
                dead = set(range(0, size, _DEAD_SHARE))
                began = time.perf_counter()
                await asyncio.to_thread(_kill, sim, dead)
                await clusters.until(lambda: _count(clusters, "False") == len(dead))
                figures["the dead are known"] = time.perf_counter() - began
                figures["CPU at rest, checked every 2 s"] = 100 * await at_rest([process.pid], _REST_SECONDS)
                figures["Ready of those alive"] = 100 * _count(clusters, "True") / (size - len(dead))
            uses = meter.use()
        figures["control plane, resident"] = uses[CONTROL_PLANE].resident
        costs = {"CPU of joining, s": joining, "CPU at rest, %": figures["CPU at rest, checked every 2 s"]}
        return Measurement(figures=figures, processes=uses, costs=costs)


@asynccontextmanager
async def _following(control: Client) -> AsyncIterator[Informer]:
    informer = Informer(control, Cluster.gvr)
    informer.start()
    try:
        await informer.wait_synced()
        yield informer
    finally:
        await informer.stop()


def _make(sim: Simulated, count: int) -> None:
    for number in range(count):
        profile = Profile(_name(number), pools=(NodePool(count=3),))
        sim.call("POST", "/clusters", msgspec.to_builtins(Stored(profile=profile)))


def _kill(sim: Simulated, numbers: set[int]) -> None:
    for number in sorted(numbers):
        fault = {"type": "down" if number // _DEAD_SHARE % 2 else "black-hole"}
        sim.call("POST", f"/clusters/{_name(number)}/faults", {"fault": fault})


def _name(number: int) -> str:
    return f"member{number}"


async def _join(control: Client, clusters: Informer, sim: Simulated, size: int) -> dict[str, float]:
    began = time.perf_counter()
    await _join_one(control, sim, 0)
    await clusters.until(lambda: _count(clusters, "True") == 1)
    first = time.perf_counter() - began
    for number in range(1, size):
        await _join_one(control, sim, number)
    await clusters.until(lambda: _count(clusters, "True") == size)
    return {"the first joined and Ready": first, "all joined one by one and Ready": time.perf_counter() - began}


async def _join_one(control: Client, sim: Simulated, number: int) -> None:
    config = load_config(sim.kubeconfig, context=_name(number))
    async with connected(config) as member:
        await join(control, member, Joining.to(config, _name(number)))


def _count(clusters: Informer, status: str) -> int:
    by_status: Callable[[Obj], bool] = lambda cluster: is_ready(cluster, status)
    return sum(map(by_status, clusters.list()))
