"""Writing only what changes: the helpers controllers use instead of blind updates.

An update that changes nothing costs the server a write and wakes every watcher, which often wakes the writer again; all
of these compare first. Objects from caches are shared, so each works on a copy of its own.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from karmada.kube.client.client import Client
from karmada.kube.objects.clock import Clock, RealClock
from karmada.kube.objects.errors import Conflict, NotFound
from karmada.kube.objects.gvk import GVK, GVR
from karmada.kube.objects.types import Obj
from karmada.kube.patch.mergepatch import create_merge_patch

T = TypeVar("T")
Outcome: TypeAlias = Literal["created", "updated", "unchanged"]


class Write(NamedTuple):
    """The outcome of a write, and the object as it is now."""

    outcome: Outcome
    object: Obj


async def retry_on_conflict(
    work: Callable[[], Awaitable[T]], *, clock: Clock | None = None, tries: int = 5, pause: float = 0.01
) -> T:
    """Run `work`, which must read what it changes, again as long as it ends in a conflict."""
    waiter = clock or RealClock()
    for attempt in range(tries):
        try:
            return await work()
        except Conflict:
            if attempt == tries - 1:
                raise
            await waiter.sleep(pause * (1 + random.random() * 0.1) * 2**attempt)
    raise ValueError("tries must be at least 1")


async def patch_if_changed(
    client: Client, kind: GVR | GVK, old: Obj, new: Obj, *, subresource: str = "", locked: bool = False
) -> Write:
    """Send the difference from `old` to `new` as a merge patch, if there is one.

    `locked`: only if the object is still the version `old` is (Conflict otherwise).
    """
    patch = create_merge_patch(old, new)
    if not patch:
        return Write("unchanged", old)
    metadata = old["metadata"]
    if locked:
        patch["metadata"] = {**patch.get("metadata", {}), "resourceVersion": metadata["resourceVersion"]}
    written = await client.patch(
        kind, metadata["name"], metadata.get("namespace", ""), patch, type="merge", subresource=subresource
    )
    return Write("updated", written)


async def set_status(client: Client, kind: GVR | GVK, obj: Obj, status: Obj) -> Write:
    """Give an object this status through its status subresource, if it has another."""
    if (obj.get("status") or {}) == status:
        return Write("unchanged", obj)
    return Write("updated", await client.update_status(kind, {**obj, "status": status}))


async def add_finalizer(client: Client, kind: GVR | GVK, obj: Obj, finalizer: str) -> Write:
    present = list(obj["metadata"].get("finalizers") or ())
    if finalizer in present:
        return Write("unchanged", obj)
    return await _set_finalizers(client, kind, obj, [*present, finalizer])


async def remove_finalizer(client: Client, kind: GVR | GVK, obj: Obj, finalizer: str, *, update: bool = False) -> Write:
    """Take the finalizer off; return whether that is done, as it is for an object that is gone already.

    `update`: by an update of the whole object, for those who have no right to patch it.
    """
    present = list(obj["metadata"].get("finalizers") or ())
    if finalizer not in present:
        return Write("unchanged", obj)
    try:
        left = [f for f in present if f != finalizer]
        if update:
            return Write(
                "updated", await client.update(kind, {**obj, "metadata": {**obj["metadata"], "finalizers": left}})
            )
        return await _set_finalizers(client, kind, obj, left)
    except NotFound:
        return Write("unchanged", obj)


async def _set_finalizers(client: Client, kind: GVR | GVK, obj: Obj, finalizers: list[str]) -> Write:
    metadata = obj["metadata"]
    patch = {"metadata": {"finalizers": finalizers or None, "resourceVersion": metadata["resourceVersion"]}}
    written = await client.patch(kind, metadata["name"], metadata.get("namespace", ""), patch, type="merge")
    return Write("updated", written)


async def get_if_exists(client: Client, kind: GVR | GVK, name: str, namespace: str = "", **how: Any) -> Obj | None:
    """Return the object, or None when there is none; `how` is as of Client.get."""
    try:
        return await client.get(kind, name, namespace, **how)
    except NotFound:
        return None


async def delete_if_exists(client: Client, kind: GVR | GVK, name: str, namespace: str = "", **how: Any) -> bool:
    """Return True when there was something to delete; `how` is as of Client.delete."""
    try:
        await client.delete(kind, name, namespace, **how)
    except NotFound:
        return False
    return True
