"""Caches of members' objects without members: tests put objects in, sinks get the changes."""

from __future__ import annotations

import builtins
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import orjson

from karmada.kube.client.client import Client
from karmada.kube.client.discovery import Mapping as Kind
from karmada.kube.objects.doc import Doc
from karmada.kube.objects.gvk import GVK, GVR
from karmada.kube.objects.gvrs import DEPLOYMENTS, NODES, PODS
from karmada.kube.objects.types import Obj
from karmada.kube.server.auth.rbac import AuthzAttributes
from karmada.kube.server.auth.user import User
from karmada.kube.server.watchcache.subscription import Matches, Subscription
from karmada.search.interfaces import Rights
from karmada.search.registries import ALL, Namespaces
from karmada.search.sinks import Sink

KINDS = {
    PODS: Kind(PODS, GVK("", "v1", "Pod"), True, short_names=("po",)),
    DEPLOYMENTS: Kind(DEPLOYMENTS, GVK("apps", "v1", "Deployment"), True, short_names=("deploy",)),
    NODES: Kind(NODES, GVK("", "v1", "Node"), False),
}
_versions = itertools.count(1)


class HeldKind:
    """A KindCache whose objects are put in by hand."""

    namespaces: Namespaces = ALL

    def __init__(self, cluster: str, kind: Kind, *, synced: bool = True) -> None:
        self.cluster = cluster
        self.kind = kind
        self.synced = synced
        self.resource_version = "1"
        self.objects: dict[tuple[str, str], Doc] = {}

    def get(self, namespace: str, name: str) -> Doc | None:
        return self.objects.get((namespace, name))

    def list(self, namespace: str = "") -> builtins.list[Doc]:
        return [obj for (where, _), obj in sorted(self.objects.items()) if namespace in ("", where)]

    def snapshot(self, revision: int, namespace: str = "") -> builtins.list[Doc] | None:
        raise NotImplementedError

    async def subscribe(
        self, since: int | None = None, *, namespace: str = "", name: str = "", matches: Matches | None = None
    ) -> Subscription:
        raise NotImplementedError


class HeldCaches:
    """Caches of these kinds, and the sinks that follow them."""

    def __init__(self, *sinks: Sink) -> None:
        self.sinks = [*sinks]
        self.kinds: Mapping[GVR, Kind] = KINDS
        self._held: dict[tuple[str, GVR], HeldKind] = {}

    def clusters(self, gvr: GVR) -> builtins.list[str]:
        return sorted(cluster for cluster, held in self._held if held == gvr)

    def cache(self, cluster: str, gvr: GVR) -> HeldKind | None:
        return self._held.get((cluster, gvr))

    def client(self, cluster: str) -> Client:
        raise NotImplementedError

    def add_sink(self, sink: Sink) -> None:
        self.sinks.append(sink)

    def on_cluster_added(self, call: Callable[[], None]) -> Callable[[], None]:  # noqa: ARG002
        return lambda: None

    # what members do

    def put(self, cluster: str, gvr: GVR, obj: Obj) -> None:
        held = self._held.setdefault((cluster, gvr), HeldKind(cluster, KINDS[gvr]))
        cached = cached_object(gvr, obj)
        old = held.get(cached.namespace, cached.name)
        held.objects[cached.namespace, cached.name] = cached
        for sink in self.sinks:
            if old is not None and old.uid != cached.uid:
                sink.delete(cluster, gvr, old.namespace, old.name, old.uid)
            sink.upsert(cluster, gvr, cached)

    def remove(self, cluster: str, gvr: GVR, namespace: str, name: str) -> None:
        old = self._held[cluster, gvr].objects.pop((namespace, name))
        for sink in self.sinks:
            sink.delete(cluster, gvr, namespace, name, old.uid)

    def listed(self, cluster: str, gvr: GVR, objects: Iterable[Obj]) -> None:
        """A list was completed: these are all there are; sinks get nothing but that it was."""
        held = self._held.setdefault((cluster, gvr), HeldKind(cluster, KINDS[gvr]))
        held.objects = {(c.namespace, c.name): c for c in (cached_object(gvr, obj) for obj in objects)}
        for sink in self.sinks:
            sink.replaced(cluster, gvr)

    def drop(self, cluster: str, gvr: GVR) -> None:
        """It is not cached any more."""
        self._held.pop((cluster, gvr), None)
        for sink in self.sinks:
            sink.forget(cluster, gvr)


class EverythingAllowed:
    """Rights without members: all, unless a test refuses them by (cluster, resource, namespace)."""

    def __init__(self, refuses: Callable[[str, str, str], bool] = lambda *_: False) -> None:
        self._refuses = refuses

    async def rights(self, user: User, wanted: AuthzAttributes, clusters: Iterable[str]) -> Rights:  # noqa: ARG002
        refused = {c: "no" for c in clusters if self._refuses(c, wanted.resource, wanted.namespace)}
        return Rights([cluster for cluster in clusters if cluster not in refused], refused)


def cached_object(gvr: GVR, obj: Obj) -> Doc:
    metadata = obj["metadata"]
    kind = KINDS[gvr].gvk
    revision = next(_versions)
    whole = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        **obj,
        "metadata": {
            "uid": f"uid-{metadata.get('namespace')}-{metadata['name']}",
            **metadata,
            "resourceVersion": str(revision),
        },
    }
    namespace = metadata.get("namespace") or ""
    return Doc(
        f"{gvr.resource}/{namespace}/{metadata['name']}", namespace, metadata["name"], revision, orjson.dumps(whole)
    )


def pod(
    name: str, namespace: str = "default", *, phase: str = "Running", image: str = "nginx:1.27", **metadata: Any
) -> Obj:
    return {
        "metadata": {"name": name, "namespace": namespace, "creationTimestamp": "2026-01-01T00:00:00Z", **metadata},
        "spec": {"nodeName": "node-1", "containers": [{"name": "main", "image": image}]},
        "status": {
            "phase": phase,
            "containerStatuses": [
                {"name": "main", "ready": phase == "Running", "restartCount": 0, "state": {"running": {}}}
            ],
        },
    }
