"""Reading what one has just written, while the informer does not have it yet."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from karmada.kube.client.client import Client, ListPage
from karmada.kube.client.transport import Call, ConnectionFailed, WatchEvent
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import Expired
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from karmada.kube.runtime import time_slice
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.own_writes import OwnWrites
from karmada.kube.runtime.versions import number, version
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


class Recording(FakeApi):
    """Remembers every state that an object ever had."""

    def __init__(self) -> None:
        super().__init__()
        self.states: defaultdict[Key, list[tuple[int, Obj | None]]] = defaultdict(lambda: [(0, None)])

    def _commit(self, gvr: GVR, old: Obj | None, new: Obj | None) -> Obj:
        last = super()._commit(gvr, old, new)
        self.states[key_of(last)].append((self.revision, None if new is None else last))
        return last


class Lagging(FakeTransport):
    """Delivers events and lists when the test says so; a watch that is cut has to be listed anew."""

    def __init__(self, api: FakeApi) -> None:
        super().__init__(api)
        self.permits = 0
        self.cut = False
        self.lists = True
        self.wake = asyncio.Event()

    async def call(self, call: Call) -> Any:
        answer = await super().call(call)
        if call.method == "GET" and call.path.endswith("/configmaps"):
            await self._until(lambda: self.lists)
        return answer

    async def watch(self, call: Call) -> AsyncIterator[WatchEvent]:
        async for event in super().watch(call):
            await self._until(lambda: self.permits > 0 or self.cut)
            if self.cut:
                self.cut = False
                raise Expired("cut")
            self.permits -= 1
            yield event

    async def _until(self, condition: Any) -> None:
        while not condition():
            self.wake.clear()
            await self.wake.wait()

    def let(self, *, permits: int = 0, lists: bool | None = None, cut: bool = False) -> None:
        self.permits = permits
        if lists is not None:
            self.lists = lists
        if cut and self.api.watchers:
            self.cut = True
            self.api.bookmark()  # so that there is an event to cut off
        self.wake.set()


KEYS = [Key("default", name) for name in ("a", "b", "c")]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ("own write", "own write", "other write", "delete", "deliver", "deliver", "cut", "hold list", "list")
        ),
        st.integers(0, len(KEYS) - 1),
        st.integers(1, 4),
    ),
    max_size=40,
)


class World:
    def __init__(self) -> None:
        self.api = Recording()
        self.transport = Lagging(self.api)
        self.client = Client(FakeTransport(self.api))
        self.informer = Informer(Client(self.transport), CONFIG_MAPS, clock=FakeClock())
        self.own = OwnWrites(self.informer)
        self.newest: dict[Key, int] = {}
        self.informer.add_handler(self.handle)
        self.failed: list[AssertionError] = []

    def handle(self, old: Obj | None, new: Obj | None) -> None:
        """The informer only logs what its handlers raise."""
        try:
            self.check()
            self._check_event(old, new)
        except AssertionError as error:
            self.failed.append(error)

    def _check_event(self, old: Obj | None, new: Obj | None) -> None:
        """A reconcile that an event causes reads a state at least as new as the event."""
        event = new if new is not None else old
        assert event is not None
        shown = self.own.get(key_of(event))
        if new is None:
            assert shown is None or shown["metadata"]["uid"] != event["metadata"]["uid"], "a deleted object is shown"
        else:
            assert shown is None or version(shown) >= version(new), "an older state than the event's is shown"

    def check(self) -> None:
        for key in KEYS:
            self._check(key)

    def _check(self, key: Key) -> None:
        shown, since = self.own.get(key), self.newest.get(key, 0)
        before = [(at, state) for at, state in self.api.states[key] if at <= since]
        after = [(at, state) for at, state in self.api.states[key] if at > since]
        assert shown in [state for _, state in (before[-1], *after)], f"{key} goes back behind an own write"
        if number(self.informer.resource_version) >= since:
            assert shown == self.informer.get(key), f"{key} is not what the informer has, which is past the write"
        for obj in self.own.pending():
            assert version(obj) == self.newest[key_of(obj)], "an older write is pending"

    async def step(self, what: str, index: int, count: int) -> None:
        key = KEYS[index]
        exists = (CONFIG_MAPS, *key) in self.api.objects
        if what in ("own write", "other write"):
            obj = config_map(key.name, f"{what} {self.api.revision}")
            written = await (self.client.update if exists else self.client.create)(CONFIG_MAPS, obj)
            if what == "own write":
                self.newest[key] = version(written)
                self.own.wrote(written)
        elif what == "delete" and exists:
            await self.client.delete(CONFIG_MAPS, key.name, key.namespace)
        elif what == "deliver":
            self.transport.let(permits=count)
        elif what == "cut":
            self.transport.let(cut=True)
        elif what in ("hold list", "list"):
            self.transport.let(lists=what == "list")
        await self.settle()
        self.transport.permits = 0

    async def settle(self) -> None:
        for _ in range(10):
            self.check()
            await asyncio.sleep(0)
        self.check()
        if self.failed:
            raise self.failed[0]


SKIPPED_DELETION = [("own write", 0, 1), ("deliver", 0, 4), ("own write", 0, 1), ("delete", 0, 1), ("cut", 0, 1)]
SKIPPED_RECREATION = [*SKIPPED_DELETION[:-1], ("other write", 0, 1), ("cut", 0, 1)]
WRITE_DURING_LIST = [("own write", 0, 1), ("hold list", 0, 1), ("cut", 0, 1), ("own write", 0, 1), ("list", 0, 1)]


@settings(max_examples=300, deadline=None)
@given(STEPS)
@example(SKIPPED_DELETION)
@example(SKIPPED_RECREATION)
@example(WRITE_DURING_LIST)
def test_in_any_history_the_view_is_never_behind_an_own_write_nor_ahead_of_what_the_informer_has_passed(
    steps: list[tuple[str, int, int]],
) -> None:
    async def run() -> None:
        world = World()
        world.informer.start()
        for step in steps:
            await world.step(*step)
        world.transport.let(permits=1000, lists=True)
        await eventually(lambda: world.informer.synced)
        world.api.bookmark()
        await eventually(lambda: world.informer.resource_version == str(world.api.revision))
        await world.settle()
        assert world.own.pending() == []
        for key in KEYS:
            assert world.own.get(key) == world.api.objects.get((CONFIG_MAPS, *key))
        await world.informer.stop()

    with patch.object(time_slice, "SLICE_SECONDS", 0.0):  # others have a turn after every object of a list
        asyncio.run(run())
