"""create, update and everything that ends in a stored change: one path for every kind.

A write is: prepare (defaults, system metadata), record who owns which field, mutating admission, validation,
validating admission, then one compare-and-swap in the store. Updates run it in a loop: when another write came
between, the change is made again on the newer object, unless the client named the version it meant. A write that
changes nothing is not stored: same resourceVersion, no event.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import lru_cache

from karmada.kube.kinds.metadata import metadata_errors, metadata_update_errors
from karmada.kube.kinds.resource import Reservation, Resource, Strategy
from karmada.kube.objects import names
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.doc import Doc
from karmada.kube.objects.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    FieldError,
    Forbidden,
    InternalError,
    Invalid,
    NotFound,
    ServiceUnavailable,
    invalid,
)
from karmada.kube.objects.gvk import GroupKind
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.patch.managedfields import entries_of, same_but_times, same_value
from karmada.kube.patch.mergepatch import apply_merge_patch
from karmada.kube.runtime.follow_ups import FollowUp, FollowUps, FollowUpWriter
from karmada.kube.server.admission.chain import Chain
from karmada.kube.server.admission.interface import CREATE, UPDATE, Attributes
from karmada.kube.server.handlers import versions
from karmada.kube.server.handlers.aside import aside
from karmada.kube.server.handlers.fencing import Fencing
from karmada.kube.server.handlers.system_fields import (
    SYSTEM_FIELDS,
    carry_over,
    dedupe_owners,
    record_owners,
    repair,
    restore,
    restore_rest,
    shares_metadata,
    wipe_status,
)
from karmada.kube.server.http.options import WriteOptions
from karmada.kube.server.http.request import Request
from karmada.kube.server.http.results import ObjectResult
from karmada.kube.server.storage.interface import RevisionConflict, StoreFull, StoreUnavailable
from karmada.kube.server.watchcache.cache import Cache, encode_value, storage_key
from karmada.kube.server.watchcache.entry import doc_of

GENERATE_TRIES = 8
CONFLICT_TRIES = 50
CATCH_UP_SECONDS = 5.0
_MAX_GENERATED = 58

Change = Callable[[Obj], Awaitable[Obj]]
"""Gets a private copy of the live object in the request's version and returns what it should become."""


@dataclass(frozen=True, slots=True)
class WriteScope:
    """The target of a create or update: the request, its resource, namespace and options, and the part written."""

    request: Request
    resource: Resource
    namespace: str
    options: WriteOptions
    subresource: str = ""
    owned: bool = False
    """True if an apply has recorded already who owns which field."""
    patch: bool = False
    """True if the client sent a patch: it needs to name no version."""


