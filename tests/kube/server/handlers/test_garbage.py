"""Writes leave nothing for the garbage collector: a cycle in what a request makes keeps its objects and costs time."""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from karmada.kube.client.client import Client
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig
from tests.support.cases import cases

CONFIGMAPS = GVR("", "v1", "configmaps")
TIMES = 20


def config_map(number: int) -> Obj:
    meta = {"name": f"c{number}", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"a": str(number)}}


def patching(form: str, body: Callable[[int], Any]) -> Callable[[Client, int], Awaitable[object]]:
    return lambda client, number: client.patch(CONFIGMAPS, "p", "default", body(number), type=form)


def annotated(number: int) -> Obj:
    return {"metadata": {"annotations": {"r": str(number)}}}


@cases(
    lambda client, number: client.create(CONFIGMAPS, config_map(number)),
    lambda client, number: client.update(CONFIGMAPS, {**config_map(0), "data": {"a": str(number)}}),
    patching("merge", annotated),
    patching("strategic", annotated),
    patching("json", lambda number: [{"op": "add", "path": "/data", "value": {"a": str(number)}}]),
    ids=["create", "update", "merge patch", "strategic merge patch", "JSON patch"],
)
async def test_a_write_leaves_no_cycles(write: Callable[[Client, int], Awaitable[object]], tmp_path: Path) -> None:
    server = ApiServer(ServerConfig(data_dir=tmp_path, storage="memory://", port=0))
    await server.start()
    try:
        client = server.client(user_agent="test")
        await client.create(CONFIGMAPS, config_map(0))
        await client.create(CONFIGMAPS, {**config_map(0), "metadata": {"name": "p", "namespace": "default"}})
        await write(client, 1)
        gc.collect()
        gc.disable()
        for number in range(2, 2 + TIMES):
            await write(client, number)
        assert gc.collect() < TIMES, "objects that only the collector could free"
    finally:
        gc.enable()
        await server.stop()
