"""Events that expire: what a sweep looks at, and when it has nothing to look for."""

from __future__ import annotations

from typing import Any, cast

from karmada.kube.client.client import Client
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.server.controllers.expiry import EVENT_SECONDS, EventExpiry
from karmada.kube.server.storage.memory import MemoryStore
from karmada.kube.server.watchcache.cache import encode_value


class Events:
    """A client with Events alone."""

    def __init__(self, clock: FakeClock) -> None:
        self.names: dict[str, str] = {}
        self.lists = 0
        self._clock = clock

    def write(self, name: str) -> None:
        self.names[name] = rfc3339(self._clock.now())

    async def list(self, *_: Any, **__: Any) -> Obj:
        self.lists += 1
        about = {"namespace": "default", "uid": "u"}
        items = [{"metadata": {"name": n, "creationTimestamp": at, **about}} for n, at in self.names.items()]
        return {"metadata": {}, "items": items}

    async def delete(self, _kind: object, name: str, *_: object, **__: object) -> None:
        del self.names[name]


async def test_events_are_listed_only_when_one_may_have_expired() -> None:
    clock = FakeClock()
    events = Events(clock)
    expiry = EventExpiry(cast(Client, events), clock)
    events.write("first")
    await expiry.sweep()
    assert events.lists == 1
    await clock.advance(EVENT_SECONDS / 2)
    events.write("second")
    await expiry.sweep()
    assert (events.lists, set(events.names)) == (1, {"first", "second"})
    await clock.advance(EVENT_SECONDS / 2 + 2)
    await expiry.sweep()
    assert (events.lists, set(events.names)) == (2, {"second"})
    await expiry.sweep()
    assert events.lists == 2
    await clock.advance(EVENT_SECONDS / 2 + 2)
    await expiry.sweep()
    assert (events.lists, set(events.names)) == (3, set())


class StoredEvents:
    """Events in a store, deleted as a client does it."""

    def __init__(self, clock: FakeClock) -> None:
        self.store = MemoryStore()
        self._clock = clock

    async def write(self, name: str, *, after: float = 0.0, expected: int = 0) -> int:
        """`after`: how long after now the time is that the Event has."""
        meta = {"name": name, "namespace": "default", "uid": "u"}
        event = {"kind": "Event", "metadata": meta, "lastTimestamp": rfc3339(self._clock.now() + after)}
        return await self.store.write(f"core/events/default/{name}", encode_value(event), expected=expected)

    async def names(self) -> set[str]:
        return {stored.key.rpartition("/")[2] for stored in (await self.store.range("core/events/")).items}

    async def list(self, *_: Any, **__: Any) -> Obj:
        raise AssertionError("all Events were read")

    async def delete(self, _kind: object, name: str, *_: object, **__: object) -> None:
        key = f"core/events/default/{name}"
        stored = await self.store.get(key)
        assert stored is not None
        await self.store.write(key, None, expected=stored.revision)


async def test_events_of_a_store_in_the_process_go_in_the_order_of_their_writes() -> None:
    clock = FakeClock()
    events = StoredEvents(clock)
    expiry = EventExpiry(cast(Client, events), clock, events.store)
    first = await events.write("first")
    for number in range(450):
        await events.write(f"e{number}")
    await events.store.write("core/pods/default/first", b"{}", expected=0)
    await clock.advance(EVENT_SECONDS / 2)
    await events.write("late")
    await events.write("first", expected=first)
    await expiry.sweep()
    assert len(await events.names()) == 452
    await clock.advance(EVENT_SECONDS / 2 + 2)
    await expiry.sweep()
    assert await events.names() == {"first", "late"}
    await clock.advance(EVENT_SECONDS / 2 + 2)
    await expiry.sweep()
    assert await events.names() == set()


async def test_an_event_with_a_time_to_come_keeps_no_other() -> None:
    clock = FakeClock()
    events = StoredEvents(clock)
    expiry = EventExpiry(cast(Client, events), clock, events.store)
    await events.write("ahead", after=2 * EVENT_SECONDS)
    await events.write("other")
    await clock.advance(EVENT_SECONDS + 2)
    await expiry.sweep()
    assert await events.names() == {"ahead"}
    await clock.advance(2 * EVENT_SECONDS + 2)
    await expiry.sweep()
    assert await events.names() == set()
