"""`make bench`: the scenarios one after the other; each figure stands beside its goal.

The scenario here is the server: what one on one core does, with SQLite durability on, measured from the other core.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import orjson
import uvloop

from bench import clusters, fleet, informer, propagation, scheduling, scheduling_service
from bench.report import show
from bench.server import Running, running
from bench.wire import Rate, Target, Watcher, run_load

CONNECTIONS = 16


def deployment(name: str, namespace: str = "default") -> bytes:
    labels = {"app": name, "tier": "web"}
    container = {
        "name": "web",
        "image": "nginx:1.27",
        "ports": [{"containerPort": 80}],
        "env": [{"name": "MODE", "value": "production"}],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"cpu": "500m", "memory": "256Mi"}},
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": 80}},
    }
    spec = {
        "replicas": 2,
        "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
    }
    meta = {"name": name, "namespace": namespace, "labels": labels}
    return orjson.dumps({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec})


def latencies(rate: Rate) -> str:
    return f"p50 {rate.percentile(0.5) * 1e3:.2f} ms, p99 {rate.percentile(0.99) * 1e3:.2f} ms"


async def creates(target: Target, total: int) -> None:
    path = "/apis/apps/v1/namespaces/default/deployments"
    rate = await run_load(
        target, CONNECTIONS, total, lambda n: target.request("POST", path, deployment(f"web-{n:06d}")), 201
    )
    show(
        "creates/s",
        rate.per_second,
        f"p50 {rate.percentile(0.5) * 1e3:.1f} ms, p99 {rate.percentile(0.99) * 1e3:.1f} ms",
    )


async def gets(target: Target, total: int, names: int) -> None:
    path = "/apis/apps/v1/namespaces/default/deployments"
    rate = await run_load(
        target, CONNECTIONS, total, lambda n: target.request("GET", f"{path}/web-{n % names:06d}"), 200
    )
    show(
        "gets/s", rate.per_second, f"p50 {rate.percentile(0.5) * 1e3:.2f} ms, p99 {rate.percentile(0.99) * 1e3:.2f} ms"
    )


async def lists(target: Target, objects: int) -> None:
    path = "/apis/apps/v1/namespaces/default/deployments?limit=5000"
    rate = await run_load(target, 1, 10, lambda _: target.request("GET", path), 200)
    show(f"list of {min(objects, 5000):,} Deployments, ms", rate.percentile(0.5) * 1e3)


async def watches(target: Target, watchers: int, events: int) -> None:
    """Events delivered to all watchers, from the first write until the last watcher has the last one."""
    path = "/api/v1/namespaces/default/configmaps"
    received, everything = 0, asyncio.get_running_loop().create_future()

    def on_event(count: int) -> None:
        nonlocal received
        received += count
        if received >= watchers * events and not everything.done():
            everything.set_result(None)

    loop = asyncio.get_running_loop()
    request = target.request("GET", f"{path}?watch=1&labelSelector=bench%3Dwatch")
    opened = []
    for _ in range(watchers):
        _, watcher = await loop.create_connection(
            lambda: Watcher(request, on_event), target.host, target.port, ssl=target.tls
        )
        await watcher.ready()
        opened.append(watcher)
    started = time.perf_counter()

    def make(number: int) -> bytes:
        meta = {"name": f"event-{number}", "labels": {"bench": "watch"}}
        return target.request("POST", path, orjson.dumps({"metadata": meta, "data": {"n": str(number)}}))

    writes = await run_load(target, CONNECTIONS, events, make, 201)
    async with asyncio.timeout(120):
        await everything
    seconds = time.perf_counter() - started
    show(f"events/s to {watchers} watchers", received / seconds, f"while writing {writes.per_second:,.0f}/s")
    for watcher in opened:
        watcher.transport.close()


def measure(server: Running, share: float) -> None:
    objects = int(10_000 * share)
    os.sched_setaffinity(0, {1} if (os.cpu_count() or 1) > 1 else {0})
    uvloop.run(creates(server.target, objects))
    uvloop.run(gets(server.target, int(30_000 * share), objects))
    uvloop.run(lists(server.target, objects))
    show("resident with 10,000 Deployments, MB", server.resident_mb(), "" if share == 1 else f"(with {objects:,})")
    uvloop.run(watches(server.target, 100, int(1_000 * share)))


def server(share: float) -> None:
    everywhere = os.sched_getaffinity(0)
    with tempfile.TemporaryDirectory(prefix="bench-") as place:
        with running(core=0, data_dir=Path(place)) as running_server:
            show("first start (makes certificates), s", running_server.seconds_to_ready)
        with running(core=0, data_dir=Path(place)) as running_server:
            show("cold start, s", running_server.seconds_to_ready)
            try:
                measure(running_server, share)
            finally:
                os.sched_setaffinity(0, everywhere)
        with running(core=0, data_dir=Path(place)) as running_server:
            show("start with those objects, s", running_server.seconds_to_ready)


def informers(share: float) -> None:
    with tempfile.TemporaryDirectory(prefix="bench-") as place:
        uvloop.run(informer.measure(Path(place), share))


SCENARIOS: dict[str, Callable[[float], None]] = {
    "server": server,
    "informers": informers,
    "fleet": fleet.measure,
    "clusters": clusters.measure,
    "scheduling": scheduling.measure,
    "scheduler": scheduling_service.measure,
    "propagation": propagation.measure,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the load")
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=f"of: {', '.join(SCENARIOS)}; all by default")
    asked = parser.parse_args()
    unknown = [name for name in asked.scenarios if name not in SCENARIOS]
    if unknown:
        parser.error(f'unknown scenario "{unknown[0]}" (known: {", ".join(SCENARIOS)})')
    print(f"python {sys.version.split()[0]}, {os.cpu_count()} cores")
    for name in asked.scenarios or SCENARIOS:
        print(f"-- {name}", flush=True)
        SCENARIOS[name](0.1 if asked.quick else 1.0)


if __name__ == "__main__":
    main()
