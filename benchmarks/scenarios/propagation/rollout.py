"""Propagation: from a Deployment and a policy in the control plane to the Deployment in two members.

The members are bare API servers in a process of their own (`python -m bench.propagation members FOLDER COUNT`), reached
over TLS; the control plane is a process, too, and this one is the client that makes the objects and looks for them in
the members. All of them share the machine's cores.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvloop

from bench.report import show
from bench.server import cpu_seconds, resident_mb

MEMBERS = 2
_SINGLE = 50


def measure(share: float) -> None:
    for objects in (1_000, 10_000):
        uvloop.run(_run(int(objects * share), latency=objects == 1_000))


@contextmanager
def _process(*arguments: str, says: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen([sys.executable, "-m", *arguments], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        if says not in line:
            raise RuntimeError(f"{arguments[0]} did not start: {line!r}")
        yield process
    finally:
        process.terminate()
        process.wait(30)


def _deployment(name: str) -> Any:
    labels = {"app": name}
    container = {
        "name": "web",
        "image": "nginx:1.27",
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default", "labels": {"bench": "propagation"}},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


_POLICY = {
    "apiVersion": "policy.karmada.io/v1alpha1",
    "kind": "PropagationPolicy",
    "metadata": {"name": "all", "namespace": "default"},
    "spec": {
        "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
        "placement": {"clusterAffinity": {"clusterNames": [f"member{number}" for number in range(MEMBERS)]}},
    },
}


async def _run(objects: int, *, latency: bool) -> None:
    from karmada.joining.join import Joining, join
    from karmada.kube.client.client import Client
    from karmada.kube.client.https import HttpsTransport
    from karmada.kube.client.kubeconfig import load_config
    from karmada.kube.objects.gvk import GVR
    from karmada.kube.runtime.informer import Informer

    deployments = GVR("apps", "v1", "deployments")
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as place,
        _process("bench.propagation", "members", place, str(MEMBERS), says="ready") as members,
        _process("karmada.components.karmada", "--data-dir", f"{place}/plane", "--port", "0", says="at") as plane,
    ):
        transports = [HttpsTransport(load_config(f"{place}/plane/admin.kubeconfig"))]
        control = Client(transports[0])
        arrivals = []
        for number in range(MEMBERS):
            config = load_config(f"{place}/member{number}/admin.kubeconfig")
            transports.append(HttpsTransport(config))
            member = Client(transports[-1])
            await join(control, member, Joining.to(config, f"member{number}"))
            informer = Informer(member, deployments, metadata_only=True)
            informer.start()
            await informer.wait_synced()
            arrivals.append(informer)
        await control.create(GVR("policy.karmada.io", "v1alpha1", "propagationpolicies"), _POLICY)
        await _until_ready(control)
        if latency:
            await _latency(control, arrivals, deployments)
        before = [len(informer) for informer in arrivals]
        limit = asyncio.Semaphore(64)

        async def make(number: int) -> None:
            async with limit:
                await control.create(deployments, _deployment(f"web-{number:06d}"))

        began = time.perf_counter()
        busy = [cpu_seconds(process.pid) for process in (plane, members)]
        await asyncio.gather(*(make(number) for number in range(objects)))
        made = time.perf_counter() - began
        for informer, count in zip(arrivals, before, strict=True):
            await informer.until(lambda informer=informer, count=count: len(informer) >= count + objects)
        seconds = time.perf_counter() - began
        name = f"{objects:,} Deployments × {MEMBERS}"
        show(
            f"Works/s, {name}",
            objects * MEMBERS / seconds,
            f"all made after {made:.1f} s, all there after {seconds:.1f} s",
        )
        await asyncio.sleep(2)
        for who, process, before_cpu in zip(("control plane", "members"), (plane, members), busy, strict=True):
            used = cpu_seconds(process.pid) - before_cpu
            show(f"… CPU of the {who} per Work, ms", used / (objects * MEMBERS) * 1e3)
        show(f"… control plane with {objects:,} Deployments, MB", resident_mb(plane.pid))
        show("… members, MB", resident_mb(members.pid))
        for informer in arrivals:
            await informer.stop()
        for transport in transports:
            await transport.close()


async def _until_ready(control: Any) -> None:
    from karmada.api.cluster import Cluster
    from karmada.kube.runtime.informer import Informer

    informer = Informer(control, Cluster.gvr)
    informer.start()
    await informer.wait_synced()

    def ready() -> bool:
        found = informer.list()
        return len(found) == MEMBERS and all(
            any(c["type"] == "Ready" and c["status"] == "True" for c in cluster.get("status", {}).get("conditions", ()))
            and not cluster["spec"].get("taints")
            for cluster in found
        )

    await informer.until(ready)
    await informer.stop()


async def _latency(control: Any, arrivals: list[Any], deployments: Any) -> None:
    from karmada.kube.runtime.keys import Key

    taken = []
    for number in range(_SINGLE):
        name = f"single-{number}"
        key = Key("default", name)
        began = time.perf_counter()
        await control.create(deployments, _deployment(name))
        for informer in arrivals:
            await informer.until(lambda informer=informer, key=key: informer.get(key) is not None)
        taken.append((time.perf_counter() - began) * 1e3)
        await asyncio.sleep(0.05)
    show("one Deployment to both members: p50, ms", statistics.median(taken), f"max {max(taken):.1f}")


async def _serve(folder: Path, count: int) -> None:
    from karmada.kube.runtime.tuning import tune_garbage_collection
    from karmada.kube.server.app import ApiServer
    from karmada.kube.server.config import ServerConfig

    tune_garbage_collection()
    for number in range(count):
        server = ApiServer(ServerConfig(data_dir=folder / f"member{number}", storage="memory://", port=0))
        await server.start()
    print("ready", flush=True)
    await asyncio.Event().wait()


def main() -> None:
    _, folder, count = sys.argv[1:]
    uvloop.run(_serve(Path(folder), int(count)))


if __name__ == "__main__":
    main()
