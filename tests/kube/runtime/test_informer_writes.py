"""An informer has what its process has written, before the server sends it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from karmada.kube.client.client import Client, ListPage
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.gvrs import CONFIG_MAPS
from karmada.kube.objects.shapes import Shape
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.reflector import WatchFailed
from tests.support.eventually import eventually
from tests.support.fake_api import FakeApi, FakeTransport

KEY = Key("n", "x")


class FakeInformer(Informer):
    """An informer that gets the events that the test gives it, and notes those it delivers."""

    def __init__(self, **options: Any) -> None:
        super().__init__(Client(FakeTransport(FakeApi())), CONFIG_MAPS, clock=FakeClock(), **options)
        self.resource_version = "1"
        self.delivered: list[str] = []
        self.add_handler(self._note)

    def _note(self, old: Obj | None, new: Obj | None) -> None:
        states = [(obj or {}).get("metadata", {}).get("resourceVersion", "") for obj in (old, new)]
        self.delivered.append(">".join(states))

    def event(self, obj: Obj, *, deleted: bool = False) -> None:
        self._apply("DELETED" if deleted else "MODIFIED", obj)


def made(number: int, uid: str = "u", **metadata: Any) -> Obj:
    return {"metadata": {"namespace": "n", "name": "x", "uid": uid, "resourceVersion": str(number), **metadata}}


@pytest.fixture
def informer() -> FakeInformer:
    return FakeInformer()


def test_a_write_is_there_at_once_and_its_event_is_delivered_once(informer: FakeInformer) -> None:
    informer.wrote(made(5))
    assert informer.get(KEY) == made(5)
    informer.event(made(3))
    assert informer.get(KEY) == made(5)
    informer.event(made(5))
    informer.event(made(7))
    assert informer.get(KEY) == made(7)
    assert informer.delivered == [">5", "5>7"]


def test_a_write_is_found_by_index(informer: FakeInformer) -> None:
    informer.add_index("team", lambda obj: [obj["metadata"].get("labels", {}).get("team", "")])
    informer.event(made(3, labels={"team": "a"}))
    informer.wrote(made(5, labels={"team": "b"}))
    assert informer.by_index("team", "a") == []
    assert informer.keys_by_index("team", "b") == [KEY]


def test_an_older_write_does_not_replace_a_newer_one(informer: FakeInformer) -> None:
    informer.wrote(made(6))
    informer.wrote(made(5))
    assert informer.get(KEY) == made(6)


def test_a_write_whose_event_overtook_its_response_is_delivered_once(informer: FakeInformer) -> None:
    informer.event(made(8))
    informer.wrote(made(8))
    assert informer.delivered == [">8"]


def test_an_object_that_was_deleted_after_the_write_is_gone(informer: FakeInformer) -> None:
    informer.wrote(made(5))
    informer.event(made(5))
    informer.event(made(6), deleted=True)
    assert informer.get(KEY) is None
    informer.wrote(made(5))
    assert informer.get(KEY) is None


def test_the_deletion_of_an_earlier_object_of_the_name_does_not_remove_the_new_one(informer: FakeInformer) -> None:
    informer.event(made(3, "old"))
    informer.wrote(made(5, "new"))
    informer.event(made(4, "old"), deleted=True)
    assert informer.get(KEY) == made(5, "new")
    assert informer.delivered == [">3", "3>", ">5"]


def test_removing_the_last_finalizer_of_a_deleted_object_removes_it(informer: FakeInformer) -> None:
    informer.event(made(3, deletionTimestamp="t", finalizers=["f"]))
    informer.wrote(made(5, deletionTimestamp="t"))
    assert informer.get(KEY) is None
    informer.event(made(4, deletionTimestamp="t", finalizers=["f"]))
    assert informer.get(KEY) is None
    informer.event(made(5, deletionTimestamp="t"), deleted=True)
    assert informer.delivered == [">3", "5>"]


def test_an_object_with_a_grace_period_is_still_there(informer: FakeInformer) -> None:
    informer.wrote(made(5, deletionTimestamp="t", deletionGracePeriodSeconds=30))
    assert informer.get(KEY) is not None


def test_a_write_that_takes_an_object_out_of_the_selection_removes_it() -> None:
    informer = FakeInformer(label_selector="managed=true")
    informer.event(made(3, labels={"managed": "true"}))
    informer.wrote(made(5))
    assert informer.get(KEY) is None


def test_only_writes_without_an_event_yet_are_remembered(informer: FakeInformer) -> None:
    for at in range(2, 100):
        obj = {"metadata": {"namespace": "n", "name": f"o{at}", "uid": "u", "resourceVersion": str(at)}}
        informer.wrote(obj)
        informer.event(obj)
    assert not informer._ahead


def test_a_watch_that_gets_past_a_write_without_its_event_is_of_another_server(informer: FakeInformer) -> None:
    informer.wrote(made(5))
    with pytest.raises(WatchFailed):
        informer._apply("BOOKMARK", {"metadata": {"resourceVersion": "9"}})


@pytest.mark.parametrize("as_docs", [False, True])
def test_writes_are_kept_in_the_informers_shape(as_docs: bool) -> None:
    informer = FakeInformer(shape=Shape("bare", lambda obj: {"metadata": obj["metadata"]}, as_docs=as_docs))
    informer.wrote({**made(5), "data": {"large": "x"}})
    assert informer.get(KEY) == made(5)


async def test_a_write_to_a_server_that_was_restored_from_a_backup_ends_with_the_next_list() -> None:
    fake, clock = FakeApi(), FakeClock()
    client = Client(FakeTransport(fake))
    await client.create(CONFIG_MAPS, config_map("x"))
    fake.backup = (dict(fake.objects), fake.revision)
    informer = Informer(client, CONFIG_MAPS, clock=clock)
    informer.start()
    await eventually(lambda: informer.synced)
    key = Key("default", "x")
    for value in ("2", "3", "4"):
        informer.wrote(await client.update(CONFIG_MAPS, config_map("x", value)))
    assert (informer.get(key) or {})["data"]["value"] == "4"
    fake.restore()
    await clock.advance(60)
    await eventually(lambda: (informer.get(key) or {})["data"]["value"] == "1")
    await informer.stop()


def config_map(name: str, value: str = "1") -> Obj:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": value}}


class BreaksOff:
    """A client whose first list breaks off after a page, and whose second does not get to one."""

    def __init__(self, page: ListPage) -> None:
        self._page = page
        self.lists = 0

    async def pages(self, *_: Any, **__: Any) -> AsyncIterator[ListPage]:
        self.lists += 1
        if self.lists == 1:
            yield self._page
            raise ConnectionFailed("broken")
        await asyncio.Event().wait()


async def test_a_list_that_breaks_off_counts_for_the_objects_that_it_stored(informer: FakeInformer) -> None:
    """Their events were delivered, and the next list will not deliver them again."""
    informer.wrote(made(5))
    client = informer._client = BreaksOff(ListPage([made(7)], "8", first=True))  # type: ignore[assignment]
    with pytest.raises(ConnectionFailed):
        await informer._list()
    assert informer.get(KEY) == made(7)
    again = asyncio.create_task(informer._list())
    await eventually(lambda: client.lists == 2)
    informer.wrote(made(6))
    assert informer.get(KEY) == made(7)
    again.cancel()


class ListsOnce:
    """A client whose lists have one page."""

    def __init__(self, page: ListPage) -> None:
        self._page = page

    async def pages(self, *_: Any, **__: Any) -> AsyncIterator[ListPage]:
        yield self._page


@pytest.mark.parametrize(("listed_at", "known"), [("4", 5), ("90", 3)], ids=["an older list", "a newer list"])
async def test_a_write_that_a_newer_list_does_not_have_is_lost(
    informer: FakeInformer, listed_at: str, known: int
) -> None:
    """The server has gone back to a copy of its state, and goes on far beyond what that has lost."""
    informer.wrote(made(5))
    informer._client = ListsOnce(ListPage([made(3)], listed_at, first=True))  # type: ignore[assignment]
    await informer._list()
    assert informer.get(KEY) == made(known)
