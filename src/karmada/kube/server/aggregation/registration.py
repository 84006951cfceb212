"""Registration: an APIService for every group-version that is served here.

Those of built-in group-versions are made once, at the start; those of CRDs come and go with them. Both carry a label
that says so. An APIService without the label belongs to somebody else (an aggregated server in our place, say) and is
left alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from karmada.kube.client.client import Client
from karmada.kube.kinds.inventory import group_priority, version_priority
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import AlreadyExists
from karmada.kube.objects.gvk import GroupVersion
from karmada.kube.objects.gvrs import APISERVICES, CRDS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import ControllerOptions, Reconciler, Result, Watch, requeue
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.writes import delete_if_exists
from karmada.kube.server.registry import Registry
from karmada.kube.server.watchcache.cache import Cache

MANAGED = "kube-aggregator.kubernetes.io/automanaged"
ONCE, ALWAYS = "onstart", "true"
CUSTOM_GROUP_PRIORITY, CUSTOM_VERSION_PRIORITY = 1000, 100
_EVERYTHING = Key("", "")
_LOOK_AGAIN = 60.0


def _all(_obj: Obj) -> Iterable[Key]:
    return (_EVERYTHING,)


class Registration(Reconciler):
    name = "apiservice-registration"
    options = ControllerOptions(needs_leader=False)
    watches = (
        Watch(CRDS, changed=("spec", "metadata.deletionTimestamp"), map_to=_all),
        Watch(APISERVICES, changed=("spec",), map_to=_all),
    )

    def __init__(self, client: Client, cache: Cache, registry: Registry) -> None:
        self._client = client
        self._cache = cache
        self._collections = [cache.collection(kind.group_resource) for kind in (CRDS, APISERVICES)]
        self._registry = registry
        self._made_once: set[str] = set()
        self._reconciled: object = None
        """The state that was reconciled last."""

    async def reconcile(self, _key: Key) -> Result:
        state = self._state()
        if state != self._reconciled:
            await self._reconcile()
            self._reconciled = state
        return requeue(_LOOK_AGAIN)

    def _state(self) -> object:
        """Equal as long as nothing has changed of what is reconciled."""
        return [(found.changed, found.resets) for found in self._collections], self._registry.generation

    async def _reconcile(self) -> None:
        wanted = {obj["metadata"]["name"]: obj for obj in self._wanted()}
        existing = {obj["metadata"]["name"]: obj for obj in self._cache.list(APISERVICES.group_resource)}
        for name, obj in wanted.items():
            await self._ensure(name, obj, existing.get(name))
        for name, obj in existing.items():
            if name not in wanted and _managed(obj):
                await self._delete(obj)

    async def _ensure(self, name: str, obj: Obj, known: Obj | None) -> None:
        once = _managed(obj) == ONCE
        if once and name in self._made_once:
            return
        if known is None:
            try:
                await self._client.create(APISERVICES, obj)
            except AlreadyExists:
                return
        elif _managed(known) and known["spec"] != obj["spec"]:
            await self._client.update(APISERVICES, {**copy_json(known), "spec": obj["spec"]})
        if once:
            self._made_once.add(name)

    async def _delete(self, obj: Obj) -> None:
        meta = obj["metadata"]
        await delete_if_exists(self._client, APISERVICES, meta["name"], uid=meta["uid"])

    def _wanted(self) -> Iterator[Obj]:
        custom = set(self._custom_versions())
        for version in custom:
            yield api_service(version, ALWAYS, CUSTOM_GROUP_PRIORITY, CUSTOM_VERSION_PRIORITY)
        for version in self._registry.versions():
            if version not in custom and any(r.builtin for r in self._registry.in_version(version)):
                yield api_service(version, ONCE, group_priority(version.group), version_priority(version))

    def _custom_versions(self) -> Iterator[GroupVersion]:
        for crd in self._cache.list(CRDS.group_resource):
            if "deletionTimestamp" not in crd["metadata"]:
                group = crd["spec"]["group"]
                yield from (GroupVersion(group, v["name"]) for v in crd["spec"]["versions"] if v.get("served"))


def _managed(obj: Obj) -> str:
    return str((obj["metadata"].get("labels") or {}).get(MANAGED) or "")


def api_service(version: GroupVersion, managed: str, group_priority: int, version_priority: int) -> Obj:
    spec: Obj = {
        "version": version.version,
        "groupPriorityMinimum": group_priority,
        "versionPriority": version_priority,
    }
    if version.group:
        spec["group"] = version.group
    return {
        "apiVersion": APISERVICES.api_version,
        "kind": "APIService",
        "metadata": {"name": f"{version.version}.{version.group}", "labels": {MANAGED: managed}},
        "spec": spec,
    }
