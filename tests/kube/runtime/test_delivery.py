"""Existing objects of large kinds are delivered by name, as fast as they are reconciled."""

from __future__ import annotations

import asyncio
from operator import attrgetter

import pytest

from karmada.kube.client.client import Client
from karmada.kube.objects.gvk import GVR
from karmada.kube.runtime import delivery
from karmada.kube.runtime import informers as shared
from karmada.kube.runtime.backlog import backlog
from karmada.kube.runtime.controller import ControllerOptions, Reconciler, Watch
from karmada.kube.runtime.delivery import deliver_by_name
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.manager import Manager
from karmada.kube.runtime.waiting import cancel_and_wait
from tests.support.eventually import eventually
from tests.support.fake_api import FakeApi, FakeTransport

CONFIG_MAPS = GVR("", "v1", "configmaps")
PODS = GVR("", "v1", "pods")
MANY = 300


@pytest.fixture
def client() -> Client:
    return Client(FakeTransport(FakeApi()))


async def fill(client: Client) -> None:
    """Pods of two namespaces, and a ConfigMap of the same name in a third."""
    for number in range(MANY):
        name = f"web-{number:03}"
        for gvr, namespace in ((PODS, "one"), (PODS, "two"), (CONFIG_MAPS, "three")):
            await client.create(gvr, {"metadata": {"name": name, "namespace": namespace}})


async def test_objects_of_all_kinds_and_namespaces_are_delivered_by_name(client: Client) -> None:
    await fill(client)
    informers, seen = Informers(client), list[str]()
    for kind in (PODS, CONFIG_MAPS):
        informers.of(kind).subscribe(lambda _old, new: seen.append((new or {})["metadata"]["name"]))
    informers.start()
    await informers.wait_synced()
    seen.clear()
    await deliver_by_name(informers.all())
    assert len(seen) == 3 * MANY
    steps = [seen[start : start + delivery._STEP] for start in range(0, len(seen), delivery._STEP)]
    in_order = [f"web-{number:03}" for number in range(MANY) for _ in range(3)]
    assert [name for step in steps for name in sorted(step)] == in_order, "by name, but for those of one step"
    await deliver_by_name(informers.all())
    assert len(seen) == 3 * MANY, "each once"
    await informers.stop()


async def test_many_existing_objects_are_delivered_no_faster_than_they_are_reconciled(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Noting(Reconciler):
        name = "noting"
        watches = (Watch(PODS), Watch(CONFIG_MAPS))
        workers = 64

        def __init__(self) -> None:
            self.seen: list[Key] = []
            self.waiting: list[int] = []

        async def reconcile(self, key: Key) -> None:
            self.seen.append(key)
            self.waiting.append(len(manager.controllers["noting"].queue))

    monkeypatch.setattr(shared, "_FEW", 10)
    await fill(client)
    manager, noting = Manager(client), Noting()
    manager.add(noting)
    async with manager:
        await eventually(lambda: len(noting.seen) == 3 * MANY)
    assert len({*noting.seen}) == 3 * MANY, "each once"
    assert max(noting.waiting) < 100, "never all of them at once"


async def test_a_lane_that_hangs_keeps_no_object_from_being_delivered_to_others(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    class HangsForOne(Reconciler):
        name = "hangs-for-one"
        watches = (Watch(PODS),)
        workers = 4
        options = ControllerOptions(lane_of=attrgetter("namespace"), grace=0.0)

        def __init__(self) -> None:
            self.seen: set[Key] = set()

        async def reconcile(self, key: Key) -> None:
            if key.namespace == "one":
                await asyncio.Event().wait()
            self.seen.add(key)

    monkeypatch.setattr(shared, "_FEW", 10)
    await fill(client)
    manager, part = Manager(client), HangsForOne()
    manager.add(part)
    async with manager:
        await eventually(lambda: len(part.seen) == MANY)


async def test_a_manager_that_stops_delivers_no_more(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "_FEW", 10)
    await fill(client)
    seen: list[str] = []
    informers = Informers(client)
    informers.of(PODS).subscribe(lambda _old, new: seen.append((new or {})["metadata"]["name"]))
    informers.start()
    await informers.wait_synced()
    seen.clear()
    await informers.deliver_existing()
    await informers.stop()
    before = len(seen)
    await asyncio.sleep(0)
    assert len(seen) == before < 2 * MANY


async def test_keys_that_follow_do_not_go_ahead_of_a_delivery(client: Client) -> None:
    await fill(client)
    informers, delivered, ahead = Informers(client), set[str](), list[str]()
    informers.of(PODS).subscribe(lambda _old, new: delivered.add((new or {})["metadata"]["name"]))
    informers.start()
    await informers.wait_synced()
    delivered.clear()
    delivering = asyncio.ensure_future(deliver_by_name(informers.all()))
    await asyncio.sleep(0)

    async def follow(name: str) -> None:
        await backlog().turn(name, replay=True)
        if name not in delivered:
            ahead.append(name)

    await asyncio.gather(delivering, *(follow(f"web-{number:03}") for number in range(MANY)))
    assert len(ahead) <= MANY // 32, "only those that waited longest"
    await backlog().turn("web-999", replay=True)  # nothing is delivered any more
    await informers.stop()


async def test_a_delivery_that_is_cancelled_holds_up_nobody(client: Client) -> None:
    await fill(client)
    informers = Informers(client)
    informers.of(PODS).subscribe(lambda _old, _new: None)
    informers.start()
    await informers.wait_synced()
    delivering = asyncio.ensure_future(deliver_by_name(informers.all()))
    await asyncio.sleep(0)
    following = asyncio.ensure_future(backlog().turn("web-299", replay=True))
    await cancel_and_wait(delivering)
    await following
    await informers.stop()
