"""Simulated clusters in one process: made and filled once, then started from their folder and left at rest.

A process of its own fills them (`python -m benchmarks.scenarios.fleet FOLDER CLUSTERS`), so that what it needed does
not count when `karmada-sim` is looked at.
"""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from benchmarks.processes import Meter, at_rest, started, until_at_rest
from benchmarks.scenario import Figure, Measurement, Place, Sizes
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import PODS as POD_RESOURCE
from karmada.kube.objects.podstate import is_ready
from karmada.kube.sim.cluster import SimCluster
from karmada.kube.sim.fleet import Fleet, Stored
from karmada.kube.sim.profile import NodePool, Profile

NODES, PODS = 50, 500
_WORKLOADS = 20
_REST_SECONDS = 5.0
_ASK_AGAIN = 0.25
_SIM = "simulated clusters"


class SimulatedFleet:
    name = "fleet"
    title = f"Simulated clusters of {NODES} nodes and {PODS} pods each, in one process"
    counted = "clusters"
    sizes = Sizes(quick=2, base=5)
    foreign = False
    figures = (
        Figure(name="made", unit="s"),
        Figure(name="all pods running", unit="s"),
        Figure(name="start", unit="s", goals={50: 10}),
        Figure(name="resident", unit="MiB", goals={50: 1_500}),
        Figure(name="CPU at rest", unit="% of a core", goals={50: 10}),
    )

    async def run(self, size: int, place: Place) -> Measurement:
        folder = place.folder / "sim"
        figures = await asyncio.to_thread(_filled, folder, size)
        began = time.perf_counter()
        command = ("karmada.components.sim", "--data-dir", str(folder))
        with started(*command, says="simulated clusters", log=place.folder / "sim.log") as process:
            figures["start"] = time.perf_counter() - began
            meter = Meter({_SIM: process.pid})
            await until_at_rest([process.pid])
            figures["CPU at rest"] = 100 * await at_rest([process.pid], _REST_SECONDS)
            uses = meter.use()
        figures["resident"] = uses[_SIM].resident
        costs = {f"{name}, s": figures[name] for name in ("made", "all pods running", "start")}
        return Measurement(figures=figures, processes=uses, costs={**costs, "resident, MiB": figures["resident"]})


def _filled(folder: Path, clusters: int) -> dict[str, float]:
    command = [sys.executable, "-m", __name__, str(folder), str(clusters)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return msgspec.json.decode(done.stdout, type=dict[str, float])


# the process that fills


async def _fill(folder: Path, count: int) -> dict[str, float]:
    fleet = Fleet(folder)
    await fleet.start()
    gc.disable()  # everything that is made here stays
    began = time.perf_counter()
    for number in range(count):
        await fleet.create(Stored(profile=Profile(f"member{number}", pools=(NodePool(count=NODES),))))
    made = time.perf_counter() - began
    began = time.perf_counter()
    clusters = [cluster for cluster in fleet.clusters.values() if isinstance(cluster, SimCluster)]
    await asyncio.gather(*map(_workloads, clusters))
    await _until_running(clusters)
    filled = time.perf_counter() - began
    await fleet.stop()
    return {"made": made, "all pods running": filled}


async def _workloads(cluster: SimCluster) -> None:
    client = cluster.server.client(user_agent="benchmarks")
    for number in range(_WORKLOADS):
        labels = {"app": f"web-{number}"}
        container = {"name": "web", "image": "nginx:1.27", "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}}}
        deployment = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": f"web-{number}"},
            "spec": {
                "replicas": PODS // _WORKLOADS,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
            },
        }
        await client.create(GVR("apps", "v1", "deployments"), deployment, "default")


async def _until_running(clusters: Iterable[SimCluster]) -> None:
    """Many clusters' caches, one after the other: the last is mostly done by then."""
    for cluster in clusters:
        pods = cluster.context.informers.of(POD_RESOURCE)
        while sum(map(is_ready, pods.list("default"))) < PODS:  # noqa: ASYNC110 - at every change would cost too much
            await asyncio.sleep(_ASK_AGAIN)


def main() -> None:
    import uvloop

    folder, clusters = sys.argv[1:]
    sys.stdout.buffer.write(msgspec.json.encode(uvloop.run(_fill(Path(folder), int(clusters)))))


if __name__ == "__main__":
    main()
