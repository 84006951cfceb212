"""A fifth of the clusters dies at once: every binding of theirs is evicted and placed again, and no other is touched.

The scheduler and the failover controllers run in one process with a server that stores durably. Clusters are objects
only, whose Ready condition is set to False at the same moment; a ClusterTaintPolicy taints them. Each binding has a
home cluster and may go anywhere else. Evictions may be so many a second that the controllers are what is measured.
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
from benchmarks.workloads import cluster, cluster_name
from karmada.api.cluster import Cluster
from karmada.api.policy import ClusterTaintPolicy
from karmada.api.work import ResourceBinding
from karmada.apiserver.mount import until_served
from karmada.components.assembly import Assembly
from karmada.components.parts import parts_named
from karmada.components.rows import Shared
from karmada.components.server import control_plane_server
from karmada.controllers.context import Settings
from karmada.features import default_gates
from karmada.kube.client.client import Client
from karmada.kube.objects import meta
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.features import FeatureGates
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.tuning import tune_garbage_collection
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig

_CLUSTERS = 100
_DEAD = 20
_RATE = 1_000.0
_LINES = 3
_DEFAULT_RATE = Settings().resource_eviction_rate
_AT_ONCE = 16
_CONTROLLERS = ("cluster", "clustertaintpolicy", "gracefulEviction")
_TAINTED_WHEN_DEAD = {
    "addOnConditions": [{"conditionType": "Ready", "operator": "In", "statusValues": ["False", "Unknown"]}],
    "removeOnConditions": [{"conditionType": "Ready", "operator": "In", "statusValues": ["True"]}],
    "taints": [{"key": "cluster.karmada.io/not-ready", "effect": "NoExecute"}],
}
_SIZES = (300, 900, 3_000)


class Failover:
    name = "failover"
    title = f"{_DEAD} of {_CLUSTERS} clusters die at once"
    counted = "bindings"
    sizes = Sizes(quick=100, base=300)
    foreign = False
    figures = (
        Figure(name="from the death to the last replacement", unit="s"),
        Figure(name="replaced", unit="/s", better="higher"),
        Figure(name="CPU of an eviction", unit="ms"),
        Figure(name="API writes of an eviction"),
        Figure(name="bindings of other clusters that were written", goals=dict.fromkeys(_SIZES, 0)),
    )

    async def run(self, size: int, place: Place) -> Measurement:
        tune_garbage_collection()
        meter = Meter({"controllers, scheduler and server": os.getpid()})
        gates = default_gates()
        gates.set("Failover=true")
        async with _serving(place.folder, gates) as server:
            client = server.client(user_agent="benchmarks")
            await _make(client, size)
            settings = Settings(enable_no_execute_taint_eviction=True, resource_eviction_rate=_RATE)
            assembly = Assembly(lambda name: server.client(user_agent=name), settings=settings, gates=gates)
            assembly.add(parts_named(Shared(assembly.context), *_CONTROLLERS))
            assembly.add_scheduler()
            async with assembly.manager as manager:
                bindings = _Bindings(manager.informers.of(ResourceBinding.gvr))
                await bindings.until_settled(size)
                place.progress("scheduled; now the clusters die")
                figures, cpu = await _fail(client, bindings)
        evicted = round(figures["from the death to the last replacement"] * figures["replaced"])
        usual = evicted / (_LINES * _DEFAULT_RATE)
        notes = [
            f"{evicted:,} evictions, at most {_LINES * _RATE:,.0f}/s here; the default of "
            f"{_LINES * _DEFAULT_RATE:g}/s spreads as many over {usual:,.0f} s"
        ]
        return Measurement(figures=figures, processes=meter.use(), costs={"CPU, s": cpu}, notes=notes)


async def _fail(client: Client, bindings: _Bindings) -> tuple[dict[str, float], float]:
    """The figures, and the CPU seconds of it all."""
    dead = {cluster_name(number) for number in range(_DEAD)}
    before = dict(bindings.versions)
    leaving = bindings.expect(dead)
    writes, began, cpu = await _revision(client), time.perf_counter(), time.process_time()
    await asyncio.gather(*(_set_ready(client, name, "False") for name in sorted(dead)))
    await bindings.until_replaced()
    seconds = time.perf_counter() - began
    await bindings.until_settled(len(before))
    cpu, writes = time.process_time() - cpu, await _revision(client) - writes
    touched = [name for name, version in bindings.versions.items() if name not in leaving and version != before[name]]
    figures = {
        "from the death to the last replacement": seconds,
        "replaced": len(leaving) / seconds,
        "CPU of an eviction": cpu / len(leaving) * 1e3,
        "API writes of an eviction": writes / len(leaving),
        "bindings of other clusters that were written": float(len(touched)),
    }
    return figures, cpu


class _Bindings:
    """What is known of the bindings, kept up to date with every change: looking at all of them would cost too much."""

    def __init__(self, informer: Informer) -> None:
        self._informer = informer
        self.versions: dict[str, str] = {}
        self.places: dict[str, set[str]] = {}
        self._settled: set[str] = set()
        self._away: set[str] = set()
        self._dead: set[str] = set()
        informer.add_handler(self._changed)

    def _changed(self, _old: Obj | None, new: Obj | None) -> None:
        if new is None:
            return
        name, places = meta.name(new), _places(new)
        self.versions[name], self.places[name] = meta.resource_version(new), places
        (self._settled.add if _is_settled(new) else self._settled.discard)(name)
        (self._away.add if places and not places & self._dead else self._away.discard)(name)

    async def until_settled(self, count: int) -> None:
        await self._informer.until(lambda: len(self._settled) == count)

    def expect(self, dead: set[str]) -> set[str]:
        """The bindings that will have to leave these clusters."""
        leaving = {name for name, places in self.places.items() if places & dead}
        self._dead, self._away = dead, set(self.places) - leaving
        return leaving

    async def until_replaced(self) -> None:
        """Until all of them are in clusters that live."""
        await self._informer.until(lambda: len(self._away) == len(self.places))


def _places(binding: Obj) -> set[str]:
    return {target["name"] for target in binding["spec"].get("clusters") or ()}


def _is_settled(binding: Obj) -> bool:
    """Placed by the scheduler as it is now, its eviction tasks stamped."""
    spec, status = binding["spec"], binding.get("status") or {}
    tasks = spec.get("gracefulEvictionTasks") or ()
    observed = status.get("schedulerObservedGeneration") == meta.generation(binding)
    return bool(spec.get("clusters")) and observed and all(task.get("creationTimestamp") for task in tasks)


async def _revision(client: Client) -> int:
    """The store counts its writes."""
    return int(meta.resource_version(await client.list(ClusterTaintPolicy.gvr)))


@asynccontextmanager
async def _serving(folder: Path, gates: FeatureGates) -> AsyncIterator[ApiServer]:
    config = ServerConfig(data_dir=folder / "plane", port=0)
    server = control_plane_server(config, gates=gates, allow_no_execute_taint_policy=True)
    await server.start()
    try:
        await until_served(server)
        yield server
    finally:
        await server.stop()


async def _make(client: Client, count: int) -> None:
    kind = {"apiVersion": ClusterTaintPolicy.gvk.api_version, "kind": "ClusterTaintPolicy"}
    await client.create(ClusterTaintPolicy.gvr, {**kind, "metadata": {"name": "dead"}, "spec": _TAINTED_WHEN_DEAD})
    random = Random(count)
    for number in range(_CLUSTERS):
        made = cluster(random, number)
        metadata = {"name": made["metadata"]["name"], "labels": made["metadata"]["labels"]}
        head = {"apiVersion": Cluster.gvk.api_version, "kind": "Cluster", "metadata": metadata}
        await client.create(Cluster.gvr, {**head, "spec": {"syncMode": "Push", "region": made["spec"]["region"]}})
        await client.patch(Cluster.gvr, metadata["name"], "", {"status": made["status"]}, subresource="status")
        await _set_ready(client, metadata["name"], "True")

    async def make(number: int) -> None:
        await client.create(ResourceBinding.gvr, _binding(number))

    await each(range(count), make, _AT_ONCE)


async def _set_ready(client: Client, name: str, status: str) -> None:
    moment = rfc3339(time.time())
    condition = {"type": "Ready", "status": status, "reason": "Benchmark", "message": "", "lastTransitionTime": moment}
    await client.patch(Cluster.gvr, name, "", {"status": {"conditions": [condition]}}, subresource="status")


def _binding(number: int) -> Obj:
    """At home in one cluster, with all others as backups."""
    name = f"web-{number}"
    groups = [
        {"affinityName": "home", "clusterNames": [cluster_name(number % _CLUSTERS)]},
        {"affinityName": "backup", "exclude": [cluster_name(number % _CLUSTERS)]},
    ]
    one = [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]
    spec = {
        "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": name, "uid": name},
        "replicas": number % 3 + 1,
        "replicaRequirements": {"resourceRequest": {"cpu": "10m"}},
        "placement": {"clusterAffinities": groups, "spreadConstraints": one},
    }
    labels = {"propagationpolicy.karmada.io/permanent-id": "benchmark"}
    metadata = {"name": f"{name}-deployment", "namespace": "default", "labels": labels}
    return {"apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding", "metadata": metadata, "spec": spec}
