"""Generic subresources: a part of an object with an endpoint of its own.

`status` and its like are written by projecting the body onto a copy of the live object: only that part changes, the
rest goes through the ordinary update path. `scale` shows an autoscaling/v1 Scale and writes the replicas behind it.
"""

from __future__ import annotations

from collections.abc import Callable

from karmada.kube.kinds.resource import Resource, Subresource
from karmada.kube.objects.types import Obj

_METADATA = ("labels", "annotations", "finalizers", "ownerReferences")


def projection(resource: Resource, part: Subresource) -> Callable[[Obj, Obj], Obj] | None:
    """(live copy, body) → what a write to this part stores; None: it has a handler of its own (scale, binding)."""
    if part.project is not None:
        return part.project
    return (lambda live, body: project_status(resource, live, body)) if part.name == "status" else None


def project_status(resource: Resource, live: Obj, body: Obj) -> Obj:
    """Return what a write to /status stores: the body's status, and of its metadata what the kind lets through."""
    strategy = resource.strategy
    projected = live
    if "status" in body:
        projected["status"] = body["status"]
    else:
        projected.pop("status", None)
    meta, given = projected["metadata"], body.get("metadata") or {}
    if given.get("resourceVersion"):
        meta["resourceVersion"] = given["resourceVersion"]
    else:
        meta.pop("resourceVersion", None)
    if given.get("uid"):
        meta["uid"] = given["uid"]
    if "managedFields" in given:
        meta["managedFields"] = given["managedFields"]
    if strategy.status_only:
        return projected
    for key in _METADATA:
        if key in strategy.status_keeps:
            continue
        if key in given:
            meta[key] = given[key]
        else:
            meta.pop(key, None)
    return projected
