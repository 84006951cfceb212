"""Usage that follows the changes of the watch cache is that of a recount, after any history."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from karmada.kube.kinds import quota as quotas
from karmada.kube.kinds import quota_ledger
from karmada.kube.kinds.resource import ALL_VERBS, Resource
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import Forbidden
from karmada.kube.objects.gvk import GVK, GroupResource
from karmada.kube.objects.quantity import ZERO
from karmada.kube.objects.types import Obj
from karmada.kube.schema.node import Node
from karmada.kube.server.admission.interface import Attributes
from karmada.kube.server.admission.quota_usage import LiveUsage
from karmada.kube.server.admission.resource_quota import ResourceQuota
from karmada.kube.server.auth.user import User
from karmada.kube.server.storage.memory import MemoryStore
from karmada.kube.server.watchcache.cache import Cache, encode_value, storage_key
from karmada.kube.server.watchcache.collection import History

KINDS = {"pods": GVK("", "v1", "Pod"), "secrets": GVK("", "v1", "Secret")}
RESOURCES = {
    plural: Resource(
        gvk=gvk,
        plural=plural,
        namespaced=True,
        verbs=ALL_VERBS,
        schema=Node,
        storage=gvk,
        storage_resource=GroupResource("", plural),
    )
    for plural, gvk in KINDS.items()
}
NAMESPACES = ("one", "two")
SHORT = History(look_back=10, at_least=2, at_most=3)
"""So short that the ledgers often miss changes and have to be opened again."""


class Server:
    def __init__(self, keep: History) -> None:
        self.store = MemoryStore()
        self.cache = Cache(self.store, FakeClock(), keep)

    async def put(self, plural: str, namespace: str, name: str, **content: Any) -> None:
        """Create or update."""
        key = storage_key(GroupResource("", plural), namespace, name)
        before = await self.store.get(key)
        metadata = {"name": name, "namespace": namespace, "uid": f"{namespace}-{name}"}
        value = encode_value({"apiVersion": "v1", "kind": KINDS[plural].kind, "metadata": metadata, **content})
        await self.store.write(key, value, expected=before.revision if before is not None else 0)

    async def delete(self, plural: str, namespace: str, name: str) -> None:
        key = storage_key(GroupResource("", plural), namespace, name)
        before = await self.store.get(key)
        if before is not None:
            await self.store.write(key, None, expected=before.revision)

    async def reload(self) -> None:
        """As after the store has compacted what the cache missed."""
        await self.cache._load()
        self.cache._apply(await self.store.history("", since=self.cache.revision, until=self.store.revision))

    def recount(self, plural: str, quota: Obj) -> dict[str, str]:
        resource = GroupResource("", plural)
        found = {name: ZERO for name in quota["status"]["hard"] if quota_ledger.resource_of(name) == resource}
        for obj in self.cache.list(resource, quota["metadata"]["namespace"]):
            if quotas.in_scope(quota, resource, obj):
                used = quotas.usage(resource, obj)
                for name in found:
                    found[name] += used.get(name, ZERO)
        return {name: str(amount) for name, amount in found.items()}


@asynccontextmanager
async def serving(keep: History = SHORT) -> AsyncIterator[Server]:
    server = Server(keep)
    await server.cache.start()
    try:
        yield server
    finally:
        await server.cache.stop()


def quota(namespace: str, hard: dict[str, str], name: str = "q", **spec: Any) -> Obj:
    metadata = {"name": name, "namespace": namespace, "uid": f"{namespace}-{name}"}
    used = dict.fromkeys(hard, "0")
    return {"metadata": metadata, "spec": {"hard": hard, **spec}, "status": {"hard": hard, "used": used}}


def pod(cpu: str, phase: str) -> Obj:
    requests = {"requests": {"cpu": cpu}} if cpu else {}
    return {"spec": {"containers": [{"name": "c", "resources": requests}]}, "status": {"phase": phase}}


LIMITS = {"pods": "9", "count/pods": "9", "requests.cpu": "9", "secrets": "9"}
names = st.sampled_from("abc")
steps = st.one_of(
    st.tuples(
        st.just("pod"),
        st.sampled_from(NAMESPACES),
        names,
        st.sampled_from(("", "1", "250m")),
        st.sampled_from(("Running", "Failed")),
    ),
    st.tuples(st.just("secret"), st.sampled_from(NAMESPACES), names),
    st.tuples(st.just("delete"), st.sampled_from(NAMESPACES), names, st.sampled_from(("pods", "secrets"))),
    st.tuples(st.just("look"), st.sampled_from(NAMESPACES), st.booleans()),
    st.tuples(st.just("limit"), st.sampled_from(("requests.memory", "requests.cpu"))),
    st.just(("reload",)),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(steps, max_size=40))
def test_usage_is_that_of_a_recount(history: list[tuple[Any, ...]]) -> None:
    asyncio.run(_played(history))


async def _played(history: list[tuple[Any, ...]]) -> None:
    async with serving() as server:
        live, limits = LiveUsage(server.cache), dict(LIMITS)
        for step in [*history, *(("look", where, True) for where in NAMESPACES)]:
            match step:
                case "pod", where, name, cpu, phase:
                    await server.put("pods", where, name, **pod(cpu, phase))
                case "secret", where, name:
                    await server.put("secrets", where, name)
                case "delete", where, name, plural:
                    await server.delete(plural, where, name)
                case "limit", name:
                    limits = {**LIMITS, name: "7"}
                case ("reload",):
                    await server.reload()
                case "look", where, ahead:
                    for found in (quota(where, limits), quota(where, limits, "scoped", scopes=["NotBestEffort"])):
                        await _compare(server, live, found, ahead)


async def _compare(server: Server, live: LiveUsage, found: Obj, ahead: bool) -> None:
    """`ahead`: the ledger is opened before, in slices."""
    for plural, resource in RESOURCES.items():
        where = found["metadata"]["namespace"]
        if ahead:
            await live.open([found], resource, where)
        ledger = live.ledger(found, resource, where)
        wanted = server.recount(plural, found)
        assert {name: str(ledger.amount(name)) for name in wanted} == wanted


async def test_a_store_that_was_replaced_is_counted_anew() -> None:
    async with serving(History()) as server:
        live, found = LiveUsage(server.cache), quota("one", LIMITS)
        await server.put("pods", "one", "a", **pod("1", "Running"))
        await server.put("pods", "one", "b", **pod("1", "Running"))
        assert str(live.ledger(found, RESOURCES["pods"], "one").amount("pods")) == "2"
        server.store = server.cache.store = MemoryStore()
        for cpu in ("1", "2"):
            await server.put("pods", "one", "a", **pod(cpu, "Running"))
        await server.reload()
        assert str(live.ledger(found, RESOURCES["pods"], "one").amount("pods")) == "1"


async def test_a_ledger_that_is_being_opened_misses_no_change(monkeypatch: Any) -> None:
    monkeypatch.setattr("karmada.kube.runtime.time_slice.SLICE_SECONDS", 0.0)
    async with serving(History()) as server:
        for name in "abcdef":
            await server.put("pods", "one", name, **pod("1", "Running"))
        live, found = LiveUsage(server.cache), quota("one", LIMITS)
        opening = asyncio.create_task(live.open([found], RESOURCES["pods"], "one"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not opening.done()
        await server.delete("pods", "one", "a")
        await server.put("pods", "one", "f", **pod("500m", "Running"))
        await server.put("pods", "one", "new", **pod("2", "Running"))
        assert await opening
        assert str(live.ledger(found, RESOURCES["pods"], "one").amount("requests.cpu")) == "6500m"


async def test_an_object_is_looked_at_once_however_many_there_are(monkeypatch: Any) -> None:
    counted = 0

    def counting(resource: GroupResource, obj: Obj) -> Any:
        nonlocal counted
        counted += 1
        return quotas.usage(resource, obj)

    monkeypatch.setattr(quota_ledger, "usage", counting)
    async with serving(History()) as server:
        for number in range(50):
            await server.put("pods", "one", f"p{number}", **pod("1", "Running"))
        live, found = LiveUsage(server.cache), quota("one", {"requests.cpu": "99"})
        for number in range(50, 60):
            live.ledger(found, RESOURCES["pods"], "one")
            await server.put("pods", "one", f"p{number}", **pod("1", "Running"))
        assert str(live.ledger(found, RESOURCES["pods"], "one").amount("requests.cpu")) == "60"
        assert counted == 60


# admission over it

writes = st.one_of(
    st.tuples(st.just("begin"), names),
    st.tuples(st.just("end"), st.integers(0, 3), st.booleans()),
    st.tuples(st.just("delete"), names),
    st.tuples(st.just("look elsewhere"), names),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(writes, max_size=30), st.integers(0, 3))
def test_a_create_is_admitted_as_long_as_stored_objects_and_writes_in_flight_leave_a_place(
    history: list[tuple[Any, ...]], most: int
) -> None:
    asyncio.run(_admitted(history, most))


async def _admitted(history: list[tuple[Any, ...]], most: int) -> None:
    async with serving() as server:
        found = quota("one", {"secrets": str(most)})
        await server.store.write(
            storage_key(quotas.QUOTAS, "one", "q"), encode_value({"apiVersion": "v1", **found}), expected=0
        )
        plugin, flying, stored = ResourceQuota(server.cache, FakeClock()), list[Attributes](), set[str]()
        for step in history:
            match step:
                case "begin", name if name not in stored and name not in {one.name for one in flying}:
                    attributes = _create(name)
                    try:
                        await plugin.validate(attributes)
                    except Forbidden:
                        assert len(stored) + len(flying) >= most
                    else:
                        assert len(stored) + len(flying) < most
                        flying.append(attributes)
                case "end", number, kept if number < len(flying):
                    attributes = flying.pop(number)
                    if kept:
                        await server.put("secrets", "one", attributes.name)
                        stored.add(attributes.name)
                    plugin.finish(attributes, stored=kept)
                case "delete", name:
                    await server.delete("secrets", "one", name)
                    stored.discard(name)
                case "look elsewhere", name:
                    await server.put("secrets", "two", name)


def _create(name: str) -> Attributes:
    obj = {"metadata": {"name": name, "namespace": "one"}}
    return Attributes("CREATE", RESOURCES["secrets"], "", "one", name, obj, None, User("alice"))
