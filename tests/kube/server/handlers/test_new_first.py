"""Lists in the server's process whose order does not matter: what is new does not wait for what was there before."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from karmada.kube.client.client import Client
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.shapes import WHOLE
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig

CONFIG_MAPS = GVR("", "v1", "configmaps")
AUTOSCALERS = GVR("autoscaling", "v2", "horizontalpodautoscalers")
OLD_AUTOSCALERS = GVR("autoscaling", "v1", "horizontalpodautoscalers")
CREATED = {"labels": {"of": "test"}}


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    """Of a server that has a, b and c from before its start; since then b was changed and z was created."""
    first = await started(tmp_path)
    for name in "abc":
        await create(first.client(), name)
    await first.stop()
    server = await started(tmp_path)
    client = server.client()
    for kind in (CONFIG_MAPS, AUTOSCALERS):
        await client.patch(kind, "b", "default", {"metadata": {"annotations": {"changed": "yes"}}})
    await create(client, "z")
    yield client
    await server.stop()


async def started(folder: Path) -> ApiServer:
    server = ApiServer(ServerConfig(data_dir=folder, storage=f"sqlite://{folder}/s.db?sync=off", port=0), FakeClock())
    await server.start()
    return server


async def create(client: Client, name: str) -> None:
    await client.create(CONFIG_MAPS, {"metadata": {"name": name, **CREATED}}, "default")
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    await client.create(
        AUTOSCALERS, {"metadata": {"name": name}, "spec": {"scaleTargetRef": target, "maxReplicas": 2}}, "default"
    )


async def pages(client: Client, kind: GVR = CONFIG_MAPS, *, new_first: bool = True, selector: str = "") -> list[str]:
    """The names of each page, two at most if there are pages."""
    found = client.pages(kind, "default", page_size=2, new_first=new_first, label_selector=selector)
    return ["".join(item["metadata"]["name"] for item in page.items if mine(item)) async for page in found]


def mine(obj: Obj) -> bool:
    return obj["metadata"]["name"] != "kube-root-ca.crt"


async def test_what_was_written_since_the_start_comes_first_and_all_in_one_page(client: Client) -> None:
    assert await pages(client) == ["bzac"]


async def test_others_get_pages_by_name(client: Client) -> None:
    assert "".join(await pages(client, new_first=False)) == "abcz"
    assert len(await pages(client, new_first=False)) > 1


async def test_a_selection_is_made_page_by_page_since_objects_are_read_for_it(client: Client) -> None:
    assert await pages(client, selector="of=test") == ["ab", "cz"]


async def test_another_version_is_made_page_by_page(client: Client) -> None:
    assert await pages(client, AUTOSCALERS) == ["bzac"]
    assert await pages(client, OLD_AUTOSCALERS) == ["ab", "cz"]


@pytest.mark.parametrize("paged", [True, False])
async def test_handlers_of_an_informer_see_it_first(client: Client, paged: bool) -> None:
    seen: list[str] = []
    informer = Informer(client, CONFIG_MAPS, "default", shape=WHOLE._replace(paged=paged))
    informer.add_handler(lambda _, new: seen.append(new["metadata"]["name"]) if new and mine(new) else None)
    informer.start()
    await informer.wait_synced()
    assert "".join(seen) == "bzac"
    await informer.stop()
