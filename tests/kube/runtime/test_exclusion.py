"""A controller leaves quarantined keys and objects alone, and takes them up when they change or are released."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest

from karmada.kube.client.client import Client
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.gvrs import PODS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Controller, Enqueue, Reconciler, Watch
from karmada.kube.runtime.current_work import Work, stack_of, work_on
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.quarantine import QUARANTINE, WHOLE, Entry, fingerprint
from tests.support.eventually import eventually

NAME = "recorder"


class Recorder(Reconciler):
    name = NAME

    def __init__(self, *watches: Watch) -> None:
        self.watches = watches
        self.keys: list[str] = []

    async def reconcile(self, key: Key) -> None:
        self.keys.append(key.name)


@pytest.fixture(autouse=True)
def _released() -> Iterator[None]:
    yield
    for entry in QUARANTINE.entries():
        QUARANTINE.release(entry)


@pytest.fixture
async def informers(client: Client, clock: FakeClock) -> AsyncIterator[Informers]:
    found = Informers(client, clock=clock)
    yield found
    await found.stop()


async def started(recorder: Recorder, informers: Informers) -> Controller:
    controller = Controller(recorder, informers)
    informers.start()
    await controller.start()
    return controller


async def pod(client: Client, name: str) -> Obj:
    return await client.create(PODS, {"metadata": {"name": name, "namespace": "ns"}, "spec": {"nodeName": ""}})


def held(key: str, about: Obj | None = None) -> Entry:
    entry = Entry(controller=NAME, key=key, fingerprint="" if about is None else fingerprint(about))
    QUARANTINE.add(entry)
    return entry


async def test_a_key_is_parked_until_its_object_changes(client: Client, informers: Informers) -> None:
    web = await pod(client, "web")
    await pod(client, "other")
    held("ns/web", web)
    recorder = Recorder(Watch(PODS))
    controller = await started(recorder, informers)
    await client.update_status(PODS, {**web, "status": {"phase": "Running"}})
    controller.add(Key("ns", "last"))
    await eventually(lambda: "last" in recorder.keys)
    assert "web" not in recorder.keys, "the status is not of its users"
    await client.patch(PODS, "web", "ns", {"spec": {"nodeName": "node"}}, type="merge")
    await eventually(lambda: "web" in recorder.keys)
    assert QUARANTINE.entries() == []
    await controller.stop(grace=0)


async def test_the_deletion_of_its_object_is_reconciled(client: Client, informers: Informers) -> None:
    held("ns/web", await pod(client, "web"))
    recorder = Recorder(Watch(PODS))
    controller = await started(recorder, informers)
    await client.delete(PODS, "web", "ns")
    await eventually(lambda: "web" in recorder.keys)
    await controller.stop(grace=0)


@pytest.mark.parametrize("key", ["ns/web", WHOLE])
async def test_a_release_has_the_key_reconciled(key: str, client: Client, informers: Informers) -> None:
    await pod(client, "web")
    entry = held(key)
    recorder = Recorder(Watch(PODS))
    controller = await started(recorder, informers)
    await eventually(lambda: controller.queue.idle)
    assert recorder.keys == []
    QUARANTINE.release(entry)
    await eventually(lambda: recorder.keys == ["web"])
    await controller.stop(grace=0)


async def _released_by_change(client: Client, _entry: Entry) -> None:
    await client.patch(PODS, "web", "ns", {"spec": {"nodeName": "node"}}, type="merge")


async def _released_by_hand(_client: Client, entry: Entry) -> None:
    QUARANTINE.release(entry)


@pytest.mark.parametrize("release", [_released_by_change, _released_by_hand])
async def test_an_object_that_hung_a_handler_is_not_delivered_until_it_is_released(
    release: Callable[[Client, Entry], Awaitable[None]], client: Client, informers: Informers
) -> None:
    delivered: list[str] = []

    def when(_old: Obj | None, new: Obj | None) -> bool:
        delivered.append(new["metadata"]["name"] if new else "")
        return True

    web = await pod(client, "web")
    await pod(client, "other")
    entry = held("pods ns/web", web)
    recorder = Recorder(Watch(PODS, when=when))
    controller = await started(recorder, informers)
    await eventually(lambda: recorder.keys == ["other"])
    assert delivered == ["other"]
    await release(client, entry)
    await eventually(lambda: recorder.keys == ["other", "web"])
    assert "web" in delivered
    await controller.stop(grace=0)


async def test_a_change_of_which_the_walk_hung_starts_none_until_it_is_released(
    client: Client, informers: Informers
) -> None:
    work: list[Work] = []

    async def walk(_old: Obj | None, new: Obj | None, add: Enqueue) -> None:
        work.extend(work_on(stack_of(threading.get_ident())))
        add(Key("ns", new["metadata"]["name"] if new else ""))

    web = await pod(client, "web")
    recorder = Recorder(Watch(PODS, walk=walk))
    controller = await started(recorder, informers)
    changed = await client.patch(PODS, "web", "ns", {"spec": {"nodeName": "node"}}, type="merge")
    await eventually(lambda: recorder.keys == ["web"])
    await controller.stop(grace=0)
    [found] = work
    assert (found.what, found.controller, found.name) == ("object", NAME, "pods ns/web")
    assert found.fingerprint() == fingerprint(changed) != fingerprint(web)
    assert found.about() == changed
    held(found.name, changed)

    again = Recorder(Watch(PODS, walk=walk))
    controller = await started(again, informers)
    await client.update_status(PODS, {**changed, "status": {"phase": "Running"}})
    await pod(client, "other")
    await eventually(lambda: again.keys == ["other"])
    await client.patch(PODS, "web", "ns", {"spec": {"nodeName": "another"}}, type="merge")
    await eventually(lambda: again.keys == ["other", "web"])
    assert QUARANTINE.entries() == []
    await controller.stop(grace=0)
