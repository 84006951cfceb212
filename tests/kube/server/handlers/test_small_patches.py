"""A small patch of a large object: what it costs on the event loop does not grow with the object."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest

from karmada.kube.client.client import Client
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.gvk import GVR
from karmada.kube.runtime.aside import LARGE
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig
from tests.support.counting import counted_calls

CONFIG_MAPS = GVR("", "v1", "configmaps")


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    api = ApiServer(ServerConfig(data_dir=tmp_path, storage="memory://", port=0), FakeClock())
    await api.start()
    yield api.client(user_agent="test")
    await api.stop()


@pytest.mark.parametrize("type_", ["merge", "strategic", "json"])
async def test_a_small_patch_of_a_large_object_runs_aside(client: Client, type_: str) -> None:
    async def calls_on_the_loop(keys: int) -> int:
        data = {f"key-{n}": "x" * 20 for n in range(keys)}
        assert len(orjson.dumps(data)) > LARGE
        name = f"of-{keys}"
        await client.create(CONFIG_MAPS, {"metadata": {"name": name}, "data": data}, "default")
        patch = [{"op": "add", "path": "/data/a", "value": "b"}] if type_ == "json" else {"data": {"a": "b"}}
        with counted_calls() as calls:
            patched = await client.patch(CONFIG_MAPS, name, "default", patch, type=type_)
        assert patched["data"]["a"] == "b"
        return calls.count

    few = await calls_on_the_loop(3000)
    assert await calls_on_the_loop(6000) < few + 1000
