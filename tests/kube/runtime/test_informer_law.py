"""The law of an informer that knows what its process writes, in any history of the server and of the connection to it.

What it returns of an object is never older than the last write that this process got the response of, and a deleted
object never comes back; in the end it has what the server has. Others write too; events and responses come late, twice
or never; lists break off or are held up; the server goes back to a backup.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from typing import Any
from unittest.mock import patch

from hypothesis import example, given, settings
from hypothesis import strategies as st

from karmada.kube.client.client import Client
from karmada.kube.client.transport import Call, ConnectionFailed, WatchEvent
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import Expired
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import CONFIG_MAPS
from karmada.kube.objects.shapes import WHOLE, Shape
from karmada.kube.objects.types import Obj
from karmada.kube.runtime import time_slice
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key, key_of, version
from tests.support.fake_api import FakeApi, FakeTransport

KEYS = [Key("default", name) for name in ("a", "b", "c")]


def config_map(name: str, value: str = "1") -> Obj:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": value}}


class Recording(FakeApi):
    """Remembers every state that an object ever had."""

    def __init__(self) -> None:
        super().__init__()
        self.states: defaultdict[Key, list[tuple[int, Obj | None]]] = defaultdict(lambda: [(0, None)])
        self.backup_states: dict[Key, list[tuple[int, Obj | None]]] = {}
        self.listed_state: tuple[dict[tuple[GVR, str, str], Obj], int] = ({}, 0)

    def back_up(self) -> None:
        self.backup = (dict(self.objects), self.revision)
        self.backup_states = {key: list(states) for key, states in self.states.items()}

    def restore(self) -> None:
        super().restore()
        self.states.clear()
        self.states.update({key: list(states) for key, states in self.backup_states.items()})

    def _commit(self, gvr: GVR, old: Obj | None, new: Obj | None) -> Obj:
        last = super()._commit(gvr, old, new)
        self.states[key_of(last)].append((self.revision, None if new is None else last))
        return last

    def _list(self, call: Call, gvr: GVR, namespace: str) -> Obj:
        """All pages of a list show the same state."""
        now = self.objects, self.revision
        if call.query.get("continue"):
            self.objects, self.revision = self.listed_state
        else:
            self.listed_state = (dict(self.objects), self.revision)
        try:
            return super()._list(call, gvr, namespace)
        finally:
            self.objects, self.revision = now


class Lagging(FakeTransport):
    """Delivers events and lists when the test says so; a watch that is cut has to be listed anew."""

    def __init__(self, api: FakeApi) -> None:
        super().__init__(api)
        self.permits = 0
        self.cut = self.repeats = self.breaks = False
        self.lists = True
        self.wake = asyncio.Event()

    async def call(self, call: Call) -> Any:
        if "limit" in call.query:
            call.query["limit"] = "1"
        answer = await super().call(call)
        if call.method == "GET" and call.path.endswith("/configmaps"):
            await self._until(lambda: self.lists)
            if self.breaks and call.query.get("continue"):
                self.breaks = False
                raise ConnectionFailed("the list broke off")
        return answer

    async def watch(self, call: Call) -> AsyncIterator[WatchEvent]:
        async for event in super().watch(call):
            await self._until(lambda: self.permits > 0 or self.cut)
            if self.cut:
                self.cut = False
                raise Expired("cut")
            self.permits -= 1
            yield event
            if self.repeats:
                self.repeats = False
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


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            (
                "own write",
                "own write",
                "own write, late response",
                "late response",
                "other write",
                "delete",
                "deliver",
                "deliver",
                "repeat",
                "cut",
                "hold list",
                "list",
                "break list",
                "back up",
                "restore",
                "restore silently",
            )
        ),
        st.integers(0, len(KEYS) - 1),
        st.integers(1, 4),
    ),
    max_size=40,
)


class World:
    def __init__(self, shape: Shape = WHOLE) -> None:
        self.api = Recording()
        self.transport = Lagging(self.api)
        self.client = Client(FakeTransport(self.api))
        self.clock = FakeClock()
        self.informer = Informer(Client(self.transport), CONFIG_MAPS, clock=self.clock, shape=shape)
        self.own = self.informer
        self.newest: dict[Key, int] = {}
        """Versions of the last write of each object whose response came."""
        self.late: list[Obj] = []
        self.of_the_past: set[Key] = set()
        """What is shown as it was before the server was put back."""
        self.is_deceived = False
        """Whether the server was put back and nobody has told the informer: there is no law but how it ends."""
        self.shown: dict[Key, Obj] = {}
        """The objects by what the handlers were called for."""
        self.informer.add_handler(self.handle)
        self.failed: list[AssertionError] = []

    def handle(self, old: Obj | None, new: Obj | None) -> None:
        """The informer only logs what its handlers raise."""
        try:
            self._check_event(old, new)
        except AssertionError as error:
            self.failed.append(error)

    def _check_event(self, old: Obj | None, new: Obj | None) -> None:
        """A reconcile that an event causes reads a state at least as new as the event."""
        event = new if new is not None else old
        assert event is not None
        key = key_of(event)
        if new is None:
            self.shown.pop(key)
        else:
            before = self.shown.get(key)
            assert (before is None) == (old is None), "an object is added twice, or updated before it is added"
            self.shown[key] = new
            if before is not None and self._is_lawful(key) and key not in self.of_the_past:
                assert version(before) < version(new), "an object goes back"
        self.of_the_past.discard(key)
        if not self._is_lawful(key):
            return
        found = self.own.get(key)
        if new is None:
            assert found is None or found["metadata"]["uid"] != event["metadata"]["uid"], "a deleted object is shown"
        else:
            assert found is None or version(found) >= version(new), "an older state than the event's is shown"

    def _is_lawful(self, key: Key) -> bool:
        """After a change of history, what is shown may be of the one before until it is written or listed."""
        return not self.is_deceived and (key in self.newest or self.informer.resource_version != "")

    def check(self) -> None:
        for key in filter(self._is_lawful, KEYS):
            self._check(key)

    def _check(self, key: Key) -> None:
        found, since = self.own.get(key), self.newest.get(key, 0)
        before = [(at, state) for at, state in self.api.states[key] if at <= since]
        after = [(at, state) for at, state in self.api.states[key] if at > since]
        assert found in [state for _, state in (before[-1], *after)], f"{key} goes back behind an own write"

    async def step(self, what: str, index: int, count: int) -> None:
        key = KEYS[index]
        if what.startswith("own write"):
            written = await self._write(key, what)
            if what == "own write":
                self._respond(written)
            else:
                self.late.append(written)
        elif what == "late response" and self.late:
            self._respond(self.late.pop(index % len(self.late)))
        elif what == "other write":
            await self._write(key, what)
        elif what == "delete" and (CONFIG_MAPS, *key) in self.api.objects:
            await self.client.delete(CONFIG_MAPS, key.name, key.namespace)
        elif what == "repeat":
            self.transport.repeats = True
            self.transport.let(permits=1)
        elif what == "deliver":
            self.transport.let(permits=count)
        elif what == "cut":
            self.transport.let(cut=True)
        elif what == "break list":
            self.transport.breaks = True
            self.transport.let(cut=True)
        elif what in ("hold list", "list"):
            self.transport.let(lists=what == "list")
        elif what == "back up":
            self.api.back_up()
        elif what == "restore":
            await self.informer.stop()
            self._restore()
            self.informer.forget_history()
            self.informer.start()
        elif what == "restore silently":
            self._restore()
            self.is_deceived = True
        await self.settle()
        self.transport.permits = 0

    async def _write(self, key: Key, what: str) -> Obj:
        exists = (CONFIG_MAPS, *key) in self.api.objects
        obj = config_map(key.name, f"{what} {len(self.api.calls)}")
        return await (self.client.update if exists else self.client.create)(CONFIG_MAPS, obj)

    def _respond(self, written: Obj) -> None:
        key = key_of(written)
        self.newest[key] = max(self.newest.get(key, 0), version(written))
        self.own.wrote(written)

    def _restore(self) -> None:
        self.api.restore()
        self.late.clear()
        self.newest.clear()
        self.of_the_past = {*self.shown}

    async def settle(self) -> None:
        for _ in range(10):
            self.check()
            await asyncio.sleep(0)
        self.check()
        if self.failed:
            raise self.failed[0]

    async def end(self) -> None:
        """All is delivered; the informer has what the server has, and its handlers were called for that."""
        self.transport.let(permits=1 << 30, lists=True)
        if self.is_deceived:  # more is written than before: it cannot be taken for the same history
            self.informer.forget_history()
            self.api.break_watches()
            self.api.compact()
        for _ in range(10):
            self.api.bookmark()
            await self.clock.advance(60)
            await self.settle()
        assert self.informer.resource_version == str(self.api.revision)
        objects = {key: obj for key in KEYS if (obj := self.api.objects.get((CONFIG_MAPS, *key))) is not None}
        found = {key: obj for key in KEYS if (obj := self.own.get(key)) is not None}
        assert found == objects
        assert self.shown == objects


def steps_of(*steps: str) -> list[tuple[str, int, int]]:
    return [(step, 0, 4) for step in steps]


SKIPPED_DELETION = steps_of("own write", "deliver", "own write", "delete", "cut")
SKIPPED_RECREATION = steps_of("own write", "deliver", "own write", "delete", "other write", "cut")
WRITE_DURING_LIST = steps_of("own write", "hold list", "cut", "own write", "list")
CREATE_DURING_LIST = steps_of("hold list", "cut", "own write", "list")
PAGED = WHOLE._replace(paged=True)
BROKEN_LIST = [*steps_of("other write"), ("other write", 1, 1), *steps_of("own write, late response", "other write")]
BROKEN_LIST += steps_of("break list", "late response")
LATE_RESPONSE = steps_of("own write, late response", "delete", "deliver", "late response")
RESTORED = steps_of("own write", "deliver", "back up", "own write", "hold list", "restore", "own write", "list")


@settings(max_examples=200, deadline=None)
@given(STEPS, st.sampled_from((WHOLE, PAGED, WHOLE._replace(as_docs=True))))
@example(SKIPPED_DELETION, WHOLE)
@example(SKIPPED_RECREATION, WHOLE)
@example(WRITE_DURING_LIST, WHOLE)
@example(CREATE_DURING_LIST, WHOLE)
@example(BROKEN_LIST, PAGED)
@example(LATE_RESPONSE, PAGED)
@example(RESTORED, WHOLE)
@example(RESTORED, PAGED)
def test_what_is_read_is_never_older_than_an_own_write_and_nothing_deleted_comes_back(
    steps: list[tuple[str, int, int]], shape: Shape
) -> None:
    async def run() -> None:
        world = World(shape)
        world.informer.start()
        for step in steps:
            await world.step(*step)
        await world.end()
        await world.informer.stop()

    with patch.object(time_slice, "SLICE_SECONDS", 0.0):  # others have a turn after every object of a list
        asyncio.run(run())
