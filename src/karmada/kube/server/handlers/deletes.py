"""delete and deletecollection: preconditions, grace period, finalizers and propagation policy.

An object with a grace period or finalizers (its own, or `orphan` and `foregroundDeletion`, which the propagation policy
adds for the garbage collector) only gets a deletionTimestamp. Others are removed at once.
"""

from __future__ import annotations

from collections.abc import Iterable

from karmada.kube.kinds.resource import Resource
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.doc import Doc
from karmada.kube.objects.errors import Conflict, NotFound
from karmada.kube.objects.times import parse_time, rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.time_slice import in_slices
from karmada.kube.server.admission.chain import Chain
from karmada.kube.server.admission.interface import DELETE, Attributes
from karmada.kube.server.handlers import versions
from karmada.kube.server.handlers.writes import CATCH_UP_SECONDS, CONFLICT_TRIES, Writes
from karmada.kube.server.http.options import DeleteOptions
from karmada.kube.server.http.request import Request
from karmada.kube.server.http.results import ObjectResult, success
from karmada.kube.server.storage.interface import RevisionConflict
from karmada.kube.server.watchcache.cache import Cache

ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
_FINALIZER = {"Orphan": ORPHAN, "Foreground": FOREGROUND, "Background": ""}


class Deletes:
    def __init__(self, cache: Cache, admission: Chain, writes: Writes, clock: Clock) -> None:
        self._cache = cache
        self._admission = admission
        self._writes = writes
        self._clock = clock

    async def delete(
        self, request: Request, resource: Resource, namespace: str, name: str, options: DeleteOptions
    ) -> ObjectResult:
        for _ in range(CONFLICT_TRIES):
            entry = self._cache.collection(resource.storage_resource).get(namespace, name)
            if entry is None:
                raise NotFound.of(resource.group_resource, name)
            live = entry.object()
            check_preconditions(resource, name, live, options)
            await self._admit(request, resource, namespace, name, live, options)
            try:
                return await self._delete_once(resource, namespace, entry, options)
            except RevisionConflict as conflict:
                if options.resource_version:
                    raise Conflict.stale(resource.group_resource, name) from None
                await self._cache.reach_conflict(conflict.revision, CATCH_UP_SECONDS)
        raise Conflict.stale(resource.group_resource, name)

    async def delete_all(
        self, request: Request, resource: Resource, objects: Iterable[Obj], options: DeleteOptions
    ) -> list[Obj]:
        """Delete each; one that no longer exists counts as deleted."""
        deleted = []
        async for obj in in_slices(objects):
            meta = obj["metadata"]
            try:
                await self.delete(request, resource, meta.get("namespace") or "", meta["name"], options)
            except NotFound:
                continue
            deleted.append(obj)
        return deleted

    async def _admit(
        self, request: Request, resource: Resource, namespace: str, name: str, live: Obj, options: DeleteOptions
    ) -> None:
        attributes = Attributes(
            DELETE, resource, "", namespace, name, None, live, request.user,
            dry_run=options.dry_run, options=options.body, warnings=request.warnings,
        )  # fmt: skip
        await self._admission.admit(attributes)
        await self._admission.validate(attributes)

    async def _delete_once(
        self, resource: Resource, namespace: str, entry: Doc, options: DeleteOptions
    ) -> ObjectResult:
        live = entry.object()
        meta = live["metadata"]
        finalizers = _with_policy(resource, meta.get("finalizers") or [], options)
        grace = self._grace(resource, live, options)
        held = resource.strategy.deleting is not None and resource.strategy.deleting(live)
        if not finalizers and not grace and not held:
            revision = 0 if options.dry_run else await self._writes.remove(resource, namespace, entry)
            return await self._gone(resource, entry, revision)
        new = await versions.fresh(resource, entry)
        if not self._mark(resource, new, finalizers, grace):
            return await versions.shown(resource, entry)
        if options.dry_run:
            return ObjectResult(obj=new, resource=resource)
        code = 202 if options.orphan is False else 200
        marked = await self._writes.put(resource, namespace, new, entry.revision)
        return await versions.shown(resource, marked, code)

    def _grace(self, resource: Resource, live: Obj, options: DeleteOptions) -> int:
        graceful = resource.strategy.graceful
        if graceful is None:
            return 0
        seconds = graceful(live, options.grace)
        pending = live["metadata"].get("deletionGracePeriodSeconds")
        if pending is not None and "deletionTimestamp" in live["metadata"]:
            seconds = min(seconds, pending)
        return seconds

    def _mark(self, resource: Resource, new: Obj, finalizers: list[str], grace: int) -> bool:
        """Set deletionTimestamp, grace period and finalizers; False when they are set already."""
        meta = new["metadata"]
        pending = meta.get("deletionGracePeriodSeconds", 0)
        before = (meta.get("finalizers") or [], pending, "deletionTimestamp" in meta)
        if before == (finalizers, grace, True):
            return False
        if finalizers:
            meta["finalizers"] = finalizers
        else:
            meta.pop("finalizers", None)
        own_mark = resource.strategy.mark_deleting
        if "deletionTimestamp" not in meta and meta.get("generation") and own_mark is None:
            meta["generation"] += 1
        if "deletionTimestamp" in meta:
            begun = parse_time(meta["deletionTimestamp"]) - (meta.get("deletionGracePeriodSeconds") or 0)
        else:
            begun = self._clock.now()
        meta["deletionTimestamp"] = rfc3339(begun + grace)
        if own_mark is None:
            meta["deletionGracePeriodSeconds"] = grace
        else:
            own_mark(new)
        return True

    async def _gone(self, resource: Resource, entry: Doc, revision: int) -> ObjectResult:
        """Return the result for an object that was removed; its resourceVersion is that of the removal."""
        if resource.strategy.returns_deleted:
            gone = await versions.fresh(resource, entry)
            if resource.strategy.graceful is not None:
                self._mark(resource, gone, [], 0)
            if revision:
                gone["metadata"]["resourceVersion"] = str(revision)
            return ObjectResult(obj=gone, resource=resource)
        return ObjectResult(obj=success(entry.name, resource, entry.object()["metadata"]["uid"]))


def check_preconditions(resource: Resource, name: str, live: Obj, options: DeleteOptions) -> None:
    meta = live["metadata"]
    if options.uid and options.uid != meta["uid"]:
        why = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({meta['uid']}). "
            "The object might have been deleted and then recreated"
        )
        raise Conflict.of(resource.gvk.group_kind, name, why)
    if options.resource_version and options.resource_version != meta["resourceVersion"]:
        why = (
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match the ResourceVersion "
            f"in record ({meta['resourceVersion']}). The object might have been modified"
        )
        raise Conflict.of(resource.gvk.group_kind, name, why)


def _with_policy(resource: Resource, finalizers: list[str], options: DeleteOptions) -> list[str]:
    """Return the finalizers that the object must have under the propagation policy in force."""
    policy = options.propagation
    if not policy:
        if ORPHAN in finalizers or FOREGROUND in finalizers:
            return finalizers
        policy = "Orphan" if resource.strategy.orphan_by_default else "Background"
    wanted = _FINALIZER[policy]
    kept = [finalizer for finalizer in finalizers if finalizer not in (ORPHAN, FOREGROUND) or finalizer == wanted]
    return kept if not wanted or wanted in kept else [*kept, wanted]
