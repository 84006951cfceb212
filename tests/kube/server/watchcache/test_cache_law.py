"""The law of the watch cache: a list and the watch after it are always equal to the current state."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.doc import Doc
from karmada.kube.objects.errors import Expired
from karmada.kube.server.storage.interface import StoreDamaged
from karmada.kube.server.storage.memory import MemoryStore
from karmada.kube.server.storage.sqlite import SqliteStore
from karmada.kube.server.watchcache import unloaded
from karmada.kube.server.watchcache.cache import Cache
from karmada.kube.server.watchcache.collection import Collection, History
from karmada.kube.server.watchcache.entry import Change, doc_of
from karmada.kube.server.watchcache.subscription import Subscription
from tests.kube.server.watchcache.cached_stores import PODS, Writer, labelled

_SHORT = History(look_back=5, at_most=4)


class View:
    """What a client knows from one list and the watch after it."""

    subscription: Subscription

    def __init__(self, collection: Collection, namespace: str, matches: Callable[[Doc], bool] | None) -> None:
        self.namespace = namespace
        self.matches = matches
        self.items = {e.key: e.raw for e in collection.list(namespace) if matches is None or matches(e)}
        self.revision = collection.revision

    async def watch(self, collection: Collection) -> View:
        self.subscription = await collection.subscribe(self.revision, namespace=self.namespace, matches=self.matches)
        return self

    def take(self, changes: list[Change]) -> None:
        for change in changes:
            assert change.revision > self.revision
            self.revision = change.revision
            known = change.entry.key in self.items
            assert known == (change.type != "ADDED"), change
            if change.type == "DELETED":
                del self.items[change.entry.key]
            else:
                self.items[change.entry.key] = change.entry.raw

    def assert_equals(self, collection: Collection) -> None:
        entries = collection.list(self.namespace)
        assert self.items == {e.key: e.raw for e in entries if self.matches is None or self.matches(e)}


_steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from("ab"), st.sampled_from("xyz"), st.sampled_from("12")),
        st.tuples(st.just("delete"), st.sampled_from("ab"), st.sampled_from("xyz")),
        st.tuples(st.just("watch"), st.sampled_from(["", "a"]), st.sampled_from(["", "1"])),
        st.tuples(st.just("read"), st.integers(0, 9)),
        st.tuples(st.just("resume"), st.integers(0, 9)),
        st.tuples(st.just("compact")),
        st.tuples(st.just("restart"), st.sampled_from([0, 2, 1_000])),
        st.tuples(st.just("load")),
    ),
    max_size=60,
)


class Run:
    """One random history over one store, with watchers that come, read, resume and outlive restarts of the server."""

    def __init__(self, store: Any, reopen: Callable[[], Any]) -> None:
        self.store = store
        self.reopen = reopen
        self.write = Writer(store)
        self.views: list[View] = []
        self.cache = Cache(store, FakeClock(), _SHORT)

    @property
    def pods(self) -> Collection:
        return self.cache.collection(PODS)

    async def put(self, namespace: str, name: str, value: str) -> None:
        await self.write.put(namespace, name, l=value)

    async def delete(self, namespace: str, name: str) -> None:
        if (namespace, name) in self.write.revisions:
            await self.write.delete(namespace, name)

    async def watch(self, namespace: str, value: str) -> None:
        view = View(self.pods, namespace, labelled("l", value) if value else None)
        self.views.append(await view.watch(self.pods))

    async def read(self, number: int) -> None:
        if number < len(self.views):
            view = self.views[number]
            if view.subscription.ended:
                await self.resume(number)
            else:
                view.take(view.subscription.drain())

    async def resume(self, number: int) -> None:
        """The client reconnects from the last revision it saw; if that is too old it lists again."""
        if number < len(self.views):
            view = self.views[number]
            view.subscription.close()
            try:
                await view.watch(self.pods)
            except Expired:
                assert view.revision < self.store._compacted
                view = self.views[number] = View(self.pods, view.namespace, view.matches)
                await view.watch(self.pods)
            view.take(view.subscription.drain())

    async def compact(self) -> None:
        await self.store.compact(self.store.revision - 3)

    async def restart(self, small: int) -> None:
        """Watchers resume when they read next, so that writes happen before and during the load of what they watch."""
        await self.cache.stop()
        self.store = self.write.store = await self.reopen()
        self.cache = Cache(self.store, FakeClock(), _SHORT, small=small)
        await self.cache.start()

    async def load(self) -> None:
        """Of objects that are still in the store only, one more is loaded."""
        if self.pods.unloaded is not None:
            self.pods.unloaded._step()
        self.assert_each_is_read()

    def assert_each_is_read(self) -> None:
        for namespace, name in itertools.product("ab", "xyz"):
            found = self.pods.get(namespace, name)
            assert (found.revision if found else None) == self.write.revisions.get((namespace, name))

    async def go(self, steps: list[tuple[Any, ...]]) -> None:
        with mock.patch.object(unloaded, "_STEP", 1):
            await self._go(steps)

    async def _go(self, steps: list[tuple[Any, ...]]) -> None:
        await self.cache.start()
        for step, *arguments in steps:
            await getattr(self, step)(*arguments)
        for number in range(len(self.views)):
            await self.read(number)
            self.views[number].assert_equals(self.pods)
        state = [doc_of(*s).raw for s in (await self.store.range("core/pods/")).items]
        assert [e.raw for e in self.pods.list()] == state
        await self.cache.stop()


@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(steps=_steps)
def test_a_list_and_the_watch_after_it_always_give_the_final_state_in_memory(
    steps: list[tuple[Any, ...]],
) -> None:
    async def run() -> None:
        store = MemoryStore()

        async def reopen() -> MemoryStore:
            return store

        await Run(store, reopen).go(steps)

    asyncio.run(run())


@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(steps=_steps)
@example(steps=[*[("put", "a", "x", "1")] * 5, ("compact",), ("restart", 0)])  # nothing is read at the start
def test_a_list_and_the_watch_after_it_always_give_the_final_state_on_disk(
    steps: list[tuple[Any, ...]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("store") / "s.db"

    async def run() -> None:
        async def reopen() -> SqliteStore:
            await stores[-1].close()
            stores.append(SqliteStore(path))
            await stores[-1].open()
            return stores[-1]

        stores = [SqliteStore(path)]
        await stores[0].open()
        await Run(stores[0], reopen).go(steps)
        await stores[-1].close()

    asyncio.run(run())


async def test_a_value_that_is_no_object_is_named_by_its_key() -> None:
    store = MemoryStore()
    await store.write("core/configmaps/default/bad", b"rubbish", expected=0)
    with pytest.raises(StoreDamaged, match="core/configmaps/default/bad at revision 1 is no object"):
        await Cache(store, FakeClock()).start()
