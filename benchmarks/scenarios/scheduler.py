"""The scheduler at work, in one process with a server that stores durably: result, status and events.

First bindings are made while nobody schedules; then a scheduler starts, and the clock stops when the last of them is
scheduled. After that, single bindings are made one by one, each when the one before is scheduled.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

from benchmarks.processes import Meter
from benchmarks.propagating import each
from benchmarks.scenario import Figure, Measurement, Place, Sizes
from benchmarks.timings import percentile
from benchmarks.workloads import bindings, cluster, cluster_name
from karmada.api.cluster import Cluster
from karmada.api.work import ResourceBinding
from karmada.apiserver.mount import until_served
from karmada.components.assembly import Assembly
from karmada.components.server import control_plane_server
from karmada.kube.client.client import Client
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.manager import Manager
from karmada.kube.runtime.tuning import tune_garbage_collection
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig

_STRATEGIES = ("Duplicated", "Aggregated", "dynamic weight", "spread by region")
_MAKERS = 16
_SINGLE = 50


def _figures(goals: dict[int, float]) -> tuple[Figure, ...]:
    return (
        *(Figure(name=name, unit="/s", better="higher", goals=goals) for name in _STRATEGIES),
        *(Figure(name=f"{name}: a single one, half within", unit="ms") for name in _STRATEGIES),
    )


class Scheduler:
    name = "scheduler"
    title = "The scheduler and its server, with 100 clusters"
    counted = "bindings"
    sizes = Sizes(quick=100, base=300)
    foreign = False
    figures = _figures(dict.fromkeys((300, 900, 3_000), 1_000.0))
    clusters = 100

    async def run(self, size: int, place: Place) -> Measurement:
        tune_garbage_collection()
        meter = Meter({"scheduler and server": os.getpid()})
        figures: dict[str, float] = {}
        costs: dict[str, float] = {}
        for number, strategy in enumerate(_STRATEGIES):
            place.progress(strategy)
            async with serving(place.folder / str(number)) as server:
                rate, cpu, single = await _run(server, strategy, size, self.clusters)
            figures |= {strategy: rate, f"{strategy}: a single one, half within": single}
            costs[f"CPU, {strategy}, s"] = cpu
        return Measurement(figures=figures, processes=meter.use(), costs=costs)


class Wide(Scheduler):
    name = "scheduler.wide"
    title = "The scheduler and its server, with 1,000 clusters"
    sizes = Sizes(quick=60, base=60)
    figures = _figures({600: 200.0})
    clusters = 1_000


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[ApiServer]:
    server = control_plane_server(ServerConfig(data_dir=folder, port=0))
    await server.start()
    try:
        await until_served(server)
        yield server
    finally:
        await server.stop()


async def _run(server: ApiServer, strategy: str, count: int, clusters: int) -> tuple[float, float, float]:
    """Bindings a second, CPU seconds for all of them, milliseconds for one alone."""
    client = server.client(user_agent="benchmarks")
    await make_clusters(client, clusters)
    specs = specs_of(strategy, count + _SINGLE, clusters)

    async def make(number: int) -> None:
        await client.create(ResourceBinding.gvr, binding(number, specs[number]))

    await each(range(count), make, _MAKERS)
    manager = _manager(server)
    done = Done(manager.informers, count)
    began, cpu = time.perf_counter(), time.process_time()
    async with manager:
        await done.wait()
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        taken = [await _single(client, manager.informers, number, specs) for number in range(count, count + _SINGLE)]
    return count / seconds, cpu, percentile(taken, 0.5)


def _manager(server: ApiServer) -> Manager:
    assembly = Assembly(lambda name: server.client(user_agent=name), name="karmada-scheduler")
    assembly.add_scheduler()
    return assembly.manager


async def make_clusters(client: Client, count: int) -> None:
    random = Random(count)
    for number in range(count):
        made = cluster(random, number)
        metadata = {"name": made["metadata"]["name"], "labels": made["metadata"]["labels"]}
        spec = {"syncMode": "Push", **{key: made["spec"][key] for key in ("region", "zones")}}
        head = {"apiVersion": Cluster.gvk.api_version, "kind": "Cluster", "metadata": metadata}
        await client.create(Cluster.gvr, {**head, "spec": spec})
        await client.patch(Cluster.gvr, metadata["name"], "", {"status": made["status"]}, subresource="status")


def specs_of(strategy: str, count: int, clusters: int) -> list[Obj]:
    names = [cluster_name(number) for number in range(clusters)]
    found = []
    for number, spec in enumerate(bindings(Random(count), strategy, count, names)):
        resource = {**spec["resource"], "namespace": "default"}
        plain = {key: value for key, value in spec.items() if key != "clusters"}
        found.append({**plain, "resource": resource, "replicas": number % 20 + 1})
    return found


def binding(number: int, spec: Obj) -> Obj:
    labels = {"propagationpolicy.karmada.io/permanent-id": "benchmark"}
    metadata = {"name": f"web-{number}-deployment", "namespace": "default", "labels": labels}
    return {"apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding", "metadata": metadata, "spec": spec}


class Done:
    """When so many bindings are scheduled."""

    def __init__(self, informers: Informers, count: int) -> None:
        self._left = count
        self._over = asyncio.Event()
        self._remove = informers.of(ResourceBinding.gvr).add_handler(self._on_event)

    def _on_event(self, old: Obj | None, new: Obj | None) -> None:
        if _is_scheduled(new) and not _is_scheduled(old):
            self._left -= 1
            if self._left == 0:
                self._over.set()

    async def wait(self) -> None:
        await self._over.wait()
        self._remove()


def _is_scheduled(binding: Obj | None) -> bool:
    return bool(((binding or {}).get("status") or {}).get("schedulerObservedGeneration"))


async def _single(client: Client, informers: Informers, number: int, specs: list[Obj]) -> float:
    informer, key = informers.of(ResourceBinding.gvr), Key("default", f"web-{number}-deployment")
    began = time.perf_counter()
    await client.create(ResourceBinding.gvr, binding(number, specs[number]))
    await informer.until(lambda: _is_scheduled(informer.get(key)))
    return (time.perf_counter() - began) * 1e3
