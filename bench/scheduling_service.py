"""The scheduler at work: from a binding that is made to its result, status and events, in one process with the server.

Bindings are made as fast as the server takes them, by sixteen who each wait for an answer; the clock stops when the
last of them is scheduled. Making them is part of the figure, since both share a core. Events are written like anywhere.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Any

import uvloop

from bench import scheduling
from bench.report import show

CLUSTERS = 100
_MAKERS = 16
_SHOWN = ("Duplicated", "Aggregated", "dynamic weight", "spread by region")


def measure(share: float) -> None:
    count = max(int(share * 3000), 300)
    for strategy in _SHOWN:
        uvloop.run(_run(strategy, count))


async def _run(strategy: str, count: int) -> None:
    from karmada.api.work import ResourceBinding
    from karmada.apiserver.mount import mount, until_served
    from karmada.controllers.context import Context
    from karmada.kube.objects.clock import RealClock
    from karmada.kube.objects.meta import without_managed_fields
    from karmada.kube.runtime.manager import Manager
    from karmada.kube.runtime.tuning import tune_garbage_collection
    from karmada.kube.server.app import ApiServer
    from karmada.kube.server.config import ServerConfig
    from karmada.members.members import Members
    from karmada.scheduler.service.scheduler import scheduler_parts

    tune_garbage_collection()
    with tempfile.TemporaryDirectory() as folder:
        server = ApiServer(ServerConfig(data_dir=Path(folder), storage="", port=0), RealClock())
        mount(server)
        await server.start()
        try:
            await until_served(server)
            manager = Manager(server.client(user_agent="bench"), transform=without_managed_fields)
            members = Members(manager.informers, manager.clock)
            context = Context(lambda name: server.client(user_agent=name), manager.informers, manager.clock, members)
            await _make_clusters(server.client(user_agent="bench"))
            for part in scheduler_parts(context):
                manager.add(part)
            for recorder in context.recorders.values():
                manager.add_component(recorder)
            async with manager:
                seconds, cpu, latencies = await _drive(
                    server.client(user_agent="bench"), manager.informers.of(ResourceBinding.gvr), strategy, count
                )
                dropped = sum(recorder.dropped for recorder in context.recorders.values())
        finally:
            await server.stop()
    note = f"p50 {latencies[count // 2] * 1e3:.1f} ms, {cpu / count * 1e3:.2f} ms of a core each"
    note += f", {dropped} of {2 * count} events left out" if dropped else ""
    show(f"bindings made and scheduled/s, {CLUSTERS} clusters: {strategy}", count / seconds, note)


async def _make_clusters(client: Any) -> None:
    from karmada.api.cluster import Cluster

    random = Random(CLUSTERS)
    for number in range(CLUSTERS):
        made = scheduling._cluster(random, number)
        metadata = {"name": made["metadata"]["name"], "labels": made["metadata"]["labels"]}
        spec = {"syncMode": "Push", **{key: made["spec"][key] for key in ("region", "zones")}}
        head = {"apiVersion": Cluster.gvk.api_version, "kind": "Cluster", "metadata": metadata}
        await client.create(Cluster.gvr, {**head, "spec": spec})
        await client.patch(Cluster.gvr, metadata["name"], "", {"status": made["status"]}, subresource="status")


async def _drive(client: Any, informer: Any, strategy: str, count: int) -> tuple[float, float, list[float]]:
    from karmada.api.work import ResourceBinding

    made: dict[str, float] = {}
    latencies: list[float] = []
    finished = asyncio.get_running_loop().create_future()

    def heard(_old: Any, new: Any) -> None:
        name = new["metadata"]["name"]
        if (new.get("status") or {}).get("schedulerObservedGeneration") and name in made:
            latencies.append(time.perf_counter() - made.pop(name))
            if len(latencies) == count and not finished.done():
                finished.set_result(None)

    informer.add_handler(heard)
    names = [f"member{number:04d}" for number in range(CLUSTERS)]
    waiting = iter(list(enumerate(scheduling._bindings(Random(count), strategy, count, names))))

    async def make() -> None:
        for number, spec in waiting:
            name = f"web-{number}-deployment"
            spec = {key: value for key, value in spec.items() if key != "clusters"}
            spec["resource"] = {**spec["resource"], "namespace": "default"}
            spec["replicas"] = number % 20 + 1
            labels = {"propagationpolicy.karmada.io/permanent-id": "bench"}
            head = {"apiVersion": ResourceBinding.gvk.api_version, "kind": "ResourceBinding"}
            made[name] = time.perf_counter()
            metadata = {"name": name, "namespace": "default", "labels": labels}
            await client.create(ResourceBinding.gvr, {**head, "metadata": metadata, "spec": spec})

    began, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(make() for _ in range(_MAKERS)))
    await asyncio.wait_for(finished, 120)
    return time.perf_counter() - began, time.process_time() - cpu, sorted(latencies)


if __name__ == "__main__":
    measure(1.0)
