"""One member with many nodes and four times as many pods: when it is Ready, when it is counted, what a change costs.

The member is an API server with so many objects and nobody who works on them, in a process of its own
(`python -m benchmarks.scenarios.large_member FOLDER NODES`).
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

from benchmarks.planes import connected, is_ready, plane_config, started_plane
from benchmarks.processes import CONTROL_PLANE, MEMBERS, Meter, started, until_at_rest
from benchmarks.scenario import Figure, Measurement, Place, Sizes
from karmada.api.cluster import Cluster, default_resource_models
from karmada.controllers.cluster_status.summary import Summary
from karmada.estimator.kept import slim_node, slim_pod
from karmada.joining.join import Joining, join
from karmada.kube.client.kubeconfig import load_config
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key

PODS_PER_NODE = 4
_CHANGES = 20_000
_NAME = "large"


class LargeMember:
    name = "large-member"
    title = f"One member with many nodes, {PODS_PER_NODE} pods on each"
    counted = "nodes"
    sizes = Sizes(quick=200, base=500)
    foreign = False
    figures = (
        Figure(name="Ready", unit="s"),
        Figure(name="first summary", unit="s"),
        Figure(name="one pod changes", unit="µs"),
        Figure(name="control plane, resident", unit="MiB"),
    )

    async def run(self, size: int, place: Place) -> Measurement:
        folder = place.folder / "member"
        command = ("benchmarks.scenarios.large_member", str(folder), str(size))
        with (
            started(*command, says="ready", log=place.folder / "member.log") as member,
            started_plane(place) as process,
        ):
            await until_at_rest([process.pid])
            meter = Meter({CONTROL_PLANE: process.pid, MEMBERS: member.pid})
            figures = await _join(place, folder, size)
            await until_at_rest([process.pid])
            uses = meter.use()
        figures["one pod changes"] = _one_pod(size)
        figures["control plane, resident"] = uses[CONTROL_PLANE].resident
        costs = {
            "CPU of control plane, s": uses[CONTROL_PLANE].cpu_seconds,
            "one pod changes, µs": figures["one pod changes"],
        }
        return Measurement(figures=figures, processes=uses, costs=costs)


async def _join(place: Place, folder: Path, nodes: int) -> dict[str, float]:
    config = load_config(folder / "admin.kubeconfig")
    async with connected(plane_config(place.folder)) as control, connected(config) as member:
        clusters = Informer(control, Cluster.gvr)
        clusters.start()
        await clusters.wait_synced()

        def found() -> Obj:
            return clusters.get(Key("", _NAME)) or {"spec": {}}

        began = time.perf_counter()
        await join(control, member, Joining.to(config, _NAME))
        await clusters.until(lambda: is_ready(found()))
        ready = time.perf_counter() - began
        await clusters.until(lambda: _counted(found()) == nodes)
        summed = time.perf_counter() - began
        await clusters.stop()
    return {"Ready": ready, "first summary": summed}


def _counted(cluster: Obj) -> int:
    total: int = ((cluster.get("status") or {}).get("nodeSummary") or {}).get("totalNum", 0)
    return total


def _one_pod(nodes: int) -> float:
    """What one changed pod costs beside so many others."""
    summary = Summary()
    summary.grade_by(default_resource_models())
    pods = nodes * PODS_PER_NODE
    for number in range(nodes):
        summary.node_changed(None, slim_node(node_object(number)))
    for number in range(pods):
        summary.pod_changed(None, slim_pod(pod_object(number, number % nodes)))
    before, after = pod_object(pods, 0), pod_object(pods, 1)
    began = time.process_time()
    for number in range(_CHANGES):
        new, old = (after, before) if number % 2 else (before, after)
        summary.pod_changed(None if number == 0 else slim_pod(old), slim_pod(new))
    return (time.process_time() - began) / _CHANGES * 1e6


def node_object(number: int) -> Obj:
    conditions = [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}]
    size = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    metadata = {"name": f"node-{number}", "uid": f"n{number}", "resourceVersion": "1"}
    return {"metadata": metadata, "status": {"allocatable": size, "capacity": size, "conditions": conditions}}


def pod_object(number: int, node: int) -> Obj:
    requests = {"cpu": "100m", "memory": "128Mi"}
    metadata = {"name": f"web-{number}", "namespace": "default", "uid": f"p{number}", "resourceVersion": "1"}
    container = {"name": "web", "image": "nginx", "resources": {"requests": requests}}
    return {
        "metadata": metadata,
        "spec": {"nodeName": f"node-{node}", "containers": [container]},
        "status": {"phase": "Running"},
    }


# the member


async def _serve(folder: Path, nodes: int) -> None:
    from karmada.kube.server.app import ApiServer
    from karmada.kube.server.config import ServerConfig

    server = ApiServer(
        ServerConfig(
            data_dir=folder,
            storage="memory://",
            port=0,
            context=_NAME,
            disabled_admission=frozenset({"ServiceAccount"}),
        )
    )
    await server.start()
    client = server.client(user_agent="benchmarks")
    for number in range(nodes):
        await client.create(GVR("", "v1", "nodes"), new_object("Node", node_object(number)))
    for number in range(nodes * PODS_PER_NODE):
        await client.create(GVR("", "v1", "pods"), new_object("Pod", pod_object(number, number % nodes)))
    print("ready", flush=True)
    await asyncio.Event().wait()


def new_object(kind: str, obj: Obj) -> Obj:
    metadata = {key: value for key, value in obj["metadata"].items() if key in ("name", "namespace")}
    return {"apiVersion": "v1", "kind": kind, **obj, "metadata": metadata}


def main() -> None:
    import uvloop

    folder, nodes = sys.argv[1:]
    uvloop.run(_serve(Path(folder), int(nodes)))


if __name__ == "__main__":
    main()
