"""A server whose state is replaced by an older copy of itself: who saw what is lost is asked to list again."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from karmada.kube.objects.errors import Expired
from karmada.kube.objects.gvrs import CONFIG_MAPS
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig
from tests.support.running import run_server


def on_disk(folder: Path) -> Any:
    return run_server(ApiServer(ServerConfig(data_dir=folder, port=0, controllers=False)))


async def create(server: ApiServer, *names: str) -> list[str]:
    written = [
        await server.client().create(CONFIG_MAPS, {"metadata": {"name": name}, "data": {}}, "default") for name in names
    ]
    return [obj["metadata"]["resourceVersion"] for obj in written]


async def watched(server: ApiServer, since: str) -> str:
    """Return the name that a watch delivers first."""
    stream = await server.client().watch(CONFIG_MAPS, "default", resource_version=since)
    async for _, obj in stream:
        return str(obj["metadata"]["name"])
    raise AssertionError("the watch ended")


async def test_what_was_seen_of_a_lost_history_has_expired_and_the_rest_goes_on(tmp_path: Path) -> None:
    data, snapshot = tmp_path / "data", tmp_path / "snapshot"
    async with on_disk(data) as server:
        [first, second] = await create(server, "a", "b")
        shutil.copytree(data, snapshot)  # while it runs, as a snapshot of a volume is made
        lost = await create(server, "c", "d", "e")
    shutil.rmtree(data)
    snapshot.rename(data)
    async with on_disk(data) as server:
        [after] = await create(server, "f")
        for revision in lost:
            with pytest.raises(Expired, match=f"too old resource version: {revision}"):
                await watched(server, revision)
            with pytest.raises(Expired, match="The resourceVersion for the provided list is too old"):
                await server.client().list(CONFIG_MAPS, resource_version=revision, resource_version_match="Exact")
            listed = await server.client().list(CONFIG_MAPS, "default", resource_version=revision)
            assert [item["metadata"]["name"] for item in listed["items"]] == ["a", "b", "f"]
        assert await watched(server, first) == "b"
        assert await watched(server, second) == "f"
    async with on_disk(data) as server:
        await create(server, "g")
        assert await watched(server, after) == "g"
