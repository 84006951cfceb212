"""Informers that keep little of many objects: transformed page by page as they are listed."""

from __future__ import annotations

import asyncio

import pytest

from karmada.kube.client.client import PAGE_SIZE, Client
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.gvrs import CONFIG_MAPS
from karmada.kube.objects.shapes import Shape
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.event_filter import Handler
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.keys import Key
from tests.support.eventually import LIMIT, eventually
from tests.support.fake_api import FakeApi, FakeTransport

COUNT = PAGE_SIZE * 2 + 7


def slim(obj: Obj) -> Obj:
    meta = obj["metadata"]
    kept = {name: meta[name] for name in ("name", "namespace", "uid", "resourceVersion")}
    return {"metadata": kept, "size": len((obj.get("data") or {}).get("text", ""))}


SLIM = Shape.summary(slim)


def plain(obj: Obj) -> Obj:
    return {**obj, "data": {}}


async def fill(client: Client, count: int) -> None:
    for number in range(count):
        await client.create(CONFIG_MAPS, config_map(f"c{number}", "x" * (number % 5)))


def config_map(name: str, text: str) -> Obj:
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"text": text}}


async def test_a_paged_informer_lists_in_pages_and_keeps_what_its_shape_makes(
    fake: FakeApi, client: Client, clock: FakeClock
) -> None:
    await fill(client, COUNT)
    informer = Informer(client, CONFIG_MAPS, clock=clock, shape=SLIM)
    fake.calls.clear()
    informer.start()
    await informer.wait_synced()
    assert len([call for call in fake.calls if call.query.get("limit") == str(PAGE_SIZE)]) == 3
    assert len(informer) == COUNT
    assert all(set(obj) == {"metadata", "size"} for obj in informer.list())
    await client.create(CONFIG_MAPS, config_map("late", "four"))
    await eventually(lambda: (informer.get(Key("default", "late")) or {}).get("size") == 4)
    await informer.stop()


@pytest.mark.parametrize("shape", [SLIM, Shape("plain", plain, as_docs=True)], ids=lambda shape: shape.name)
async def test_a_paged_informer_that_lists_again_emits_only_what_changed(
    fake: FakeApi, client: Client, clock: FakeClock, shape: Shape
) -> None:
    await fill(client, 3)
    informer = Informer(client, CONFIG_MAPS, clock=clock, shape=shape)
    informer.start()
    await informer.wait_synced()
    seen: list[tuple[Obj | None, Obj | None]] = []
    informer.add_handler(lambda old, new: seen.append((old, new)))
    seen.clear()
    fake.break_watches()
    await client.create(CONFIG_MAPS, config_map("new", ""))
    await client.delete(CONFIG_MAPS, "c0", "default")
    fake.compact()
    async with asyncio.timeout(LIMIT):
        while len(seen) < 2:
            await clock.advance(1)
    names = {(old or {}).get("metadata", {}).get("name"): new is None for old, new in seen}
    assert names == {"c0": True, None: False}
    await informer.stop()


async def test_who_waits_without_a_task_is_called_once_when_the_informer_has_synced(
    client: Client, clock: FakeClock
) -> None:
    informer = Informer(client, CONFIG_MAPS, clock=clock)
    calls: list[str] = []
    informer.when_synced(lambda: calls.append("before"))
    assert calls == []
    informer.start()
    await informer.wait_synced()
    assert calls == ["before"]
    informer.when_synced(lambda: calls.append("after"))
    assert calls == ["before", "after"]
    await informer.stop()


async def test_whole_and_slim_objects_are_kept_apart(client: Client, clock: FakeClock) -> None:
    informers = Informers(client, clock=clock)
    whole = informers.of(CONFIG_MAPS)
    kept = informers.of(CONFIG_MAPS, shape=SLIM)
    assert kept is not whole
    assert informers.of(CONFIG_MAPS, shape=SLIM) is kept
    assert informers.of(CONFIG_MAPS) is whole


async def test_existing_objects_are_delivered_to_all_subscribers_together(client: Client, clock: FakeClock) -> None:
    looks: list[str] = []

    def shown(obj: Obj) -> Obj:
        looks.append(obj["metadata"]["name"])
        return obj

    await fill(client, 3)
    informer = Informer(client, CONFIG_MAPS, clock=clock, shape=Shape("shown", shown, as_docs=True))
    informer.start()
    await informer.wait_synced()
    seen: list[tuple[int, str]] = []

    def handler(number: int) -> Handler:
        return lambda _old, new: seen.append((number, (new or {})["metadata"]["name"]))

    removes = [informer.subscribe(handler(number)) for number in range(3)]
    removes.pop()()
    assert seen == []
    await client.create(CONFIG_MAPS, config_map("new", ""))
    await eventually(lambda: seen == [(0, "new"), (1, "new")])
    seen.clear()
    looks.clear()
    await informer.deliver_existing()
    assert seen == [(number, name) for name in ("c0", "c1", "c2", "new") for number in (0, 1)]
    assert looks == ["c0", "c1", "c2", "new"], "each is read once, however many handlers there are"
    seen.clear()
    await informer.deliver_existing()
    assert seen == [], "existing objects are delivered once"
    await informer.stop()


@pytest.fixture
def client(fake: FakeApi) -> Client:
    return Client(FakeTransport(fake))
