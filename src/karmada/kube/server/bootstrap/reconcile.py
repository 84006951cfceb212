"""The objects a server has from its first second, made when they are missing and mended when they are not right.

Namespaces, its own Service and endpoints, priority classes, local APIServices, what it publishes of itself, and RBAC's
default roles and bindings. Roles are mended as Kubernetes does: what they lack is added, what somebody added stays,
and a role whose autoupdate annotation is not "true" is left alone.
"""

from __future__ import annotations

from collections.abc import Callable

from karmada.kube.client.client import Client
from karmada.kube.kinds.resource import Reader
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import AlreadyExists
from karmada.kube.objects.gvk import GVK, GVR
from karmada.kube.objects.types import Obj
from karmada.kube.server.auth.bootstrap_policy import bootstrap_objects, must_recreate, reconcile
from karmada.kube.server.registry import Registry

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
    """The keys that are wanted must be as wanted; others belong to others, such as the signatures of cluster-info."""
    data = existing.get("data") or {}
    if data.items() >= wanted["data"].items():
        return None
    return {**copy_json(existing), "data": {**data, **wanted["data"]}}


def _bring_up_to_date(existing: Obj, wanted: Obj) -> Obj | None:
    """What is wanted must be there as it is wanted; what a server fills in besides does not count."""
    if _covers(existing.get("spec"), wanted["spec"]):
        return None
    return {**copy_json(existing), "spec": copy_json(wanted["spec"])}


def _covers(existing: object, wanted: object) -> bool:
    if isinstance(wanted, dict) and isinstance(existing, dict):
        return all(_covers(existing.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list) and isinstance(existing, list):
        return len(existing) == len(wanted) and all(map(_covers, existing, wanted))
    return existing == wanted


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


async def ensure_defaults(client: Client, registry: Registry, reader: Reader, objects: list[Obj]) -> None:
    for wanted in [*objects, *bootstrap_objects()]:
        resource = registry.by_kind(GVK.parse(wanted["apiVersion"], wanted["kind"]))
        if resource is not None:
            await _ensure(client, reader, resource.gvr, wanted)


async def _ensure(client: Client, reader: Reader, gvr: GVR, wanted: Obj) -> None:
    meta = wanted["metadata"]
    name, namespace = meta["name"], meta.get("namespace", "")
    existing = reader.get(gvr.group_resource, namespace, name)
    if existing is not None and wanted["kind"].endswith("RoleBinding") and must_recreate(existing, wanted):
        await client.delete(gvr, name, namespace)
        existing = None
    if existing is None:
        try:
            await client.create(gvr, wanted)
        except AlreadyExists:
            return
        return
    mended = _MENDERS.get(wanted["kind"], _keep)(existing, wanted)
    if mended is not None:
        await client.update(gvr, mended)
