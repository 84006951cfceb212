"""A fleet of simulated clusters in one process: filled once, then started from its folder and left at rest.

Each half runs as a process of its own (`python -m bench.fleet fill|rest FOLDER CLUSTERS`), so that what the other half
needed does not count; it prints its figures as JSON.
"""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import orjson
import uvloop

from bench.report import show
from bench.server import resident_mb

NODES, PODS = 50, 500
_WORKLOADS = 20
_REST_SECONDS = 20.0


def measure(share: float) -> None:
    clusters = max(1, int(100 * share))
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        filled = _half("fill", folder, clusters)
        rest = _half("rest", folder, clusters)
    of_all = "" if share == 1 else f"(with {clusters})"
    show("100 clusters × 50 nodes: made, s", filled["made"], of_all)
    show("their 50,000 pods running, s", filled["filled"], of_all)
    show("100 clusters × 50 nodes × 500 pods: start, s", rest["start"], of_all)
    show("… resident, MB", rest["resident"], of_all)
    show("… CPU at rest, % of a core", rest["cpu"], of_all)


def _half(which: str, folder: str, clusters: int) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.fleet", which, folder, str(clusters)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    figures: dict[str, float] = orjson.loads(done.stdout)
    return figures


async def fill(folder: Path, clusters: int) -> dict[str, float]:
    from karmada.kube.sim.fleet import Fleet, Stored
    from karmada.kube.sim.profile import NodePool, Profile

    fleet = Fleet(folder)
    await fleet.start()
    gc.disable()  # everything that is made here stays
    began = time.perf_counter()
    for number in range(clusters):
        await fleet.create(Stored(profile=Profile(f"member{number}", pools=(NodePool(count=NODES),))))
    made = time.perf_counter() - began
    began = time.perf_counter()
    await asyncio.gather(*(_workloads(cluster) for cluster in fleet.clusters.values()))
    await _until(lambda: all(_running(cluster) >= PODS for cluster in fleet.clusters.values()))
    filled = time.perf_counter() - began
    await fleet.stop()
    return {"made": made, "filled": filled}


async def _workloads(cluster: object) -> None:
    from karmada.kube.objects.gvk import GVR
    from karmada.kube.sim.cluster import SimCluster

    assert isinstance(cluster, SimCluster)
    client = cluster.server.client(user_agent="bench")
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


def _running(cluster: object) -> int:
    from karmada.kube.sim.cluster import SimCluster
    from karmada.kube.sim.controllers.podcontrol import PODS as RESOURCE
    from karmada.kube.sim.controllers.podstate import is_ready

    assert isinstance(cluster, SimCluster)
    return sum(map(is_ready, cluster.context.informers.of(RESOURCE).list("default")))


async def _until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - many clusters' caches, looked at together
        await asyncio.sleep(1)


async def rest(folder: Path) -> dict[str, float]:
    from karmada.kube.runtime.tuning import tune_garbage_collection
    from karmada.kube.sim.fleet import Fleet

    tune_garbage_collection()
    began = time.perf_counter()
    fleet = Fleet(folder)
    await fleet.start()
    start = time.perf_counter() - began
    await _until(lambda: all(_running(cluster) >= PODS for cluster in fleet.clusters.values()))
    await asyncio.sleep(_REST_SECONDS / 2)
    busy, since = time.process_time(), time.perf_counter()
    await asyncio.sleep(_REST_SECONDS)
    cpu = 100 * (time.process_time() - busy) / (time.perf_counter() - since)
    figures = {"start": start, "resident": resident_mb("self"), "cpu": cpu}
    await fleet.stop()
    return figures


def main() -> None:
    which, folder, clusters = sys.argv[1:]
    work = fill(Path(folder), int(clusters)) if which == "fill" else rest(Path(folder))
    sys.stdout.buffer.write(orjson.dumps(uvloop.run(work)))


if __name__ == "__main__":
    main()
