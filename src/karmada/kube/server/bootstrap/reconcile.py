"""The objects a server has from its first second, made when they are missing and mended when they are not right.

Namespaces, its own Service and endpoints, priority classes, local APIServices, what it publishes of itself, and RBAC's
default roles and bindings. Roles are mended as Kubernetes does: what they lack is added, what somebody added stays,
and a role whose autoupdate annotation is not "true" is left alone.

All are written at once, after the namespaces they are in, so that on a disk they share a few syncs. In a new cluster
those that every cluster has are written as an earlier server of this process left them (remembered.py).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from karmada.kube.client.client import Client
from karmada.kube.kinds.resource import Resource
from karmada.kube.objects import names
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import AlreadyExists, Conflict, Invalid, NotFound
from karmada.kube.objects.gvk import GVK, GVR
from karmada.kube.objects.gvrs import CRDS
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.writes import retry_on_conflict
from karmada.kube.server.auth.bootstrap_policy import bootstrap_objects, fill_aggregates, must_recreate, reconcile
from karmada.kube.server.bootstrap.objects import NAMESPACE_RESOURCE
from karmada.kube.server.bootstrap.remembered import recall, remember
from karmada.kube.server.controllers.flow_schemas import SCHEMAS, report_level
from karmada.kube.server.crds.compile import established_status
from karmada.kube.server.crds.serving import builtin_names
from karmada.kube.server.registry import Registry
from karmada.kube.server.storage.interface import RevisionConflict
from karmada.kube.server.watchcache.cache import Cache, storage_key

_LOOKS, _LOOK_SECONDS = 50, 0.1
Mend = Callable[[Obj, Obj], Obj | None]
"""(existing, wanted) → what to write; None: leave it."""


def _keep(_existing: Obj, _wanted: Obj) -> Obj | None:
    return None


def _replace(*keys: str) -> Mend:
    """Make these members equal to the wanted ones."""

    def mend(existing: Obj, wanted: Obj) -> Obj | None:
        if all(existing.get(key) == wanted.get(key) for key in keys):
            return None
        return {**copy_json(existing), **{key: wanted[key] for key in keys if key in wanted}}

    return mend


def _set_data(existing: Obj, wanted: Obj) -> Obj | None:
    """Return the object with the wanted keys beside others, such as the signatures of cluster-info; None: no change."""
    data = existing.get("data") or {}
    if data.items() >= wanted["data"].items():
        return None
    return {**copy_json(existing), "data": {**data, **wanted["data"]}}


def _bring_up_to_date(existing: Obj, wanted: Obj) -> Obj | None:
    """Return the object with the wanted spec; what a server fills in does not count. None: nothing to change."""
    if _covers(existing.get("spec"), wanted["spec"]):
        return None
    return {**copy_json(existing), "spec": copy_json(wanted["spec"])}


def _covers(existing: object, wanted: object) -> bool:
    if existing == wanted:  # nearly always, and compared at once
        return True
    if isinstance(wanted, dict) and isinstance(existing, dict):
        return all(_covers(existing.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list) and isinstance(existing, list):
        return len(existing) == len(wanted) and all(map(_covers, existing, wanted))
    return False


_MENDERS: dict[str, Mend] = {
    "Endpoints": _replace("subsets"),
    "EndpointSlice": _replace("endpoints", "ports"),
    "ClusterRole": reconcile,
    "ClusterRoleBinding": reconcile,
    "Role": reconcile,
    "RoleBinding": reconcile,
    "ConfigMap": _set_data,
    "CustomResourceDefinition": _bring_up_to_date,
}


_ALIKE = frozenset({
    "APIService", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "FlowSchema", "Namespace",
    "PriorityClass", "PriorityLevelConfiguration", "Role", "RoleBinding",
})  # fmt: skip
"""Kinds whose default objects are alike in all clusters; others hold addresses and certificates."""


@dataclass(frozen=True)
class Defaults:
    """The default objects of one server, and what writes them."""

    client: Client
    registry: Registry
    cache: Cache
    clock: Clock
    version: str
    """Version of Kubernetes."""

    async def ensure(self, objects: list[Obj]) -> None:
        """Make these and RBAC's what they should be."""
        new = self.cache.get(NAMESPACE_RESOURCE, "", "default") is None  # it cannot be deleted
        everything = [*objects, *bootstrap_objects()]
        if new and any(obj["kind"] == "ClusterRole" for obj in objects):
            everything = fill_aggregates(everything)
        for is_namespace in (True, False):
            chosen = [obj for obj in everything if (obj["kind"] == "Namespace") is is_namespace]
            outcomes = await asyncio.gather(*(self._ensure(obj, new) for obj in chosen), return_exceptions=True)
            for outcome in outcomes:
                if outcome is not None:
                    raise outcome
        await self.cache.fresh()

    async def _ensure(self, wanted: Obj, new: bool) -> None:
        resource = self.registry.by_kind(GVK.parse(wanted["apiVersion"], wanted["kind"]))
        if resource is None:
            return
        meta = wanted["metadata"]
        name, namespace = meta["name"], meta.get("namespace", "")
        existing = self.cache.get(resource.group_resource, namespace, name)
        if existing is not None and wanted["kind"].endswith("RoleBinding") and must_recreate(existing, wanted):
            await self.client.delete(resource.gvr, name, namespace)
            existing = None
        if existing is None:
            alike = new and wanted["kind"] in _ALIKE
            if not (alike and await self._write_remembered(resource, wanted)):
                await self._create(resource, wanted, alike)
            return
        mend = _MENDERS.get(wanted["kind"], _keep)
        if mend(existing, wanted) is not None:
            await retry_on_conflict(lambda: self._mend(resource.gvr, wanted, mend))

    async def _mend(self, gvr: GVR, wanted: Obj, mend: Mend) -> None:
        """From what is stored now: controllers, and other servers on the same store, write some of these, too."""
        meta = wanted["metadata"]
        mended = mend(await self.client.get(gvr, meta["name"], meta.get("namespace", "")), wanted)
        if mended is not None:
            await self.client.update(gvr, mended)

    async def _write_remembered(self, resource: Resource, wanted: Obj) -> bool:
        form = recall(self.version, wanted)
        if form is None:
            return False
        uid, now = names.random_uuid(), rfc3339(self.clock.now())
        meta = wanted["metadata"]
        key = storage_key(resource.storage_resource, meta.get("namespace", ""), meta["name"])
        # CRDs are the largest, and what serves their kinds reads them at once
        obj = form.object(uid, now) if resource.gvr == CRDS else None
        with contextlib.suppress(RevisionConflict):  # another server has made it
            await self.cache.store.write(key, form.value(uid, now), expected=0, obj=obj)
        return True

    async def _create(self, resource: Resource, wanted: Obj, alike: bool) -> None:
        try:
            made = await self.client.create(resource.gvr, wanted)
        except AlreadyExists:
            return  # another server has made it
        except Invalid:
            if wanted["kind"] == "Service" and await self._appears(resource, wanted):
                return  # its address was taken because another server was making it
            raise
        try:
            made = await self._complete(resource, made)
        except (Conflict, NotFound):
            return  # and has changed it by now
        if alike and resource.from_storage is None:
            remember(self.version, wanted, made)

    async def _appears(self, resource: Resource, wanted: Obj) -> bool:
        """Return whether another server that starts at the same time makes it, too."""
        meta = wanted["metadata"]
        for _ in range(_LOOKS):
            await self.cache.fresh()
            if self.cache.get(resource.group_resource, meta.get("namespace", ""), meta["name"]) is not None:
                return True
            await self.clock.sleep(_LOOK_SECONDS)
        return False

    async def _complete(self, resource: Resource, made: Obj) -> Obj:
        """With its status, so that a kind is served as soon as it is defined, and controllers find nothing to do."""
        now = self.clock.now()
        if resource.gvr == SCHEMAS:
            return await report_level(self.client, made, exists=True, now=now)  # the levels are defaults, too
        if resource.gvr != CRDS:
            return made
        others = self.cache.list(CRDS.group_resource) + builtin_names(self.registry, made["spec"]["group"])
        others = [other for other in others if other["metadata"]["name"] != made["metadata"]["name"]]
        status = established_status(made, others, now)
        return await self.client.update_status(CRDS, {**copy_json(made), "status": status})
