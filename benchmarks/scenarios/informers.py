"""How long an informer takes to hold many objects, what it costs, and an update's way from the write to its handler."""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from pathlib import Path

from bench.report import show
from bench.server import running
from karmada.kube.client.client import Client
from karmada.kube.client.https import HttpsTransport
from karmada.kube.client.kubeconfig import load_config
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.tuning import tune_garbage_collection
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig
from karmada.kube.server.entry import encode_value, storage_key
from karmada.kube.server.storage.sqlite import SqliteStore

CONFIG_MAPS = GVR("", "v1", "configmaps")
UPDATES_PER_SECOND = 500


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def config_map(number: int) -> Obj:
    meta = {
        "name": f"item-{number:06d}",
        "namespace": "default",
        "uid": str(uuid.uuid4()),
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {"app": f"app-{number % 100}"},
    }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"value": "x" * 50}}


async def fill(data_dir: Path, objects: int) -> None:
    """Put the objects into a server's store before it starts."""
    store = SqliteStore(data_dir / "state.db")
    await store.open()
    for first in range(0, objects, 1000):
        items = [config_map(number) for number in range(first, min(first + 1000, objects))]
        keys = [storage_key(CONFIG_MAPS.group_resource, "default", item["metadata"]["name"]) for item in items]
        writes = [store.write(key, encode_value(item), expected=0) for key, item in zip(keys, items, strict=True)]
        await asyncio.gather(*writes)
    await store.close()


async def follow(client: Client, label: str, updates: int) -> None:
    """Sync an informer, then time updates at a steady rate."""
    informer = Informer(client, CONFIG_MAPS, "default")
    sent: dict[str, float] = {}
    taken: list[float] = []

    def heard(old: Obj | None, new: Obj | None) -> None:
        if old is not None and new is not None and (started := sent.pop(new["metadata"]["name"], None)):
            taken.append(time.perf_counter() - started)

    informer.add_handler(heard)
    before, started = resident_mb(), time.perf_counter()
    informer.start()
    await informer.wait_synced()
    seconds = time.perf_counter() - started
    show(f"informer of {len(informer):,}, {label}: sync, s", seconds, f"+{resident_mb() - before:,.0f} MB")
    begin = time.perf_counter()
    for number in range(updates):
        name = f"item-{number % len(informer):06d}"
        sent[name] = time.perf_counter()
        await client.patch(CONFIG_MAPS, name, "default", {"data": {"value": f"{label} {number}"}})
        await asyncio.sleep(max(0.0, begin + (number + 1) / UPDATES_PER_SECOND - time.perf_counter()))
    await informer.until(lambda: len(taken) >= updates)
    rate = updates / (time.perf_counter() - begin)
    ordered = sorted(taken)
    note = f"at {rate:,.0f} updates/s, p99 {ordered[int(len(ordered) * 0.99)] * 1e3:.2f} ms"
    show(f"update to handler, {label}: p50, ms", ordered[len(ordered) // 2] * 1e3, note)
    await informer.stop()


async def over_tls(kubeconfig: Path, updates: int) -> None:
    client = Client(HttpsTransport(load_config(kubeconfig)))
    try:
        await follow(client, "TLS", updates)
    finally:
        await client.close()


async def in_process(data_dir: Path, updates: int) -> None:
    server = ApiServer(ServerConfig(data_dir=data_dir, port=0))
    await server.start()
    try:
        await follow(server.client(), "in-process", updates)
    finally:
        await server.stop()


async def measure(place: Path, share: float) -> None:
    objects, updates = int(100_000 * share), int(5_000 * share)
    await fill(place, objects)
    tune_garbage_collection()
    with running(core=0, data_dir=place) as server:
        show(f"start with {objects:,} objects, s", server.seconds_to_ready)
        await over_tls(place / "admin.kubeconfig", updates)
    await in_process(place, updates)
