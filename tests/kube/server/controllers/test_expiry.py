"""Events that expire: what a sweep looks at, and when it has nothing to look for."""

from __future__ import annotations

from typing import Any, cast

from karmada.kube.client.client import Client
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.server.controllers.expiry import EVENT_SECONDS, EventExpiry


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