class Writes:
    def __init__(self, cache: Cache, admission: Chain, clock: Clock, follow_ups: FollowUps | None = None) -> None:
        self._cache = cache
        self._admission = admission
        self._clock = clock
        self.fencing: Fencing | None = None
        self._follow_ups = follow_ups or FollowUps()

    async def create(self, scope: WriteScope, obj: Obj) -> ObjectResult:
        """Create the object; while a name that was generated is taken, try another one."""
        attributes, generated = await self.admitted(scope, obj)
        for attempt in range(GENERATE_TRIES if generated else 1):
            if attempt:
                _generate_name(attributes)
            try:
                return await self._store(scope, attributes, None, follow=not generated)
            except RevisionConflict:
                continue
        raise self.exists(scope.resource, scope.namespace, obj["metadata"]["name"], generated=generated)

    async def admitted(self, scope: WriteScope, obj: Obj) -> tuple[Attributes, bool]:
        """Complete a new object in place and have admission change it; the second is whether its name was generated."""
        request, resource, options = scope.request, scope.resource, scope.options
        if resource.closed:
            raise Forbidden(resource.closed)
        meta = obj.setdefault("metadata", {})
        if meta.get("resourceVersion"):
            raise ApiError("resourceVersion should not be set on objects to be created")
        await aside(request, self._complete, scope, obj, None)
        attributes = Attributes(
            CREATE, resource, "", scope.namespace, meta.get("name") or "", obj, None, request.user,
            dry_run=options.dry_run, options=options.body, warnings=request.warnings,
            annotations=request.annotations,
        )  # fmt: skip
        entries = entries_of(obj)
        changed = await self._admission.admit(attributes)
        return attributes, await aside(request, self._settle_new, scope, attributes, entries if changed else None)

    def _settle_new(self, scope: WriteScope, attributes: Attributes, entries: list[Obj] | None) -> bool:
        """In place: what the server sets in a new object after admission; return whether its name was generated.

        `entries` are the managedFields of before, if admission may have changed the object.
        """
        resource, strategy, obj = scope.resource, scope.resource.strategy, attributes.obj
        assert obj is not None
        if entries is not None:
            repair(scope.request, obj, entries)
            strategy.default(obj)
        meta = obj["metadata"]
        meta["uid"] = names.random_uuid()
        meta["creationTimestamp"] = rfc3339(self._clock.now())
        if resource.has_status and not strategy.keeps_status_on_create and "status" in obj:
            wipe_status(resource, obj)
        if strategy.generation is not None and strategy.counts_from_creation:
            meta["generation"] = 1
        generated = bool(not meta.get("name") and meta.get("generateName"))
        if generated:
            _generate_name(attributes)
        strategy.prepare_create(obj)
        return generated

    async def _follow_up(self, scope: WriteScope, obj: Obj) -> FollowUpWriter | None:
        """In place: what a controller of this process would write next; returns the controller if there is something.

        An object with a generated name has none: it may get another when that one is taken. What would be refused as
        a write is left out: the controller then makes that write, and reports that it fails.
        """
        writer = self._follow_ups.of(scope.resource.gvk)
        follow_up = None if writer is None else writer.follow_up(obj)
        if writer is None or follow_up is None:
            return None
        followed = {**obj, "metadata": {**obj["metadata"]}}
        _fold(scope.resource, followed, follow_up)
        valid = False
        try:
            errors = await aside(scope.request, _follow_up_errors, scope.resource, followed, obj)
            valid = not errors
        finally:
            if not valid:
                writer.abandoned(obj)
        if not valid:
            return None
        obj.update(followed)
        return writer

    def exists(self, resource: Resource, namespace: str, name: str, *, generated: bool) -> AlreadyExists:
        if generated:
            error = AlreadyExists.of(resource.group_resource, name)
            why = ", the server was not able to generate a unique name for the object"
            return AlreadyExists(error.message + why, details=error.details, retry_after=1)
        entry = self._cache.collection(resource.storage_resource).get(namespace, name)
        terminating = entry is not None and "deletionTimestamp" in entry.object()["metadata"]
        return AlreadyExists.of(resource.group_resource, name, terminating=terminating)

    async def update(self, scope: WriteScope, name: str, change: Change) -> ObjectResult:
        """Make `change` on the live object; NotFound when there is none."""
        resource = scope.resource
        for _ in range(CONFLICT_TRIES):
            entry = self._cache.collection(resource.storage_resource).get(scope.namespace, name)
            if entry is None:
                raise NotFound.of(resource.group_resource, name)
            scope.request.live_bytes = entry.weight
            old: Obj = entry.object()
            if versions.same(resource):
                private = await aside(scope.request, _private, resource, old, scope.subresource)
            else:
                [old] = await versions.present(resource, [entry])
                private = await versions.fresh(resource, entry)
            new = await change(private)
            conditional = _check_version(scope, name, new, old)
            try:
                return await self._update_once(scope, entry, old, new)
            except RevisionConflict as conflict:
                if conditional:
                    raise Conflict.stale(resource.group_resource, name) from None
                if not await self._cache.reach_conflict(conflict.revision, CATCH_UP_SECONDS):
                    raise ServiceUnavailable("the watch cache does not keep up with the store", retry_after=1) from None
        raise Conflict.stale(resource.group_resource, name)

    async def _update_once(self, scope: WriteScope, entry: Doc, old: Obj, new: Obj) -> ObjectResult:
        request, options = scope.request, scope.options
        await aside(request, self._complete, scope, new, old)
        attributes = Attributes(
            UPDATE, scope.resource, scope.subresource, scope.namespace, entry.name, new, old, request.user,
            dry_run=options.dry_run, options=options.body, warnings=request.warnings,
            annotations=request.annotations,
        )  # fmt: skip
        entries = entries_of(new)
        changed = await self._admission.admit(attributes)
        await aside(request, _settle_changed, scope, new, old, entries if changed else None)
        return await self._store(scope, attributes, entry)

    async def _store(
        self, scope: WriteScope, attributes: Attributes, entry: Doc | None, *, follow: bool = False
    ) -> ObjectResult:
        """Validate what admission has left, and store it; RevisionConflict unless `entry` (None: nothing) is there.

        With `follow`, a new object is stored as the controller of its kind would change it next.
        """
        resource, dry_run, new, old = scope.resource, scope.options.dry_run, attributes.obj, attributes.old
        assert new is not None
        reservation: Reservation | None = None
        writer: FollowUpWriter | None = None
        stored: bool | None = False
        try:
            if resource.strategy.reserve is not None and not scope.subresource:
                reservation = await resource.strategy.reserve(new, old)
            await aside(scope.request, self.validate, scope, new, old)
            if follow and not dry_run:
                writer = await self._follow_up(scope, new)
            await self._admission.validate(attributes)
            if entry is not None and old is not None:
                if _completes_deletion(resource, new, old):
                    if not dry_run:
                        await self.remove(resource, scope.namespace, entry)  # in one event with its last state
                    return ObjectResult(obj=new, resource=resource)
                if await aside(scope.request, same_but_times, old, new) and not self._cache.store.is_stale(entry.key):
                    await self._verify_unchanged(resource, scope.namespace, entry)
                    return await versions.shown(resource, entry)
            if dry_run:
                return self._dry_run(scope, new, 201 if entry is None else 200)
            stored = None  # the outcome is unknown until the store returns
            fresh_entry = await self.put(resource, scope.namespace, new, 0 if entry is None else entry.revision)
            stored = True
        except RevisionConflict:
            stored = False
            raise
        finally:
            if reservation is not None:
                reservation.finish(stored)
            self._admission.finish(attributes, stored)
            if writer is not None and not stored:
                writer.abandoned(new)
        return await versions.shown(resource, fresh_entry, 201 if entry is None else 200)

    def _dry_run(self, scope: WriteScope, obj: Obj, status: int) -> ObjectResult:
        resource, name = scope.resource, obj["metadata"]["name"]
        if status == 201 and self._cache.collection(resource.storage_resource).get(scope.namespace, name) is not None:
            raise self.exists(resource, scope.namespace, name, generated=False)
        return ObjectResult(obj=obj, status=status, resource=resource)

    def validate(self, scope: WriteScope, new: Obj, old: Obj | None) -> None:
        """Refuse what the kind does not allow; bring the rest, in place, into the form that is stored."""
        resource, strategy = scope.resource, scope.resource.strategy
        part = resource.subresources.get(scope.subresource)
        if old is None:
            errors = _errors_of_create(scope, new)
        elif part is not None and part.validate is not None:
            errors = _metadata_errors(resource, new, old) + part.validate(new, old)
        elif scope.subresource == "status":
            errors = _metadata_errors(resource, new, old) + strategy.validate_status(new, old)
        else:
            errors = _metadata_errors(resource, new, old) + _errors_of_update(strategy, new, old)
        if errors:
            name = (new if old is None else old)["metadata"].get("name") or ""
            raise Invalid.of(resource.gvk.group_kind, name, errors)
        if not scope.request.in_process:  # warnings are headers, so they are computed only for requests over HTTP
            for text in strategy.warnings(new, old):
                scope.request.warn(text)
        strategy.canonicalize(new)

    def _complete(self, scope: WriteScope, new: Obj, old: Obj | None) -> None:
        """In place: system metadata, defaults, and, unless an apply has recorded it, who owns which field."""
        resource, strategy, meta = scope.resource, scope.resource.strategy, new.setdefault("metadata", {})
        if old is None:
            for key in SYSTEM_FIELDS:
                meta.pop(key, None)
        else:
            carry_over(new, old)
            if not scope.subresource and resource.has_status:
                restore(new, old, "status")
        dedupe_owners(scope.request, meta)
        default = strategy.default_status if scope.subresource == "status" else None
        (default or strategy.default)(new)
        if scope.owned:
            return
        manager = scope.options.manager or manager_of(scope.request)
        record_owners(resource, old, new, manager, rfc3339(self._clock.now()), scope.subresource)

    async def _verify_unchanged(self, resource: Resource, namespace: str, entry: Doc) -> None:
        """Before a no-op update succeeds, verify in the store that no other server has changed the object."""
        if await self._cache.catch_up():
            now = self._cache.collection(resource.storage_resource).get(namespace, entry.name)
            if now is None or now.revision != entry.revision:
                raise RevisionConflict(entry.key, now.revision if now is not None else 0)

    async def put(self, resource: Resource, namespace: str, obj: Obj, expected: int) -> Doc:
        """Store an object in the request's version, as it is, in place of this revision of it (0: of nothing)."""
        obj["metadata"].pop("resourceVersion", None)
        stored, name = await versions.store(resource, obj), obj["metadata"]["name"]
        value = encode_value(stored)
        revision = await self._write(resource, namespace, name, value, expected, stored)
        entry = self._cache.collection(resource.storage_resource).get(namespace, name)
        if entry is not None and entry.revision == revision:
            return entry
        return doc_of(storage_key(resource.storage_resource, namespace, name), value, revision)  # written again since

    async def remove(self, resource: Resource, namespace: str, entry: Doc) -> int:
        """Delete for good, at the revision returned; RevisionConflict when the object changed since `entry`."""
        return await self._write(resource, namespace, entry.name, None, entry.revision)

    async def _write(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        value: bytes | None,
        expected: int,
        obj: Obj | None = None,
    ) -> int:
        key = storage_key(resource.storage_resource, namespace, name)
        if self.fencing is not None:
            self.fencing.check()
        try:
            revision = await self._cache.store.write(key, value, expected=expected, obj=obj)
        except StoreUnavailable as error:
            raise store_error(error) from error
        if self._cache.revision < revision:
            await self.reached(revision)
        return revision

    async def reached(self, revision: int) -> None:
        """Wait until readers see what was written at this revision."""
        if self._cache.revision < revision and not await self._cache.wait_for(revision, CATCH_UP_SECONDS):
            raise ServiceUnavailable("the watch cache does not keep up with the store", retry_after=1)


