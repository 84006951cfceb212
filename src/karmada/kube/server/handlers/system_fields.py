"""What the server itself sets in an object that is written, whatever the client sent.

System fields are cleared on a create and carried over on an update; a write to one endpoint leaves what belongs to
another as it is; and what mutating admission must not change is put back.

`status` and its like are written by projecting the body onto a copy of the live object: only that part changes, the
rest goes through the ordinary update path.
"""

from __future__ import annotations

from collections.abc import Callable

import orjson

from karmada.kube.kinds.resource import Resource, Subresource
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.types import Obj
from karmada.kube.patch.managedfields import after_admission, update_managers
from karmada.kube.server.http.request import Request

SYSTEM_FIELDS = (
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
)
_KEPT_FIELDS = (
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "namespace",
)
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


def record_owners(
    resource: Resource, before: Obj | None, after: Obj, manager: str, now: str, subresource: str = ""
) -> None:
    """In place: record who owns which field after a write."""
    managers = update_managers(
        before,
        after,
        resource.schema(),
        manager=manager,
        api_version=resource.api_version,
        now=now,
        subresource=subresource,
        custom=resource.custom,
        reset=resource.reset_of(subresource),
    )
    if managers:
        after["metadata"]["managedFields"] = managers
    else:
        after["metadata"].pop("managedFields", None)


def dedupe_owners(request: Request, meta: Obj) -> None:
    owners = meta.get("ownerReferences")
    if not owners or len(owners) < 2:
        return
    unique: dict[bytes, Obj] = {}
    for owner in owners:
        unique.setdefault(orjson.dumps(owner, option=orjson.OPT_SORT_KEYS), owner)
    if len(unique) < len(owners):
        meta["ownerReferences"] = list(unique.values())
        request.warn(
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+"
        )


def wipe_status(resource: Resource, obj: Obj) -> None:
    """Clear the status of a new object: empty for a built-in kind, absent for a custom one."""
    if resource.custom:
        del obj["status"]
    elif obj["status"]:
        obj["status"] = {}
        resource.strategy.default(obj)


def carry_over(new: Obj, old: Obj) -> Obj:
    """Metadata that only the server sets stays as it is."""
    meta: Obj = new.setdefault("metadata", {})
    live = old["metadata"]
    for key in _KEPT_FIELDS:
        if key in live:
            meta[key] = live[key]
        else:
            meta.pop(key, None)
    meta["name"] = live["name"]
    meta["resourceVersion"] = live["resourceVersion"]
    meta.pop("selfLink", None)
    return meta


def shares_metadata(new: Obj, old: Obj) -> bool:
    """Return whether all metadata but the managers is that of the old object, as after a write to a part."""
    meta, live = new["metadata"], old["metadata"]
    if len(meta) != len(live):
        return False
    for key, value in meta.items():  # noqa: SIM110 - a call for each member would cost more than all comparisons
        if key != "managedFields" and live.get(key) is not value:
            return False
    return True


def restore_rest(resource: Resource, subresource: str, new: Obj, old: Obj) -> Obj:
    """Undo what mutating admission changed outside of the part that the endpoint writes; returns the new metadata."""
    part = resource.subresources.get(subresource)
    if part is not None:
        project = projection(resource, part)
        if project is not None:
            projected = project(copy_json(old), dict(new))
            new.clear()
            new.update(projected)
    elif not subresource and resource.has_status:
        restore(new, old, "status")
    return carry_over(new, old)


def repair(request: Request, obj: Obj, entries: list[Obj]) -> None:
    """After mutating admission: restore broken managedFields, and remove duplicate ownerReferences."""
    _, warning = after_admission(entries, obj)
    if warning:
        obj["metadata"]["managedFields"] = entries
        request.warn(warning)
    dedupe_owners(request, obj["metadata"])


def restore(new: Obj, old: Obj, key: str) -> None:
    if key in old:
        new[key] = orjson.loads(orjson.dumps(old[key]))
    else:
        new.pop(key, None)
