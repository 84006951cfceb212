"""CustomResourceDefinitions at work: what they define is served as long as they are there.

`CustomResources` watches the CRDs in the watch cache and keeps the registry in step, on every server. The controller
beside it runs on one server: it accepts names, reports conditions and, when a CRD is deleted, deletes its objects
before it removes the finalizer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from karmada.kube.client.client import Client
from karmada.kube.kinds.resource import Resource
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvk import GVR, GroupResource
from karmada.kube.objects.gvrs import CRDS
from karmada.kube.objects.meta import get_condition, has_condition
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch, requeue
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.waiting import cancel_and_wait
from karmada.kube.runtime.writes import delete_if_exists
from karmada.kube.server.controllers.waiting import look_again_after
from karmada.kube.server.crds.compile import (
    TERMINATING_CREATE,
    Convert,
    crd_resources,
    established_status,
    is_served,
    is_terminating,
    terminating_status,
)
from karmada.kube.server.crds.conversion import Call, convert_objects
from karmada.kube.server.registry import Registry
from karmada.kube.server.watchcache.cache import Cache
from karmada.kube.server.watchcache.entry import DELETED
from karmada.kube.server.watchcache.subscription import Subscription

FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
_IN_PROGRESS = "InstanceDeletionInProgress"
_log = get_logger("custom-resources")


class CustomResources:
    def __init__(self, registry: Registry, cache: Cache, call: Call) -> None:
        self._registry = registry
        self._cache = cache
        self._call = call
        self._served: dict[str, tuple[tuple[object, ...], list[Resource]]] = {}
        self._task: asyncio.Task[None] | None = None
        self.changed: list[Callable[[], None]] = []
        """Called when resources were added or removed."""
        self.converters: dict[str, Convert] = {}
        """Conversions that run here in place of their webhooks, by the names of CRDs."""

    async def start(self) -> None:
        subscription = await self._subscribe()
        self._task = asyncio.create_task(self._follow(subscription), name="custom-resources")

    async def _subscribe(self) -> Subscription:
        """Sync all existing CRDs; the subscription delivers every change after them."""
        collection = self._cache.collection(CRDS.group_resource)
        subscription = await collection.subscribe()
        there = {entry.name: entry for entry in collection.list()}
        for name in self._served.keys() - there.keys():
            self._sync(name, None)
        for name, entry in there.items():
            self._sync(name, entry.object())
        return subscription

    async def stop(self) -> None:
        if self._task is not None:
            await cancel_and_wait(self._task)
            self._task = None

    async def _follow(self, subscription: Subscription) -> None:
        """Sync everything again whenever a subscription ends because the cache is reloaded."""
        while True:
            async for batch in subscription:
                for change in batch:
                    self._sync(change.entry.name, None if change.type == DELETED else change.entry.object())
            subscription = await self._subscribe()

    def _sync(self, name: str, crd: Obj | None) -> None:
        try:
            self.sync(name, crd)
        except Exception as error:  # noqa: BLE001 - a definition that cannot be served must not stop the others
            _log.exception("Cannot serve a CustomResourceDefinition", error, name=name)

    def sync(self, name: str, crd: Obj | None) -> None:
        """Serve what the CRD says now."""
        served = _to_serve(crd) if crd is not None and is_served(crd) and not is_builtin(self._registry, crd) else None
        state = _state(served) if served is not None else ()
        known, resources = self._served.get(name, ((), []))
        if known != state:
            resources = self._replace(name, resources, served, state)
        for resource in resources:
            resource.closed = TERMINATING_CREATE if served is not None and is_terminating(served) else ""

    def _replace(
        self, name: str, resources: list[Resource], served: Obj | None, state: tuple[object, ...]
    ) -> list[Resource]:
        if resources:
            self._registry.remove(resources)
            self._cache.collection(resources[0].storage_resource).end_watches()
        self._served.pop(name, None)
        made: list[Resource] = []
        if served is not None:
            made = crd_resources(served, self._converter(served))
            self._registry.add(made)
            self._served[name] = (state, made)
        for notify in self.changed:
            notify()
        return made

    def _converter(self, crd: Obj) -> Convert:
        own = self.converters.get(crd["metadata"]["name"])
        if own is not None:
            return own

        async def convert(objects: list[Obj], api_version: str) -> list[Obj]:
            return await convert_objects(crd, objects, api_version, self._call)

        return convert


def _to_serve(crd: Obj) -> Obj:
    """Return the CRD; a terminating one without a served version gets its storage version served, to delete objects."""
    spec = crd["spec"]
    if not is_terminating(crd) or any(version.get("served") for version in spec["versions"]):
        return crd
    versions = [{**version, "served": bool(version.get("storage"))} for version in spec["versions"]]
    return {**crd, "spec": {**spec, "versions": versions}}


def _state(crd: Obj) -> tuple[object, ...]:
    """Return the parts of a CRD that decide how its objects are served; watches continue while they are the same."""
    return (crd["metadata"]["uid"], crd["spec"], (crd.get("status") or {}).get("acceptedNames"))


def is_builtin(registry: Registry, crd: Obj) -> bool:
    """Return whether a CRD names a resource that is served without it, whose objects do not belong to the CRD."""
    wanted = GroupResource(crd["spec"]["group"], crd["spec"]["names"]["plural"])
    return any(r.builtin and wanted in (r.storage_resource, r.group_resource) for r in registry)


def builtin_names(registry: Registry, group: str) -> list[Obj]:
    """Return the names that built-in kinds take in a group, in the form of definitions."""
    return [
        {
            "metadata": {"name": f"built-in {resource.gvk}"},
            "spec": {"group": group},
            "status": {
                "acceptedNames": {
                    "plural": resource.plural,
                    "singular": resource.singular,
                    "kind": resource.gvk.kind,
                    "listKind": resource.list_kind,
                    "shortNames": list(resource.short_names),
                }
            },
        }
        for resource in registry
        if resource.gvk.group == group and resource.builtin
    ]


def _is_deleting_objects(crd: Obj) -> bool:
    condition = get_condition((crd.get("status") or {}).get("conditions"), "Terminating")
    return condition is not None and condition.get("reason") == _IN_PROGRESS


class CustomResourceDefinitionController(Reconciler):
    name = "customresourcedefinitions"

    def __init__(self, client: Client, informers: Informers, registry: Registry, clock: Clock) -> None:
        self._client = client
        self._registry = registry
        self._crds = informers.of(CRDS)
        self._clock = clock
        self.watches = (Watch(CRDS, map_to=self._concerned),)

    def _concerned(self, crd: Obj) -> list[Key]:
        """Return the CRD, and those of its group that wait for names it may have released."""
        return [
            key_of(crd),
            *(
                key_of(other)
                for other in self._crds.list()
                if other["spec"]["group"] == crd["spec"]["group"]
                and not has_condition((other.get("status") or {}).get("conditions"), "NamesAccepted")
            ),
        ]

    async def reconcile(self, key: Key) -> Result:
        crd = self._crds.get(key)
        if crd is None:
            return Done
        if "deletionTimestamp" in crd["metadata"]:
            return await self._clean_up(crd)
        others = [other for other in self._crds.list() if other["metadata"]["name"] != key.name]
        others += builtin_names(self._registry, crd["spec"]["group"])
        status = established_status(crd, others, self._clock.now())
        if status != crd.get("status"):
            await self._client.update_status(CRDS, {**copy_json(crd), "status": status})
        return Done

    async def _clean_up(self, crd: Obj) -> Result:
        if FINALIZER not in (crd["metadata"].get("finalizers") or []):
            return Done
        if not _is_deleting_objects(crd):
            now = self._clock.now()
            status = terminating_status(crd, _IN_PROGRESS, "CustomResource deletion is in progress", now)
            await self._client.update_status(CRDS, {**copy_json(crd), "status": status})
            return Done
        if await self._delete_objects(crd):
            return requeue(look_again_after(crd, self._clock.now()))
        kept = [f for f in crd["metadata"]["finalizers"] if f != FINALIZER]
        patch = {"metadata": {"finalizers": kept or None, "resourceVersion": crd["metadata"]["resourceVersion"]}}
        await self._client.patch(CRDS, crd["metadata"]["name"], "", patch)
        return Done

    async def _delete_objects(self, crd: Obj) -> bool:
        """Delete every object; whether any is left."""
        if not is_served(crd) or is_builtin(self._registry, crd):
            return False  # it never had its names, so it has no objects
        spec = _to_serve(crd)["spec"]
        version = next(v["name"] for v in spec["versions"] if v.get("served"))
        gvr = GVR(spec["group"], version, spec["names"]["plural"])
        try:
            for obj in (await self._client.list_all(gvr)).items:
                meta = obj["metadata"]
                if "deletionTimestamp" not in meta:
                    await self._delete(gvr, meta)
            return bool((await self._client.list_all(gvr)).items)
        except NotFound:
            return True  # the registry is about to follow

    async def _delete(self, gvr: GVR, meta: Obj) -> None:
        await delete_if_exists(self._client, gvr, meta["name"], meta.get("namespace", ""))
