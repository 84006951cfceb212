"""After any history the caches, and what sinks have, equal the members."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from karmada.api.cluster import Cluster
from karmada.api.search import ResourceRegistry
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import ApiError, NotFound
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import CONFIG_MAPS, NODES
from karmada.kube.objects.types import Obj
from karmada.search.kind_cache import ReflectedKind
from tests.search.fake_fleet import CACHED, FakeFleet, config_map, running

HOSTS, NAMESPACES, NAMES = ("a", "b"), ("x", "y"), ("o1", "o2")
hosts, names = st.sampled_from(HOSTS), st.sampled_from(NAMES)
namespaces = st.sampled_from(NAMESPACES)
selectors = st.lists(
    st.one_of(
        st.tuples(st.just("ConfigMap"), st.sampled_from(("", *NAMESPACES))), st.tuples(st.just("Node"), st.just(""))
    ),
    max_size=3,
)
writes = st.one_of(
    st.tuples(st.just("write"), hosts, namespaces, names, st.text("ab", max_size=2)),
    st.tuples(st.just("write node"), hosts, names),
    st.tuples(st.just("delete"), hosts, namespaces, names),
    st.tuples(st.just("again"), hosts, namespaces, names),
    st.tuples(st.just("gap"), hosts, st.just("x"), names),
)
others = st.one_of(
    st.tuples(st.sampled_from(["restart", "cut", "compact", "backup", "restore", "down", "up", "bookmark"]), hosts),
    st.tuples(st.sampled_from(["join", "leave", "ready", "unready"]), hosts),
    st.tuples(st.just("move"), hosts, hosts),
    st.tuples(st.just("register"), st.sampled_from(("r1", "r2")), selectors, st.lists(hosts, max_size=2, unique=True)),
    st.tuples(st.just("unregister"), st.sampled_from(("r1", "r2"))),
    st.tuples(st.just("run"), st.integers(0, 40)),
    st.tuples(st.just("restart search")),
)
histories = st.lists(st.one_of(writes, others, writes, st.just(("run", 1))), min_size=10, max_size=40)


@dataclass
class History:
    fleet: FakeFleet
    away: set[str] = field(default_factory=set)

    async def play(self, act: tuple[Any, ...]) -> None:
        kind, *rest = act
        try:
            await getattr(self, kind.replace(" ", "_"))(*rest)
        except (ApiError, ConnectionFailed):
            return  # it joined already, is no more, or is down: nothing happened

    # members

    async def write(self, host: str, namespace: str, name: str, text: str) -> None:
        client, obj = self.fleet.client_of(host), config_map(name, namespace, text)
        try:
            await client.patch(CONFIG_MAPS, name, namespace, {"data": obj["data"]})
        except NotFound:
            await client.create(CONFIG_MAPS, obj)

    async def write_node(self, host: str, name: str) -> None:
        await self.fleet.client_of(host).create(NODES, {"metadata": {"name": name}})

    async def delete(self, host: str, namespace: str, name: str) -> None:
        await self.fleet.client_of(host).delete(CONFIG_MAPS, name, namespace)

    async def again(self, host: str, namespace: str, name: str) -> None:
        await self.delete(host, namespace, name)
        await self.write(host, namespace, name, "again")

    async def gap(self, host: str, namespace: str, name: str) -> None:
        """Something happens while nobody watches, and is not in the member's history any more."""
        await self.cut(host)
        await self.again(host, namespace, name)
        await self.compact(host)

    async def restart(self, host: str) -> None:
        self.fleet.member(host).break_watches()
        self.fleet.member(host).compact()

    async def cut(self, host: str) -> None:
        self.fleet.member(host).break_watches()

    async def compact(self, host: str) -> None:
        self.fleet.member(host).compact()

    async def bookmark(self, host: str) -> None:
        self.fleet.member(host).bookmark()

    async def backup(self, host: str) -> None:
        member = self.fleet.member(host)
        member.backup = dict(member.objects), member.revision

    async def restore(self, host: str) -> None:
        """It is noticed before anything else happens: a member that has come as far again looks like itself."""
        member = self.fleet.member(host)
        if host in self.away:
            return
        member.restore()
        await self.fleet.until(lambda: all(self._noticed(cache, host, member.revision) for cache in self.caches()))

    def caches(self) -> list[ReflectedKind]:
        return list(self.fleet.caches.all())

    def _noticed(self, cache: ReflectedKind, host: str, revision: int) -> bool:
        member = self.fleet.caches.members.known(cache.cluster)
        if member is None or member.transport.config.server != f"https://{host}":
            return True  # it has left, or is elsewhere
        return cache.resource_version != "" and cache.revision <= revision

    async def down(self, host: str) -> None:
        self.away.add(host)
        self.fleet.member(host).fail = lambda _call: ConnectionFailed("it is down")
        self.fleet.member(host).break_watches()

    async def up(self, host: str) -> None:
        self.away.discard(host)
        self.fleet.member(host).fail = lambda _call: None

    # the control plane

    async def join(self, host: str) -> None:
        await self.fleet.join(host)

    async def leave(self, host: str) -> None:
        await self.fleet.leave(host)

    async def ready(self, host: str) -> None:
        await self.fleet.set_ready(host, True)

    async def unready(self, host: str) -> None:
        await self.fleet.set_ready(host, False)

    async def move(self, name: str, host: str) -> None:
        await self.fleet.move(name, host)

    async def register(self, name: str, chosen: list[tuple[str, str]], clusters: list[str]) -> None:
        await self.fleet.register(name, *chosen, clusters=clusters)

    async def unregister(self, name: str) -> None:
        await self.fleet.client.delete(ResourceRegistry.gvr, name)

    async def run(self, seconds: int) -> None:
        await self.fleet.clock.advance(seconds)
        for _ in range(3):
            await asyncio.sleep(0)

    async def restart_search(self) -> None:
        await self.fleet.restart()

    # what should be there

    def expected(self) -> dict[tuple[str, GVR], list[Obj]]:
        plane = self.fleet.plane
        found: dict[tuple[str, GVR], list[Obj]] = {}
        for cluster in plane.listed(Cluster.gvr):
            name, host = cluster["metadata"]["name"], cluster["spec"]["apiEndpoint"].removeprefix("https://")
            if cluster["status"]["conditions"][0]["status"] != "True":
                continue
            for gvr, wanted in self._wanted(name).items():
                listed = self.fleet.member(host).listed(gvr)
                kept = [o for o in listed if not wanted or o["metadata"].get("namespace") in wanted]
                found[name, gvr] = kept
        return found

    def _wanted(self, cluster: str) -> dict[GVR, set[str]]:
        """The namespaces of each resource; an empty set is all."""
        wanted: dict[GVR, set[str]] = {}
        everything: set[GVR] = set()
        for registry in self.fleet.plane.listed(ResourceRegistry.gvr):
            only = registry["spec"]["targetCluster"]["clusterNames"]
            if only and cluster not in only:
                continue
            for selector in registry["spec"]["resourceSelectors"]:
                gvr = CACHED[selector["kind"]]
                wanted.setdefault(gvr, set()).add(selector["namespace"])
                if not selector["namespace"]:
                    everything.add(gvr)
        return {gvr: set() if gvr in everything else spaces for gvr, spaces in wanted.items()}

    def cached(self) -> dict[tuple[str, GVR], list[Obj]]:
        return {
            (cache.cluster, cache.kind.gvr): sorted((o.object() for o in cache.list()), key=_place)
            for cache in self.fleet.caches.all()
            if cache.synced
        }

    def indexed(self) -> dict[tuple[str, GVR], list[Obj]]:
        found: dict[tuple[str, GVR], list[Obj]] = {}
        for (cluster, gvr, _), obj in self.fleet.sink.objects.items():
            found.setdefault((cluster, gvr), []).append(obj)
        return {key: sorted(objects, key=_place) for key, objects in found.items()}


def _place(obj: Obj) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


@settings(max_examples=80)
@given(histories)
def test_after_any_history_the_caches_and_the_sinks_equal_the_members(history: list[tuple[Any, ...]]) -> None:
    async def play() -> None:
        async with running(FakeClock()) as fleet:
            played = History(fleet)
            await fleet.register("r1", ("ConfigMap", ""))
            for host in HOSTS:
                await fleet.join(host)
                await played.write(host, "x", "o1", "first")
            await fleet.until(lambda: played.cached() == played.expected())
            for act in history:
                await played.play(act)
            for host in HOSTS:
                await played.up(host)
            await fleet.until(
                lambda: (
                    played.cached() == played.expected()
                    and played.indexed() == {key: objects for key, objects in played.expected().items() if objects}
                ),
                show=lambda: (played.cached(), played.expected(), played.indexed()),
            )

    asyncio.run(play())
