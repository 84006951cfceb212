"""Bindings with dynamic weights over 50 members, each with an estimator of 100 nodes and 400 pods.

Estimators are in the scheduler's process, or in two processes that serve 25 clusters each over gRPC
(`python -m benchmarks.scenarios.scheduling_estimators FIRST COUNT`). Meanwhile 100 pods a second change in the members.
As in `scheduler`, bindings wait when the scheduler starts, and everything is written durably.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from random import Random
from typing import Any

from benchmarks.processes import Meter, started
from benchmarks.propagating import each
from benchmarks.scenario import Figure, Measurement, Place, Sizes
from benchmarks.scenarios.large_member import node_object, pod_object
from benchmarks.scenarios.scheduler import Done, binding, make_clusters, serving, specs_of
from benchmarks.workloads import cluster_name
from karmada.api.work import ResourceBinding
from karmada.components.assembly import Assembly
from karmada.estimator.client.options import ClientOptions
from karmada.estimator.estimator import ClusterEstimator
from karmada.features import default_gates
from karmada.kube.client.client import Client
from karmada.kube.client.transport import Call, Transport, WatchEvent
from karmada.kube.objects.clock import RealClock
from karmada.kube.objects.gvrs import SERVICES
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.features import FeatureGates
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.tuning import tune_garbage_collection
from karmada.kube.server.app import ApiServer
from karmada.scheduler.estimators.in_process import InProcessEstimator

_CLUSTERS, _PROCESSES = 50, 2
_NODES, _PODS = 100, 400
_CHANGES_A_SECOND = 100
_MAKERS = 16
_SUMMARIES, _IN_PROCESS, _PROTECTED, _GRPC, _DIFFERENT = (
    "by summaries alone",
    "in-process",
    "in-process, overcommit protection",
    "gRPC",
    "gRPC, no two requests alike",
)
_GOAL = {1_000: 300.0}


class WithEstimators:
    name = "scheduling.estimators"
    title = f"The scheduler and its server, with the estimators of {_CLUSTERS} clusters"
    counted = "bindings"
    sizes = Sizes(quick=50, base=100)
    foreign = False
    figures = (
        Figure(name=_SUMMARIES, unit="/s", better="higher"),
        Figure(name=_IN_PROCESS, unit="/s", better="higher", goals=_GOAL),
        Figure(name=_PROTECTED, unit="/s", better="higher"),
        Figure(name=_GRPC, unit="/s", better="higher", goals=_GOAL),
        Figure(name=_DIFFERENT, unit="/s", better="higher"),
    )

    async def run(self, size: int, place: Place) -> Measurement:
        tune_garbage_collection()
        figures: dict[str, float] = {}
        costs: dict[str, float] = {}
        with _processes(place) as (ports, pids):
            meter = Meter({"scheduler and server": os.getpid(), **pids})
            for number, how in enumerate(figure.name for figure in self.figures):
                place.progress(how)
                async with serving(place.folder / str(number)) as server, _estimators(*_local(how)) as local:
                    rate, cpu = await _run(server, how, size, local, ports)
                figures[how], costs[f"CPU, {how}, s"] = rate, cpu
            uses = meter.use()
        return Measurement(figures=figures, processes=uses, costs=costs)


async def _run(
    server: ApiServer, how: str, count: int, local: dict[str, ClusterEstimator], ports: dict[str, int]
) -> tuple[float, float]:
    """Bindings a second, and the CPU seconds of scheduler and server."""
    client = server.client(user_agent="benchmarks")
    await make_clusters(client, _CLUSTERS)
    specs = specs_of("dynamic weight", count, _CLUSTERS)
    if how == _DIFFERENT:
        specs = [_with_cpu(spec, number) for number, spec in enumerate(specs)]

    async def make(number: int) -> None:
        await client.create(ResourceBinding.gvr, binding(number, specs[number]))

    await each(range(count), make, _MAKERS)
    calls = how in (_GRPC, _DIFFERENT)
    if calls:
        for name, port in ports.items():
            await client.create(SERVICES, _service(name, port))
    assembly = Assembly(lambda name: server.client(user_agent=name), name="karmada-scheduler", gates=_gates(how))
    assembly.add_scheduler(
        estimators=[InProcessEstimator(local)] if local else [], client=ClientOptions() if calls else None
    )
    done = Done(assembly.manager.informers, count)
    began, cpu = time.perf_counter(), time.process_time()
    async with assembly.manager:
        await done.wait()
        return count / (time.perf_counter() - began), time.process_time() - cpu


def _local(how: str) -> tuple[Iterable[int], FeatureGates]:
    """The clusters whose estimators are in this process."""
    return range(_CLUSTERS if how in (_IN_PROCESS, _PROTECTED) else 0), _gates(how)


def _gates(how: str) -> FeatureGates:
    gates = default_gates()
    gates.set(f"SchedulingOvercommitProtection={str(how == _PROTECTED).lower()}")
    return gates


def _with_cpu(spec: Obj, number: int) -> Obj:
    return {**spec, "replicaRequirements": {"resourceRequest": {"cpu": f"{100 + number}m", "memory": "128Mi"}}}


def _service(cluster: str, port: int) -> Obj:
    metadata = {"name": f"karmada-scheduler-estimator-{cluster}", "namespace": "karmada-system"}
    ports = [{"name": "grpc", "port": 10352, "targetPort": port, "protocol": "TCP"}]
    spec = {"type": "ExternalName", "externalName": "127.0.0.1", "ports": ports}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


# members that are lists of nodes and pods


class _Member(Transport):
    """Nodes and pods as an API server lists and watches them; now and then a pod comes to a node, or leaves it."""

    def __init__(self, number: int) -> None:
        self._random = Random(number)
        self._version = 1

    async def call(self, call: Call) -> Any:
        if call.path.endswith("/nodes"):
            items = [node_object(number) for number in range(_NODES)]
        else:
            items = [pod_object(number, number % _NODES) for number in range(_PODS)]
        return {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": "1"}, "items": items}

    async def watch(self, call: Call) -> AsyncIterator[WatchEvent]:
        changes = call.path.endswith("/pods")
        pod: Obj | None = None
        while changes or await asyncio.Event().wait():
            await asyncio.sleep(self._random.uniform(0, 2 * _CLUSTERS / _CHANGES_A_SECOND))
            self._version += 1
            kind, new = ("DELETED", pod) if pod else ("ADDED", pod_object(_PODS, self._random.randrange(_NODES)))
            new = {**new, "metadata": {**new["metadata"], "resourceVersion": str(self._version)}}
            pod = None if pod else new
            yield WatchEvent(kind, {"apiVersion": "v1", "kind": "Pod", **new})

    async def close(self) -> None: ...


@asynccontextmanager
async def _estimators(numbers: Iterable[int], gates: FeatureGates) -> AsyncIterator[dict[str, ClusterEstimator]]:
    """Estimators of these clusters, in which pods come and go."""
    found: dict[str, ClusterEstimator] = {}
    members: list[Informers] = []
    for number in numbers:
        informers = Informers(Client(_Member(number)))
        estimator = found[cluster_name(number)] = ClusterEstimator(cluster_name(number), informers, gates, RealClock())
        estimator.start()
        informers.start()
        await informers.wait_synced()
        members.append(informers)
    try:
        yield found
    finally:
        for informers in members:
            await informers.stop()


# estimators as processes


@contextmanager
def _processes(place: Place) -> Iterator[tuple[dict[str, int], dict[str, int]]]:
    """The port of each cluster's estimator, and the processes."""
    ports: dict[str, int] = {}
    pids: dict[str, int] = {}
    share = _CLUSTERS // _PROCESSES
    with ExitStack() as stack:
        for number in range(_PROCESSES):
            command = ("benchmarks.scenarios.scheduling_estimators", str(number * share), str(share))
            process = stack.enter_context(started(*command, says="ready", log=place.folder / f"estimators{number}.log"))
            assert process.stdout is not None
            for text in process.stdout.readline().split():
                name, _, port = text.partition("=")
                ports[name] = int(port)
            pids[f"estimators {number + 1}"] = process.pid
        yield ports, pids


async def _serve(numbers: Iterable[int]) -> None:
    from karmada.estimator.server import EstimatorServer

    async with _estimators(numbers, default_gates()) as estimators:
        servers = {name: EstimatorServer(one, host="127.0.0.1") for name, one in estimators.items()}
        for server in servers.values():
            await server.start()
        print("ready", flush=True)
        print(" ".join(f"{name}={server.port}" for name, server in servers.items()), flush=True)
        await asyncio.Event().wait()


def main() -> None:
    import uvloop

    first, count = map(int, sys.argv[1:])
    tune_garbage_collection()
    uvloop.run(_serve(range(first, first + count)))


if __name__ == "__main__":
    main()