def _generate_name(attributes: Attributes) -> None:
    assert attributes.obj is not None
    meta = attributes.obj["metadata"]
    meta["name"] = attributes.name = meta["generateName"][:_MAX_GENERATED] + names.random_suffix()


def _settle_changed(scope: WriteScope, new: Obj, old: Obj, entries: list[Obj] | None) -> None:
    """In place: what the server sets in a changed object after admission.

    `entries` are the managedFields of before, if admission may have changed the object.
    """
    resource, strategy, subresource = scope.resource, scope.resource.strategy, scope.subresource
    if entries is not None:
        restore_rest(resource, subresource, new, old)
        repair(scope.request, new, entries)
        strategy.default(new)
    if not subresource:
        strategy.prepare_update(new, old)
    generation = strategy.generation if subresource != "status" else None
    if generation is not None and not same_value(generation(old), generation(new)):
        new["metadata"]["generation"] = int(old["metadata"].get("generation") or 0) + 1


def _check_version(scope: WriteScope, name: str, new: Obj, old: Obj) -> bool:
    """Return whether the client named the version; refuse one that is not the live one."""
    resource, meta, live = scope.resource, new.get("metadata") or {}, old["metadata"]
    version = meta.get("resourceVersion") or ""
    if version == "0":
        version = ""
    if version and not (version.isascii() and version.isdigit()):
        raise ApiError(f'strconv.ParseUint: parsing "{version}": invalid syntax')
    if version and version != live["resourceVersion"]:
        raise Conflict.stale(resource.group_resource, name)
    if not version and not scope.patch and not resource.strategy.unconditional_update:
        error = invalid("metadata.resourceVersion", 0, "must be specified for an update")
        raise Invalid.of(GroupKind(*resource.group_resource), name, [error])
    check_uid(resource, scope.namespace, name, meta.get("uid") or "", live["uid"])
    return bool(version)


