"""Reading what one has just written, while the informer does not have it yet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from karmada.kube.client.client import Client, ListPage
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.own_writes import OwnWrites
from tests.support.eventually import eventually
from tests.support.fake_api import CONFIG_MAPS, FakeApi, FakeTransport

KEY = Key("n", "x")


class FakeInformer(Informer):
    """An informer that gets the events that the test gives it."""

    def __init__(self) -> None:
        super().__init__(Client(FakeTransport(FakeApi())), CONFIG_MAPS, clock=FakeClock())
        self.resource_version = "1"

    def event(self, obj: Obj, *, deleted: bool = False) -> None:
        self._apply("DELETED" if deleted else "MODIFIED", obj)


def made(number: int, uid: str = "u", **metadata: Any) -> Obj:
    return {"metadata": {"namespace": "n", "name": "x", "uid": uid, "resourceVersion": str(number), **metadata}}


@pytest.fixture
def informer() -> FakeInformer:
    return FakeInformer()


@pytest.fixture
def own(informer: FakeInformer) -> OwnWrites:
    return OwnWrites(informer)


def test_a_write_is_shown_until_the_informer_has_it(own: OwnWrites, informer: FakeInformer) -> None:
    own.wrote(made(5))
    assert own.get(KEY) == made(5)
    assert own.pending() == [made(5)]
    informer.event(made(3))
    assert own.get(KEY) == made(5)
    informer.event(made(5))
    assert own.get(KEY) is informer.get(KEY)
    assert own.pending() == []
    informer.event(made(7))
    assert own.get(KEY) == made(7)


def test_an_older_write_does_not_hide_a_newer_one(own: OwnWrites) -> None:
    own.wrote(made(6))
    own.wrote(made(5))
    assert own.get(KEY) == made(6)


def test_a_write_that_the_informer_has_already_is_not_kept(own: OwnWrites, informer: FakeInformer) -> None:
    informer.event(made(8))
    own.wrote(made(8))
    assert own.pending() == []


def test_an_object_that_was_deleted_after_the_write_is_gone(own: OwnWrites, informer: FakeInformer) -> None:
    own.wrote(made(5))
    informer.event(made(5))
    informer.event(made(6), deleted=True)
    assert own.get(KEY) is None


def test_the_deletion_of_an_earlier_object_of_the_name_does_not_hide_the_new_one(
    own: OwnWrites, informer: FakeInformer
) -> None:
    informer.event(made(3, "old"))
    own.wrote(made(5, "new"))
    informer.event(made(4, "old"), deleted=True)
    assert own.get(KEY) == made(5, "new")


def test_an_informer_that_is_past_the_write_is_right_even_if_it_never_had_the_object(
    own: OwnWrites, informer: FakeInformer
) -> None:
    own.wrote(made(5))
    informer.resource_version = "9"
    assert own.get(KEY) is None
    assert own.pending() == []


def test_removing_the_last_finalizer_of_a_deleted_object_hides_it(own: OwnWrites, informer: FakeInformer) -> None:
    informer.event(made(3, deletionTimestamp="t", finalizers=["f"]))
    own.wrote(made(5, deletionTimestamp="t"))
    assert own.get(KEY) is None
    assert own.is_pending(KEY)
    informer.event(made(5, deletionTimestamp="t"), deleted=True)
    assert own.get(KEY) is None
    assert not own.is_pending(KEY)


def test_an_object_with_a_grace_period_is_still_there(own: OwnWrites) -> None:
    own.wrote(made(5, deletionTimestamp="t", deletionGracePeriodSeconds=30))
    assert own.get(KEY) is not None


def test_every_handler_of_the_event_of_an_own_write_recognises_it(own: OwnWrites, informer: FakeInformer) -> None:
    seen = []
    for _ in range(2):
        informer.add_handler(lambda _old, new: seen.append(own.is_echo(new)))
    own.wrote(made(5))
    informer.event(made(3))
    informer.event(made(5))
    informer.event(made(6))
    informer.event(made(7), deleted=True)
    assert seen == [False, False, True, True, False, False, False, False]


def test_only_writes_that_the_informer_lacks_are_kept(own: OwnWrites, informer: FakeInformer) -> None:
    for at in range(2, 100):
        obj = {"metadata": {"namespace": "n", "name": f"o{at}", "uid": "u", "resourceVersion": str(at)}}
        own.wrote(obj)
        informer.event(obj)
    assert len(own._writes) <= 2


def test_what_is_written_before_there_is_an_informer_is_shown_until_that_has_it(informer: FakeInformer) -> None:
    own = OwnWrites()
    own.wrote(made(5))
    assert own.get(KEY) == made(5)
    own.follow(informer)
    assert own.get(KEY) == made(5)
    informer.event(made(6))
    assert own.get(KEY) == made(6)


def test_a_transformed_informer_shows_own_writes_transformed_too() -> None:
    def light(obj: Obj) -> Obj:
        return {"metadata": obj["metadata"]}

    client = Client(FakeTransport(FakeApi()))
    for on_demand in (False, True):
        own = OwnWrites(Informer(client, CONFIG_MAPS, clock=FakeClock(), transform=light, on_demand=on_demand))
        own.wrote({**made(5), "data": {"large": "x"}})
        assert own.get(KEY) == made(5)


async def test_a_write_to_a_server_that_was_restored_from_a_backup_ends_with_the_next_list() -> None:
    fake, clock = FakeApi(), FakeClock()
    client = Client(FakeTransport(fake))
    await client.create(CONFIG_MAPS, config_map("x"))
    fake.backup = (dict(fake.objects), fake.revision)
    informer = Informer(client, CONFIG_MAPS, clock=clock)
    own = OwnWrites(informer)
    informer.start()
    await eventually(lambda: informer.synced)
    key = Key("default", "x")
    for value in ("2", "3", "4"):
        own.wrote(await client.update(CONFIG_MAPS, config_map("x", value)))
    assert (own.get(key) or {})["data"]["value"] == "4"
    fake.restore()
    await clock.advance(60)
    await eventually(lambda: (own.get(key) or {})["data"]["value"] == "1")
    assert own.pending() == []
    await informer.stop()


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


async def test_a_list_that_breaks_off_counts_for_the_objects_that_it_stored(
    own: OwnWrites, informer: FakeInformer
) -> None:
    """Their events were delivered, and the next list will not deliver them again."""
    own.wrote(made(5))
    client = informer._client = BreaksOff(ListPage([made(7)], "8", first=True))  # type: ignore[assignment]
    with pytest.raises(ConnectionFailed):
        await informer._list()
    assert own.get(KEY) == made(7)
    again = asyncio.create_task(informer._list())
    await eventually(lambda: client.lists == 2)
    own.wrote(made(6))
    assert own.get(KEY) == made(7)
    again.cancel()


# any history


def config_map(name: str, value: str = "1") -> Obj:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": value}}
