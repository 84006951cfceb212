from __future__ import annotations

import pytest

from karmada.kube.client.client import Client
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import Conflict
from karmada.kube.objects.gvrs import CONFIG_MAPS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.writes import (
    add_finalizer,
    delete_if_exists,
    patch_if_changed,
    remove_finalizer,
    retry_on_conflict,
    set_status,
)
from tests.support.fake_api import FakeApi

WANTED: Obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "ns"}}


def writes(fake: FakeApi) -> list[str]:
    return [call.method for call in fake.calls if call.method != "GET"]


async def test_a_patch_carries_the_difference_and_an_empty_one_is_not_sent(client: Client, fake: FakeApi) -> None:
    old = await client.create(CONFIG_MAPS, {**WANTED, "data": {"a": "1", "b": "2", "c": "3"}})
    assert (await patch_if_changed(client, CONFIG_MAPS, old, copy_json(old))).outcome == "unchanged"
    new = {**old, "data": {"a": "1", "b": "9", "d": "4"}}
    written = await patch_if_changed(client, CONFIG_MAPS, old, new)
    assert fake.calls[-1].body == {"data": {"b": "9", "c": None, "d": "4"}}
    assert written.object["data"] == new["data"]
    with pytest.raises(Conflict):
        await patch_if_changed(client, CONFIG_MAPS, old, {**old, "data": {}}, locked=True)


async def test_a_status_is_written_through_its_subresource_and_only_when_it_differs(
    client: Client, fake: FakeApi
) -> None:
    obj = await client.create(CONFIG_MAPS, WANTED)
    written = await set_status(client, CONFIG_MAPS, obj, {"ready": True})
    assert fake.calls[-1].path.endswith("/a/status")
    assert (await set_status(client, CONFIG_MAPS, written.object, {"ready": True})).outcome == "unchanged"
    assert writes(fake) == ["POST", "PUT"]


async def test_finalizers_come_and_go(client: Client, fake: FakeApi) -> None:
    obj = await client.create(CONFIG_MAPS, WANTED)
    one = (await add_finalizer(client, CONFIG_MAPS, obj, "a.io/x")).object
    two = (await add_finalizer(client, CONFIG_MAPS, one, "a.io/y")).object
    assert two["metadata"]["finalizers"] == ["a.io/x", "a.io/y"]
    assert (await add_finalizer(client, CONFIG_MAPS, two, "a.io/x")).outcome == "unchanged"
    three = (await remove_finalizer(client, CONFIG_MAPS, two, "a.io/x")).object
    assert three["metadata"]["finalizers"] == ["a.io/y"]
    four = (await remove_finalizer(client, CONFIG_MAPS, three, "a.io/y")).object
    assert "finalizers" not in four["metadata"]
    with pytest.raises(Conflict):
        await add_finalizer(client, CONFIG_MAPS, obj, "a.io/z")
    assert await delete_if_exists(client, CONFIG_MAPS, "a", "ns")
    assert not await delete_if_exists(client, CONFIG_MAPS, "a", "ns")
    assert (await remove_finalizer(client, CONFIG_MAPS, three, "a.io/y")).outcome == "unchanged"


async def test_a_finalizer_is_removed_without_a_patch_where_only_updates_are_allowed(
    client: Client, fake: FakeApi
) -> None:
    metadata = {**WANTED["metadata"], "finalizers": ["a.io/x", "a.io/y"]}
    old = await client.create(CONFIG_MAPS, {**WANTED, "metadata": metadata})
    new = (await remove_finalizer(client, CONFIG_MAPS, old, "a.io/x", update=True)).object
    assert new["metadata"]["finalizers"] == ["a.io/y"]
    assert writes(fake) == ["POST", "PUT"]
    with pytest.raises(Conflict):
        await remove_finalizer(client, CONFIG_MAPS, old, "a.io/y", update=True)


async def test_a_conflict_is_tried_again_and_the_last_one_is_raised(clock: FakeClock) -> None:
    import asyncio

    tries = 0

    async def work() -> int:
        nonlocal tries
        tries += 1
        if tries < 4:
            raise Conflict("stale")
        return tries

    running = asyncio.ensure_future(retry_on_conflict(work, clock=clock))
    await clock.advance(10)
    assert await running == 4

    async def never() -> None:
        raise Conflict("stale")

    failing = asyncio.ensure_future(retry_on_conflict(never, clock=clock, tries=3))
    await clock.advance(10)
    with pytest.raises(Conflict):
        await failing