def _errors_of_create(scope: WriteScope, obj: Obj) -> list[FieldError]:
    resource, strategy, meta = scope.resource, scope.resource.strategy, obj["metadata"]
    errors = metadata_errors(
        obj, namespaced=resource.namespaced, name_errors=strategy.name_errors, builtin=not resource.custom
    )
    errors += strategy.validate(obj)
    if resource.namespaced and meta.get("namespace") != scope.namespace:
        errors.append(invalid("metadata.namespace", meta.get("namespace") or "", "does not match the request"))
    return errors


def _metadata_errors(resource: Resource, new: Obj, old: Obj) -> list[FieldError]:
    if shares_metadata(new, old):
        return []
    errors = metadata_errors(new, namespaced=resource.namespaced, existing=True, builtin=not resource.custom, old=old)
    return errors + metadata_update_errors(new, old)


def _errors_of_update(strategy: Strategy, new: Obj, old: Obj) -> list[FieldError]:
    whole = strategy.validate_ratcheting
    return (strategy.validate(new) if whole is None else whole(new, old)) + strategy.validate_update(new, old)


def _fold(resource: Resource, obj: Obj, follow_up: FollowUp) -> None:
    """In place: make the changes in a new object that has everything but its resourceVersion.

    It becomes what the create and the controller's own writes would have left, but for the generation and the
    resourceVersion, which count one write.
    """
    manager, now = follow_up.manager, obj["metadata"]["creationTimestamp"]
    before = {**obj, "metadata": {**obj["metadata"]}}
    if follow_up.changes:
        obj.update(apply_merge_patch(obj, follow_up.changes))
        record_owners(resource, before, obj, manager, now)
    if follow_up.status is not None and resource.has_status:
        before = {**obj, "metadata": {**obj["metadata"]}}
        obj["status"] = follow_up.status
        record_owners(resource, before, obj, manager, now, "status")


