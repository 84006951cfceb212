"""An informer that holds many objects, over TLS and in the server's process.

How long until it does, what it weighs, and how long an update takes from the write to its handler at 500 a second.
"""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from pathlib import Path

from benchmarks.processes import Meter, memory
from benchmarks.scenario import Figure, Measurement, Place, Sizes
from benchmarks.servers import running
from benchmarks.timings import percentile
from karmada.kube.client.client import Client
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.kubeconfig import load_config
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.tuning import tune_garbage_collection
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig
from karmada.kube.server.storage.sqlite import SqliteStore
from karmada.kube.server.watchcache.entry import encode_value, storage_key

_CONFIG_MAPS = GVR("", "v1", "configmaps")
_UPDATES_PER_SECOND = 500
_UPDATES = 1_000
_BATCH = 1_000
_STEPS = (10_000, 30_000, 100_000)
_SERVER, _INFORMER = "API server", "informer"
TLS, IN_PROCESS = "TLS", "in-process"


class Informers:
    name = "informers"
    title = "One informer of many objects"
    counted = "ConfigMaps"
    sizes = Sizes(quick=2_000, base=10_000)
    foreign = False
    figures = (
        Figure(name="server starts with them", unit="s"),
        Figure(name="sync, TLS", unit="s"),
        Figure(name="memory of the cache, TLS", unit="MiB"),
        Figure(name="update to handler, TLS: half within", unit="ms", goals=dict.fromkeys(_STEPS, 5)),
        Figure(name="update to handler, TLS: 99 of 100 within", unit="ms"),
        Figure(name="sync, in-process", unit="s"),
        Figure(name="update to handler, in-process: half within", unit="ms", goals=dict.fromkeys(_STEPS, 1)),
        Figure(name="update to handler, in-process: 99 of 100 within", unit="ms"),
    )

    async def run(self, size: int, place: Place) -> Measurement:
        data = place.folder / "server"
        data.mkdir(mode=0o700)
        await _fill(data, size)
        tune_garbage_collection()
        figures = {}
        with running("karmada.components.apiserver", data) as server:
            figures["server starts with them"] = server.seconds_to_ready
            meter = Meter({_SERVER: server.process.pid, _INFORMER: os.getpid()})
            client = Client(HttpTransport(load_config(server.kubeconfig)))
            try:
                figures |= await _follow(client, TLS)
            finally:
                await client.close()
            uses = meter.use()
        figures |= await _in_process(data)
        costs = {"sync over TLS, s": figures["sync, TLS"], "sync in-process, s": figures["sync, in-process"]}
        del figures["memory of the cache, in-process"]
        return Measurement(figures=figures, processes=uses, costs=costs)


def _config_map(number: int) -> Obj:
    metadata = {
        "name": f"item-{number:06d}",
        "namespace": "default",
        "uid": str(uuid.uuid4()),
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {"app": f"app-{number % 100}"},
    }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": "x" * 50}}


async def _fill(data: Path, objects: int) -> None:
    """Put the objects into a server's store before it starts."""
    store = SqliteStore(data / "state.db")
    await store.open()
    for first in range(0, objects, _BATCH):
        items = [_config_map(number) for number in range(first, min(first + _BATCH, objects))]
        keys = [storage_key(_CONFIG_MAPS.group_resource, "default", item["metadata"]["name"]) for item in items]
        writes = [store.write(key, encode_value(item), expected=0) for key, item in zip(keys, items, strict=True)]
        await asyncio.gather(*writes)
    await store.close()


async def _follow(client: Client, way: str) -> dict[str, float]:
    """Sync an informer, then time updates at a steady rate."""
    informer = Informer(client, _CONFIG_MAPS, "default")
    sent: dict[str, float] = {}
    taken: list[float] = []

    def on_event(old: Obj | None, new: Obj | None) -> None:
        if old is not None and new is not None and (began := sent.pop(new["metadata"]["name"], None)):
            taken.append((time.perf_counter() - began) * 1e3)

    informer.add_handler(on_event)
    before, began = memory(os.getpid())[0], time.perf_counter()
    informer.start()
    await informer.wait_synced()
    seconds = time.perf_counter() - began
    weight = memory(os.getpid())[0] - before
    begin = time.perf_counter()
    for number in range(_UPDATES):
        name = f"item-{number:06d}"
        sent[name] = time.perf_counter()
        await client.patch(_CONFIG_MAPS, name, "default", {"data": {"value": f"{way} {number}"}})
        await asyncio.sleep(max(0.0, begin + (number + 1) / _UPDATES_PER_SECOND - time.perf_counter()))
    await informer.until(lambda: len(taken) >= _UPDATES)
    await informer.stop()
    return {
        f"sync, {way}": seconds,
        f"memory of the cache, {way}": weight,
        f"update to handler, {way}: half within": percentile(taken, 0.5),
        f"update to handler, {way}: 99 of 100 within": percentile(taken, 0.99),
    }


async def _in_process(data: Path) -> dict[str, float]:
    server = ApiServer(ServerConfig(data_dir=data, port=0))
    await server.start()
    try:
        return await _follow(server.client(), IN_PROCESS)
    finally:
        await server.stop()
