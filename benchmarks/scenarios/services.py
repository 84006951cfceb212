"""MultiClusterServices of ten clusters, all of which provide and use them: a rolling update of everything.

Control plane and members run in this process and in memory, on a clock of their own (a rehearsal), so nothing but
computing is measured. Services have no selector: their EndpointSlices are written here, one for each Service in each
member. A change of one has to reach the nine other clusters with one write each, and no change with none.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable
from pathlib import Path

from benchmarks.processes import Meter
from benchmarks.scenario import Figure, Measurement, Place, Sizes
from karmada.api.networking import MultiClusterService
from karmada.api.well_known import PROVISION_CLUSTER, execution_namespace
from karmada.api.work import Work
from karmada.features import default_gates
from karmada.kube.objects import meta
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import SLICES
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.tuning import tune_garbage_collection
from karmada.kube.sim.profile import INSTANT, Profile
from karmada.rehearsal.event_loop import RehearsalLoop
from karmada.rehearsal.fleet import RehearsalFleet

_MEMBERS, _ENDPOINTS = 10, 20
_SERVICES = GVR("", "v1", "services")
_SIZES = (20, 60, 200)


class Services:
    name = "services"
    title = f"MultiClusterServices of {_MEMBERS} clusters with {_ENDPOINTS} endpoints in each: all of them change"
    counted = "services"
    sizes = Sizes(quick=4, base=20)
    foreign = False
    figures = (
        Figure(name="dispatched slices written, for each consumer and change", goals=dict.fromkeys(_SIZES, 1)),
        Figure(name="Works written without a change", goals=dict.fromkeys(_SIZES, 0)),
        Figure(name="API writes for each consumer and change"),
        Figure(name="CPU of a change, for each consumer", unit="ms"),
    )

    async def run(self, size: int, place: Place) -> Measurement:
        tune_garbage_collection()
        meter = Meter({"control plane and members": os.getpid()})
        figures, cpu = await asyncio.to_thread(measured, place.folder, size)
        return Measurement(figures=figures, processes=meter.use(), costs={"CPU, s": cpu})


def measured(
    folder: Path, services: int, members: int = _MEMBERS, endpoints: int = _ENDPOINTS
) -> tuple[dict[str, float], float]:
    """The figures, and the CPU seconds of the change."""
    loop = RehearsalLoop()
    try:
        return loop.run_until_complete(_measure(_Serving(folder, services, members, endpoints)))
    finally:
        loop.close()


async def _measure(serving: _Serving) -> tuple[dict[str, float], float]:
    await serving.start()
    try:
        dispatched, written = serving.dispatched(), serving.revision
        cpu = await serving.change_everything()
        deliveries = serving.changes * (len(serving.names) - 1)
        all_writes, slices = serving.revision - written, serving.dispatched() - dispatched
        before = serving.work_versions()
        await serving.restart()
        after = serving.work_versions()
    finally:
        await serving.fleet.stop()
    figures = {
        "dispatched slices written, for each consumer and change": slices / deliveries,
        "Works written without a change": float(sum(before.get(key) != version for key, version in after.items())),
        "API writes for each consumer and change": all_writes / deliveries,
        "CPU of a change, for each consumer": cpu / deliveries * 1e3,
    }
    return figures, cpu


class _Serving:
    """A fleet with services, each with one EndpointSlice in every member."""

    def __init__(self, folder: Path, services: int, members: int, endpoints: int) -> None:
        gates = default_gates()
        gates.set("MultiClusterService=true")
        self.fleet = RehearsalFleet(folder, gates=gates)
        self.names = [f"member{number}" for number in range(members)]
        self._services = [f"service{number}" for number in range(services)]
        self._endpoints = endpoints
        self._round = 0
        self.changes = services * members

    async def start(self) -> None:
        """Until every member has what the others have."""
        await self.fleet.start()
        for name in self.names:
            await self.fleet.add_member(Profile(name, latencies=INSTANT, pools=(), system_pods=False))
            await self.fleet.join(name)
        await self.fleet.start_controllers()
        await self.fleet.run(60)
        for name in self._services:
            await self.fleet.client.create(_SERVICES, _service(name))
            await self.fleet.client.create(MultiClusterService.gvr, _shared(name))
        for member, name in self._slices():
            await self.fleet.members[member].client.create(SLICES, self._slice(member, name))
        await self.fleet.run(60)
        self._check_dispatched()

    def _slices(self) -> Iterable[tuple[str, str]]:
        return ((member, name) for name in self._services for member in self.names)

    async def change_everything(self) -> float:
        """The CPU seconds until every member has the change."""
        self._round += 1
        cpu = time.process_time()
        for member, name in self._slices():
            changed = {"endpoints": self._slice(member, name)["endpoints"]}
            await self.fleet.members[member].client.patch(SLICES, f"{name}-{member}", "default", changed)
        await self.fleet.run(20)
        cpu = time.process_time() - cpu
        self._check_dispatched()
        return cpu

    async def restart(self) -> None:
        """Of the controllers, which look at everything again."""
        await self.fleet.stop_controllers()
        await self.fleet.start_controllers()
        await self.fleet.run(5)

    def _check_dispatched(self) -> None:
        for other, name in self._slices():
            wanted = self._slice(other, name)["endpoints"]
            for member in self.names:
                if member != other and self._there(member, f"{other}-{name}-{other}") != wanted:
                    raise TimeoutError(f"the EndpointSlice of {name} in {other} has not reached {member}")

    def _there(self, member: str, name: str) -> list[Obj] | None:
        found = self.fleet.members[member].sim.server.cache.get(SLICES.group_resource, "default", name)
        return None if found is None else found.get("endpoints")

    def _slice(self, member: str, name: str) -> Obj:
        number = self.names.index(member)
        addresses = [f"10.{number}.{self._round % 250}.{host + 1}" for host in range(self._endpoints)]
        return {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "generateName": f"{name}-",
                "name": f"{name}-{member}",
                "namespace": "default",
                "labels": {"kubernetes.io/service-name": name},
            },
            "addressType": "IPv4",
            "endpoints": [{"addresses": [address], "conditions": {"ready": True}} for address in addresses],
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        }

    # what is written

    @property
    def revision(self) -> int:
        return self.fleet.server.store.revision

    def _works(self) -> list[Obj]:
        cache = self.fleet.server.cache
        return [w for name in self.names for w in cache.list(Work.gvr.group_resource, execution_namespace(name))]

    def dispatched(self) -> int:
        """How often the content of Works with a dispatched EndpointSlice was written."""
        return sum(meta.generation(work) for work in self._works() if PROVISION_CLUSTER in meta.annotations(work))

    def work_versions(self) -> dict[str, str]:
        return {meta.uid(work): meta.resource_version(work) for work in self._works()}


def _service(name: str) -> Obj:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [{"port": 80}]}}


def _shared(name: str) -> Obj:
    metadata = {"name": name, "namespace": "default"}
    head = {"apiVersion": MultiClusterService.gvk.api_version, "kind": "MultiClusterService", "metadata": metadata}
    return {**head, "spec": {"types": ["CrossCluster"]}}
