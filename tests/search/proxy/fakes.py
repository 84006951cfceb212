"""Members in memory, as the proxy sees them: a cache of each, and the lists of the member itself."""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import orjson

from karmada.kube.client.client import Client
from karmada.kube.client.discovery import Mapping as Kind
from karmada.kube.kinds.inventory import builtin_resources
from karmada.kube.objects.doc import Doc
from karmada.kube.objects.errors import ApiError, Expired, NotFound, TooManyRequests
from karmada.kube.objects.gvk import GVK, GVR
from karmada.kube.schema.builtin import Definitions
from karmada.kube.server.auth.rbac import AuthzAttributes
from karmada.kube.server.auth.user import User
from karmada.kube.server.watchcache.entry import ADDED, DELETED, MODIFIED, Change
from karmada.kube.server.watchcache.subscription import Matches, Subscription
from karmada.search.cached_object import marked
from karmada.search.interfaces import KindCache, Rights
from karmada.search.proxy.live import Page
from karmada.search.registries import ALL, Namespaces, covers
from karmada.search.sinks import Sink

PODS, POD = GVR("", "v1", "pods"), GVK("", "v1", "Pod")
KIND = Kind(PODS, POD, namespaced=True)
RESOURCE = next(resource for resource in builtin_resources(Definitions.load()) if resource.gvk == POD)


class FakeCache:
    """A cluster whose cache is always current; `down` is the error of all requests to the member itself."""

    kind = KIND

    def __init__(self, cluster: str, names: Iterable[str] = (), revision: int = 0, buffer: int = 1000) -> None:
        self.cluster = cluster
        self.namespaces: Namespaces = ALL
        self.synced = True
        self.revision = revision
        self.down: ApiError | None = None
        self.requests: list[dict[str, str]] = []
        self._buffer = buffer
        self._objects: dict[tuple[str, str], Doc] = {}
        self._history: list[Change] = []
        self._floor = revision
        self._subscriptions: list[Subscription] = []
        for name in names:
            self.put(name)

    @property
    def resource_version(self) -> str:
        return str(self.revision) if self.synced else ""

    # writing

    def put(self, name: str, namespace: str = "default", **more: Any) -> None:
        previous = self._objects.get((namespace, name))
        entry = self._entry(name, namespace, more)
        self._objects[namespace, name] = entry
        self._take(Change(ADDED if previous is None else MODIFIED, entry, previous))

    def delete(self, name: str, namespace: str = "default") -> None:
        previous = self._objects.pop((namespace, name))
        self.revision += 1
        self._take(Change(DELETED, previous.at(self.revision), previous))

    def compact(self) -> None:
        """Forget the history."""
        self._floor = self.revision
        self._history.clear()

    def end_watches(self) -> None:
        for subscription in list(self._subscriptions):
            subscription.close()

    def _entry(self, name: str, namespace: str, more: dict[str, Any]) -> Doc:
        self.revision += 1
        metadata = {"name": name, "namespace": namespace, "resourceVersion": str(self.revision), **more}
        raw = orjson.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": metadata})
        return Doc(f"{namespace}/{name}", namespace, name, self.revision, raw)

    def _take(self, change: Change) -> None:
        self._history.append(change)
        for subscription in list(self._subscriptions):
            subscription.push(change)

    # as a cache

    def get(self, namespace: str, name: str) -> Doc | None:
        return self._objects.get((namespace, name))

    def list(self, namespace: str = "") -> list[Doc]:
        keys = sorted(key for key in self._objects if namespace in ("", key[0]) and covers(self.namespaces, key[0]))
        return [self._objects[key] for key in keys]

    def snapshot(self, revision: int, namespace: str = "") -> builtins.list[Doc] | None:
        raise NotImplementedError

    async def subscribe(
        self, since: int | None = None, *, namespace: str = "", name: str = "", matches: Matches | None = None
    ) -> Subscription:
        if not self.synced:
            raise TooManyRequests("storage is (re)initializing")
        if since is not None and since < self._floor:
            raise Expired(f"too old resource version: {since}")
        subscription = Subscription(
            self, self._subscriptions.remove, namespace=namespace, name=name, matches=matches, buffer=self._buffer,
            after=-1 if since is None else since,
        )  # fmt: skip
        self._subscriptions.append(subscription)
        if since is not None:
            await subscription.replay([change for change in self._history if change.revision > since])
        return subscription

    # as the member

    def page(self, namespace: str, query: Mapping[str, str]) -> Page:
        """Pages of the snapshot of their first."""
        self.requests.append(dict(query))
        if self.down is not None:
            raise self.down
        limit = int(query.get("limit", "0"))
        if token := query.get("continue"):
            version, after, items = orjson.loads(token)
            left = [raw for key, raw in items if key > after]
            keys = [key for key, raw in items if key > after]
        else:
            objects = self.list(namespace)
            version, keys = str(self.revision), [obj.key for obj in objects]
            left = [marked(obj.raw, self.cluster).decode() for obj in objects]
        more = limit and len(left) > limit
        rest = list(zip(keys, left, strict=True))
        token = orjson.dumps([version, keys[limit - 1], rest]).decode() if more else ""
        return Page([raw.encode() for raw in (left[:limit] if more else left)], version, token)


class FakeReads:
    """Members themselves."""

    async def get(self, cache: KindCache, namespace: str, name: str, version: str = "") -> bytes:
        assert isinstance(cache, FakeCache)
        cache.requests.append({"name": name, "resourceVersion": version})
        await asyncio.sleep(0)
        if cache.down is not None:
            raise cache.down
        found = cache.get(namespace, name)
        if found is None:
            raise NotFound.of(PODS.group_resource, name)
        return found.raw

    async def page(self, cache: KindCache, namespace: str, query: Mapping[str, str]) -> Page:
        assert isinstance(cache, FakeCache)
        await asyncio.sleep(0)
        return cache.page(namespace, query)


class FakeCaches:
    def __init__(self, *caches: FakeCache) -> None:
        self.by_cluster = {cache.cluster: cache for cache in caches}
        self.kinds: Mapping[GVR, Kind] = {PODS: KIND}
        self._followers: list[Callable[[], None]] = []

    def clusters(self, gvr: GVR) -> list[str]:
        return sorted(self.by_cluster) if gvr == PODS else []

    def cache(self, cluster: str, gvr: GVR) -> KindCache | None:
        return self.by_cluster.get(cluster) if gvr == PODS else None

    def client(self, cluster: str) -> Client:
        raise NotImplementedError(cluster)

    def add_sink(self, sink: Sink) -> None:
        raise NotImplementedError

    def on_cluster_added(self, call: Callable[[], None]) -> Callable[[], None]:
        self._followers.append(call)
        return lambda: self._followers.remove(call)

    @property
    def followers(self) -> int:
        return len(self._followers)

    def add(self, cache: FakeCache) -> None:
        self.by_cluster[cache.cluster] = cache
        for call in list(self._followers):
            call()

    def remove(self, cluster: str) -> None:
        self.by_cluster.pop(cluster).end_watches()


class FakeReading:
    """Everybody may read everywhere, except where a cluster refuses."""

    def __init__(self) -> None:
        self.refusing: set[str] = set()
        self.wanted: list[AuthzAttributes] = []

    async def rights(self, user: User, wanted: AuthzAttributes, clusters: Iterable[str]) -> Rights:
        self.wanted.append(wanted)
        names = list(clusters)
        refused = {name: f"{user.name} has no role there" for name in names if name in self.refusing}
        return Rights([name for name in names if name not in refused], refused)
