"""The scheduler at work, in one process with a server that stores durably: result, status and events.

First bindings are made while nobody schedules; then a scheduler starts, and the clock stops when the last of them is
scheduled. After that, single bindings are made one by one, each when the one before is scheduled.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import uvloop

from bench import scheduling
from bench.report import show

CLUSTERS = 100
STRATEGIES = ("Duplicated", "Aggregated", "dynamic weight", "spread by region")
_MAKERS = 16
_SINGLE = 50
_SECONDS = 300


def measure(share: float) -> None:
    for strategy in STRATEGIES:
        uvloop.run(_run(strategy, max(int(share * 3000), 300)))


async def _run(strategy: str, count: int) -> None:
    from karmada.controllers.context import Context
    from karmada.kube.objects.meta import without_managed_fields
    from karmada.kube.runtime.manager import Manager
    from karmada.kube.runtime.tuning import tune_garbage_collection
    from karmada.members.members import Members
    from karmada.scheduler.service.scheduler import scheduler_parts

    tune_garbage_collection()
    async with _server() as server:
        client = server.client(user_agent="bench")
        await _make_clusters(client)
        specs = _specs(strategy, count + _SINGLE)
        await _make(client, list(enumerate(specs))[:count])
        manager = Manager(client, transform=without_managed_fields)
        context = Context(
            lambda name: server.client(user_agent=name),
            manager.informers,
            manager.clock,
            Members(manager.informers, manager.clock),
        )
        for part in scheduler_parts(context):
            manager.add(part)
        for recorder in context.recorders.values():
            manager.add_component(recorder)
        done = _Done(manager.informers, count)
        began, cpu = time.perf_counter(), time.process_time()
        async with manager:
            await done.wait()
            seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
            single = [await _single(client, manager.informers, count + n, specs[count + n]) for n in range(_SINGLE)]
        note = f"{cpu / count * 1e3:.2f} ms of a core each, single: p50 {sorted(single)[_SINGLE // 2] * 1e3:.1f} ms"
    show(f"scheduled/s, {CLUSTERS} clusters: {strategy}", count / seconds, note)


@asynccontextmanager
async def _server() -> AsyncIterator[Any]:
    from karmada.apiserver.mount import mount, until_served
    from karmada.kube.server.app import ApiServer
    from karmada.kube.server.config import ServerConfig

    with tempfile.TemporaryDirectory() as folder:
        server = ApiServer(ServerConfig(data_dir=Path(folder), port=0))
        mount(server)
        await server.start()
        try:
            await until_served(server)
            yield server
        finally:
            await server.stop()


async def _make_clusters(client: Any) -> None:
    from karmada.api.cluster import Cluster

    random = Random(CLUSTERS)
    for number in range(CLUSTERS):
        made = scheduling.cluster(random, number)
        metadata = {"name": made["metadata"]["name"], "labels": made["metadata"]["labels"]}
        spec = {"syncMode": "Push", **{key: made["spec"][key] for key in ("region", "zones")}}
        head = {"apiVersion": Cluster.gvk.api_version, "kind": "Cluster", "metadata": metadata}
        await client.create(Cluster.gvr, {**head, "spec": spec})
        await client.patch(Cluster.gvr, metadata["name"], "", {"status": made["status"]}, subresource="status")


def _specs(strategy: str, count: int) -> list[Any]:
    names = [f"member{number:04d}" for number in range(CLUSTERS)]
    found = []
    for number, spec in enumerate(scheduling.bindings(Random(count), strategy, count, names)):
        resource = {**spec["resource"], "namespace": "default"}
        plain = {key: value for key, value in spec.items() if key != "clusters"}
        found.append({**plain, "resource": resource, "replicas": number % 20 + 1})
    return found


def _binding(number: int, spec: Any) -> Any:
    labels = {"propagationpolicy.karmada.io/permanent-id": "bench"}
    metadata = {"name": f"web-{number}-deployment", "namespace": "default", "labels": labels}
    return {"apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding", "metadata": metadata, "spec": spec}


async def _make(client: Any, specs: list[tuple[int, Any]]) -> None:
    from karmada.api.work import ResourceBinding

    waiting = iter(specs)

    async def make() -> None:
        for number, spec in waiting:
            await client.create(ResourceBinding.gvr, _binding(number, spec))

    await asyncio.gather(*(make() for _ in range(_MAKERS)))


class _Done:
    """When so many bindings are scheduled."""

    def __init__(self, informers: Any, count: int) -> None:
        from karmada.api.work import ResourceBinding

        self._left = count
        self._over = asyncio.Event()
        self._remove = informers.of(ResourceBinding.gvr).add_handler(self._heard)

    def _heard(self, old: Any, new: Any) -> None:
        if _is_scheduled(new) and not (old is not None and _is_scheduled(old)):
            self._left -= 1
            if self._left == 0:
                self._over.set()

    async def wait(self) -> None:
        await asyncio.wait_for(self._over.wait(), _SECONDS)
        self._remove()


def _is_scheduled(binding: Any) -> bool:
    return bool((binding.get("status") or {}).get("schedulerObservedGeneration"))


async def _single(client: Any, informers: Any, number: int, spec: Any) -> float:
    from karmada.api.work import ResourceBinding
    from karmada.kube.runtime.keys import Key

    informer, key = informers.of(ResourceBinding.gvr), Key("default", f"web-{number}-deployment")
    began = time.perf_counter()
    await client.create(ResourceBinding.gvr, _binding(number, spec))
    await informer.until(lambda: _is_scheduled(informer.get(key) or {}))
    return time.perf_counter() - began


if __name__ == "__main__":
    measure(1.0)
