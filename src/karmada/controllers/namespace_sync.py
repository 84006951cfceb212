"""Namespace sync: every namespace is propagated to every cluster, so that namespaced templates can be applied there.

A changed namespace is synced to all clusters, a joined cluster gets all namespaces: two sorts of keys, one function
that writes a Work. A cluster is included from the moment its execution namespace exists until it is being deleted.
Existing Works are kept when a namespace is later labelled to be skipped: it may be in use. They are garbage-collected
with the namespace, which owns them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Final

from karmada.api import well_known
from karmada.api.cluster import Cluster
from karmada.api.policy import ClusterOverridePolicy
from karmada.controllers.concurrently import for_each
from karmada.controllers.context import Context
from karmada.controllers.works import Works
from karmada.kube.objects import meta
from karmada.kube.objects.errors import ApiError, Conflict
from karmada.kube.objects.gvrs import NAMESPACES
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Enqueue, Reconciler, Result, Watch
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.time_slice import in_slices
from karmada.overrides.hook import Overridden, Override
from karmada.overrides.triggers import target_fields

CONTROLLER: Final = "namespace-sync-controller"
_AT_ONCE = 64
"""The number of Works written concurrently."""


class Skipped:
    """Namespaces that are never synced: the control plane's own, `default`, and what patterns match."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = [re.compile(f"^{pattern}$") for pattern in patterns]

    def __call__(self, name: str) -> bool:
        if name == "default" or well_known.is_reserved_namespace(name):
            return True
        return any(pattern.search(name) for pattern in self._patterns)


def propagates_itself(namespace: Obj) -> bool:
    """Neither being deleted nor labelled to be skipped."""
    marked = meta.labels(namespace).get(well_known.SKIP_AUTO_PROPAGATION, "").lower() == well_known.TRUE
    return not marked and not meta.is_deleting(namespace)


def named_namespaces(policy: Obj) -> set[str] | None:
    """Return the namespaces that an override policy selects by name; None when it selects them all."""
    names = set()
    for selector in (policy.get("spec") or {}).get("resourceSelectors") or ():
        if (selector.get("apiVersion"), selector.get("kind")) == ("v1", "Namespace"):
            if not selector.get("name"):
                return None
            names.add(selector["name"])
    return names


class SyncedNamespaces:
    """Which Namespaces are synced to every cluster; their Works are not deleted for a placement."""

    def __init__(self, context: Context) -> None:
        self._namespaces = context.informers.of(NAMESPACES)
        self._skipped = Skipped(context.settings.skipped_propagating_namespaces)

    def __call__(self, reference: Obj) -> bool:
        """Return the key; `reference` is the spec.resource of a binding."""
        if (reference.get("apiVersion"), reference.get("kind")) != ("v1", "Namespace"):
            return False
        namespace = self._namespaces.get(Key("", reference["name"]))
        return namespace is not None and propagates_itself(namespace) and not self._skipped(reference["name"])


class NamespaceSync(Reconciler):
    name = CONTROLLER

    def __init__(self, context: Context, override: Override | None = None) -> None:
        self.workers = context.settings.concurrent_namespace_syncs
        self._override = override
        self._skipped = Skipped(context.settings.skipped_propagating_namespaces)
        self._works = Works(context)
        self._namespaces = context.informers.of(NAMESPACES)
        self._clusters = context.informers.of(Cluster.gvr)
        self.watches = (
            Watch(NAMESPACES, on=("ADDED", "MODIFIED"), when=self._is_synced_otherwise),
            Watch(NAMESPACES, on=("ADDED",), when=self._is_skipped, map_to=_new_cluster),
            Watch(Cluster.gvr, changed=("metadata.deletionTimestamp",), map_to=_whole_cluster),
            Watch(Cluster.gvr, on=("MODIFIED",), when=_other_rules_may_hold, map_to=_whole_cluster),
            Watch(ClusterOverridePolicy.gvr, changed=("spec",), walk=self._requeue_selected),
        )

    def _is_skipped(self, _old: Obj | None, new: Obj | None) -> bool:
        return new is not None and self._skipped(meta.name(new))

    def _is_synced_otherwise(self, old: Obj | None, new: Obj | None) -> bool:
        return not self._is_skipped(old, new) and (old is None or _content_changed(old, new))

    async def _requeue_selected(self, old: Obj | None, new: Obj | None, add: Enqueue) -> None:
        named = [named_namespaces(policy) for policy in (old, new) if policy is not None]
        every = None in named
        async for key in in_slices(self._namespaces.keys()):
            if every or any(key.name in names for names in named if names is not None):
                add(key)

    async def reconcile(self, key: Key) -> Result:
        """Sync (cluster, ""), all namespaces of a cluster, or ("", namespace), one in all clusters."""
        if key.namespace:
            cluster = self._clusters.get(Key("", key.namespace))
            clusters = [] if cluster is None else [cluster]
            namespaces = [namespace async for namespace in self._namespaces.scan() if self._is_synced(namespace)]
        else:
            namespace = self._namespaces.get(key)
            clusters = [cluster async for cluster in self._clusters.scan()]
            namespaces = [namespace] if namespace is not None and self._is_synced(namespace) else []
        targets = [meta.name(cluster) for cluster in clusters if self._included(cluster)]
        await for_each(product(namespaces, targets), self._sync, limit=_AT_ONCE)
        return Done

    def _is_synced(self, namespace: Obj) -> bool:
        return propagates_itself(namespace) and not self._skipped(namespace["metadata"]["name"])

    def _included(self, cluster: Obj) -> bool:
        space = Key("", well_known.execution_namespace(cluster["metadata"]["name"]))
        return not meta.is_deleting(cluster) and self._namespaces.get(space) is not None

    async def _sync(self, pair: tuple[Obj, str]) -> None:
        namespace, cluster = pair
        try:
            made = Overridden(namespace, {})
            if self._override is not None:
                made = self._override(namespace, cluster)
            await self._works.ensure(cluster, made.object, annotations=made.annotations, owner=namespace)
        except Conflict:
            raise
        except ApiError as error:
            name = namespace["metadata"]["name"]
            raise ApiError(f"sync namespace({name}) to cluster({cluster}) failed due to: {error.message}") from error


def _content_changed(old: Obj | None, new: Obj | None) -> bool:
    """Return whether anything changed that a Work carries: not status, versions or managedFields."""
    return old is not None and new is not None and _content(old) != _content(new)


def _content(namespace: Obj) -> tuple[dict[str, str], dict[str, str], object]:
    return meta.labels(namespace), meta.annotations(namespace), namespace.get("spec")


def _other_rules_may_hold(old: Obj | None, new: Obj | None) -> bool:
    """Return whether fields of a cluster changed that override policies can select by."""
    return old is not None and new is not None and target_fields(old) != target_fields(new)


def _new_cluster(namespace: Obj) -> Iterable[Key]:
    name = well_known.cluster_of_namespace(namespace["metadata"]["name"])
    return () if name is None else (Key(name, ""),)


def _whole_cluster(cluster: Obj) -> Iterable[Key]:
    return () if meta.is_deleting(cluster) else (Key(cluster["metadata"]["name"], ""),)