def _follow_up_errors(resource: Resource, new: Obj, old: Obj) -> list[FieldError]:
    """Return what the controller's own writes of the object and of its status would be refused for."""
    errors = _metadata_errors(resource, new, old)
    if any(new[key] is not old.get(key) for key in new if key not in ("metadata", "status")):
        errors += _errors_of_update(resource.strategy, new, old)
    if new.get("status") is not old.get("status"):
        errors += resource.strategy.validate_status(new, old)
    return errors


def store_error(error: StoreUnavailable) -> ApiError:
    """Return what a client gets when the store has failed."""
    if isinstance(error, StoreFull):
        return InternalError(str(error))  # as kube-apiserver does: no client repeats it at once
    return ServiceUnavailable(f"the store cannot be reached: {error}", retry_after=1)


def _private(resource: Resource, old: Obj, subresource: str) -> Obj:
    """Return the copy that a change may mutate; of a write to /status only the status is copied, the rest is shared."""
    if subresource != "status" or resource.strategy.default_status is None:
        return copy_json(dict(old))
    private = {**old, "metadata": {**old["metadata"]}}
    if "status" in old:
        private["status"] = copy_json(old["status"])
    return private


def check_uid(resource: Resource, namespace: str, name: str, given: str, live: str) -> None:
    """Refuse another uid in the body than the live one: it is a precondition."""
    if given and given != live:
        key = "/".join(part for part in (resource.plural, namespace, name) if part)
        why = (
            f"StorageError: invalid object, Code: 4, Key: /registry/{key}, ResourceVersion: 0, "
            f"AdditionalErrorMsg: Precondition failed: UID in precondition: {given}, UID in object meta: {live}"
        )
        raise Conflict.of(resource.group_resource, name, why)


def manager_of(request: Request) -> str:
    """Without a fieldManager the first word of the User-Agent names the writer."""
    return _writer(request.headers.get("User-Agent", ""))


@lru_cache(maxsize=1024)
def _writer(agent: str) -> str:
    first = agent.split("/", 1)[0]
    return "".join(c for c in first if c.isprintable())[:128] or "unknown"


def _completes_deletion(resource: Resource, new: Obj, old: Obj) -> bool:
    """Return whether this write removes the last finalizer of an object that is being deleted."""
    meta = new["metadata"]
    if "deletionTimestamp" not in meta or meta.get("finalizers") or meta.get("deletionGracePeriodSeconds"):
        return False
    held = resource.strategy.deleting or (lambda _obj: False)
    return not held(new) and (bool(old["metadata"].get("finalizers")) or held(old))
