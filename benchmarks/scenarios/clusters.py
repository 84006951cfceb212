"""Cluster status: a fleet with dead members, and one member with very many nodes and pods.

The members live in a process of their own (`python -m bench.clusters members FOLDER COUNT NODES PODS`), reached over
TLS; the control plane is in this one, so its CPU time is what is measured here.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvloop

from bench.report import show
from bench.server import resident_mb

_DEAD_SHARE = 5
"""One in so many members is dead, half of those by hanging."""
_REST_SECONDS = 30.0


def measure(share: float) -> None:
    uvloop.run(_fleet(max(5, int(100 * share))))
    uvloop.run(_large_member(int(5_000 * share), int(20_000 * share)))


@contextmanager
def members(folder: Path, count: int, *, nodes: int = 3, pods: int = 0) -> Iterator[Path]:
    """Simulated clusters member0, member1, … in another process; their common kubeconfig."""
    command = [sys.executable, "-m", "bench.clusters", "members", str(folder), str(count), str(nodes), str(pods)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        if process.stdout.readline().strip() != "ready":
            raise RuntimeError("the members did not start")
        yield folder / "members.config"
    finally:
        process.terminate()
        process.wait(30)


async def _plane(folder: Path) -> Any:
    from karmada.components.controlplane import ControlPlane
    from karmada.kube.server.config import ServerConfig

    plane = ControlPlane(ServerConfig(data_dir=folder / "plane", port=0))
    await plane.start()
    return plane


async def _join(plane: Any, kubeconfig: Path, name: str) -> None:
    from karmada.joining.join import Joining, join
    from karmada.kube.client.client import Client
    from karmada.kube.client.https import HttpsTransport
    from karmada.kube.client.kubeconfig import load_config

    config = load_config(kubeconfig, context=name)
    transport = HttpsTransport(config)
    try:
        await join(plane.server.client(user_agent="bench"), Client(transport), Joining.to(config, name))
    finally:
        await transport.close()


def _clusters(plane: Any) -> list[Any]:
    from karmada.api.cluster import Cluster

    found: list[Any] = plane.manager.informers.of(Cluster.gvr).list()
    return found


def _ready(cluster: Any, status: str = "True") -> bool:
    conditions = cluster.get("status", {}).get("conditions", ())
    return any(c["type"] == "Ready" and c["status"] == status for c in conditions)


async def _until(plane: Any, condition: Callable[[], bool], seconds: float = 120.0) -> None:
    from karmada.api.cluster import Cluster

    async with asyncio.timeout(seconds):
        await plane.manager.informers.of(Cluster.gvr).until(condition)


async def _fleet(count: int) -> None:
    from karmada.kube.sim.admin_client import AdminClient

    note = "" if count == 100 else f"(with {count})"
    with tempfile.TemporaryDirectory(prefix="bench-") as place, members(Path(place) / "sim", count) as kubeconfig:
        plane = await _plane(Path(place))
        began = time.perf_counter()
        await _join(plane, kubeconfig, "member0")
        await _until(plane, lambda: all(map(_ready, _clusters(plane))))
        show("one cluster joined and Ready, s", time.perf_counter() - began)
        began = time.perf_counter()
        for number in range(1, count):
            await _join(plane, kubeconfig, f"member{number}")
        await _until(plane, lambda: len(_clusters(plane)) == count and all(map(_ready, _clusters(plane))))
        show("100 clusters joined one by one and Ready, s", time.perf_counter() - began, note)
        admin = AdminClient(Path(place) / "sim")
        dead = range(0, count, _DEAD_SHARE)
        for number in dead:
            fault = {"type": "down" if number % 10 else "black-hole"}
            await asyncio.to_thread(admin.ask, "POST", f"/clusters/member{number}/faults", {"fault": fault})
        await _until(plane, lambda: sum(_ready(c, "False") for c in _clusters(plane)) == len(dead))
        busy, since = time.process_time(), time.perf_counter()
        await asyncio.sleep(_REST_SECONDS)
        cpu = 100 * (time.process_time() - busy) / (time.perf_counter() - since)
        alive = sum(_ready(c) for c in _clusters(plane))
        show("of 100 clusters, 20 dead: Ready", alive, note)
        show("… CPU of the control plane at rest, %", cpu, note)
        show("… resident size of the control plane, MB", resident_mb("self"), note)
        await plane.stop()


async def _large_member(nodes: int, pods: int) -> None:
    note = f"({nodes:,} nodes, {pods:,} pods)"
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as place,
        members(Path(place) / "sim", 1, nodes=nodes, pods=pods) as kubeconfig,
    ):
        plane = await _plane(Path(place))
        began = time.perf_counter()
        await _join(plane, kubeconfig, "member0")
        await _until(plane, lambda: all(map(_ready, _clusters(plane))))
        show("a large member: Ready, s", time.perf_counter() - began, note)

        def counted() -> bool:
            summary = _clusters(plane)[0]["status"].get("nodeSummary") or {}
            return bool(summary.get("totalNum") == nodes)

        await _until(plane, counted)
        show("… first summary, s", time.perf_counter() - began)
        await plane.stop()
    _one_pod(nodes, pods)


def _one_pod(nodes: int, pods: int) -> None:
    """What one changed pod costs beside so many others."""
    from karmada.api.cluster import default_resource_models
    from karmada.controllers.cluster_status.summary import Summary, slim_node, slim_pod

    summary = Summary()
    summary.grade_by(default_resource_models())
    for number in range(nodes):
        summary.node_changed(None, slim_node(_node(number)))
    for number in range(pods):
        summary.pod_changed(None, slim_pod(_pod(number, number % nodes)))
    changes = 20_000
    before, after = _pod(pods, 0), _pod(pods, 1)
    began = time.perf_counter()
    for number in range(changes):
        new, old = (after, before) if number % 2 else (before, after)
        summary.pod_changed(None if number == 0 else slim_pod(old), slim_pod(new))
    show("… one pod changes, µs", (time.perf_counter() - began) / changes * 1e6)


def _node(number: int) -> Any:
    conditions = [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}]
    size = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    meta = {"name": f"node-{number}", "uid": f"n{number}", "resourceVersion": "1"}
    return {"metadata": meta, "status": {"allocatable": size, "capacity": size, "conditions": conditions}}


def _pod(number: int, node: int) -> Any:
    requests = {"cpu": "100m", "memory": "128Mi"}
    meta = {"name": f"web-{number}", "namespace": "default", "uid": f"p{number}", "resourceVersion": "1"}
    container = {"name": "web", "image": "nginx", "resources": {"requests": requests}}
    return {
        "metadata": meta,
        "spec": {"nodeName": f"node-{node}", "containers": [container]},
        "status": {"phase": "Running"},
    }


async def _serve_members(folder: Path, count: int, nodes: int) -> None:
    from karmada.kube.sim.admin import AdminServer
    from karmada.kube.sim.fleet import Fleet, Stored
    from karmada.kube.sim.profile import NodePool, Profile

    fleet = Fleet(folder, in_memory=True)
    await fleet.start()
    stopping = asyncio.Event()
    admin = AdminServer(fleet, stopping.set)
    await admin.start()
    for number in range(count):
        profile = Profile(f"member{number}", pools=(NodePool(count=nodes),))
        await fleet.create(Stored(profile=profile))
    print("ready", flush=True)
    await stopping.wait()


async def _serve_large(folder: Path, nodes: int, pods: int) -> None:
    """An API server with so many objects and nobody who works on them: their number is what matters here."""
    from karmada.kube.objects.gvk import GVR
    from karmada.kube.server.app import ApiServer
    from karmada.kube.server.config import ServerConfig

    server = ApiServer(
        ServerConfig(
            data_dir=folder,
            storage="memory://",
            port=0,
            context="member0",
            disabled_admission=frozenset({"ServiceAccount"}),
        )
    )
    await server.start()
    client = server.client(user_agent="bench")
    for number in range(nodes):
        await client.create(GVR("", "v1", "nodes"), _new("Node", _node(number)))
    for number in range(pods):
        await client.create(GVR("", "v1", "pods"), _new("Pod", _pod(number, number % nodes)))
    (folder / "members.config").write_bytes(server.kubeconfig.read_bytes())
    print("ready", flush=True)
    await asyncio.Event().wait()


def _new(kind: str, obj: Any) -> Any:
    metadata = {key: value for key, value in obj["metadata"].items() if key in ("name", "namespace")}
    return {"apiVersion": "v1", "kind": kind, **obj, "metadata": metadata}


def main() -> None:
    _, folder, count, nodes, pods = sys.argv[1:]
    if int(pods):
        uvloop.run(_serve_large(Path(folder), int(nodes), int(pods)))
    else:
        uvloop.run(_serve_members(Path(folder), int(count), int(nodes)))


if __name__ == "__main__":
    main()
