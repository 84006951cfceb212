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
    BadRequest,
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
from karmada.kube.patch.managedfields import entries_of, same_but_times, same_value, update_managers
from karmada.kube.runtime.follow_ups import FollowUps, FollowUpWriter
from karmada.kube.server.admission.chain import Chain
from karmada.kube.server.admission.interface import CREATE, UPDATE, Attributes
from karmada.kube.server.handlers.aside import aside
from karmada.kube.server.handlers.fencing import Fencing
from karmada.kube.server.handlers.follow_ups import fold
from karmada.kube.server.handlers.system_fields import (
    SYSTEM_FIELDS,
    carry_over,
    dedupe_owners,
    repair,
    restore,
    restore_rest,
    shares_metadata,
    wipe_status,
)
from karmada.kube.server.handlers.versions import Versions
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
    def __init__(
        self, cache: Cache, versions: Versions, admission: Chain, clock: Clock, follow_ups: FollowUps | None = None
    ) -> None:
        self._cache = cache
        self._versions = versions
        self._admission = admission
        self._clock = clock
        self.fencing: Fencing | None = None
        self._follow_ups = follow_ups or FollowUps()

    async def create(self, scope: WriteScope, obj: Obj) -> ObjectResult:
        attributes = await self.admitted(scope, obj)
        return await self._create_named(scope, obj, attributes)

    async def admitted(self, scope: WriteScope, obj: Obj) -> Attributes:
        """Complete a new object in place, have admission change it, and give it its system metadata."""
        request, resource, options = scope.request, scope.resource, scope.options
        if resource.closed:
            raise Forbidden(resource.closed)
        meta = obj.setdefault("metadata", {})
        if meta.get("resourceVersion"):
            raise ApiError("resourceVersion should not be set on objects to be created")
        for key in SYSTEM_FIELDS:
            meta.pop(key, None)
        dedupe_owners(request, meta)
        strategy = resource.strategy
        await aside(request, self._complete, scope, strategy.default, None, obj)
        attributes = Attributes(
            CREATE, resource, "", scope.namespace, meta.get("name") or "", obj, None, request.user,
            dry_run=options.dry_run, options=options.body, warnings=request.warnings,
            annotations=request.annotations,
        )  # fmt: skip
        entries = entries_of(obj)
        if await self._admission.admit(attributes):
            repair(request, obj, entries)
            await aside(request, strategy.default, obj)
        meta["uid"] = names.random_uuid()
        meta["creationTimestamp"] = rfc3339(self._clock.now())
        if resource.has_status and not strategy.keeps_status_on_create and "status" in obj:
            wipe_status(resource, obj)
        if strategy.generation is not None and strategy.counts_from_creation:
            meta["generation"] = 1
        return attributes

    async def _create_named(self, scope: WriteScope, obj: Obj, attributes: Attributes) -> ObjectResult:
        resource, strategy, meta = scope.resource, scope.resource.strategy, obj["metadata"]
        given, prefix = meta.get("name") or "", meta.get("generateName") or ""
        tries = 1 if given or not prefix else GENERATE_TRIES
        for attempt in range(tries):
            if not given and prefix:
                meta["name"] = attributes.name = prefix[:_MAX_GENERATED] + names.random_suffix()
            if attempt == 0:
                await aside(scope.request, strategy.prepare_create, obj)
            reservation = None if strategy.reserve is None else await strategy.reserve(obj, None)
            stored: bool | None = False
            writer: FollowUpWriter | None = None
            try:
                await aside(scope.request, self.validate_create, scope, obj)
                strategy.canonicalize(obj)
                if given and not scope.options.dry_run:
                    writer = await self._follow_up(scope, obj)
                await self._admission.validate(attributes)
                if scope.options.dry_run:
                    return self._dry_create(scope, obj)
                stored = None  # the outcome is unknown until the store returns
                entry = await self._put(resource, scope.namespace, obj, expected=0)
                stored = True
            except RevisionConflict:
                stored = False
                if attempt + 1 < tries:
                    continue
                raise self.exists(resource, scope.namespace, meta["name"], generated=tries > 1) from None
            finally:
                self._finish(attributes, reservation, stored)
                if writer is not None and not stored:
                    writer.abandoned(obj)
            return await self._answer(resource, entry, 201)
        raise AssertionError("unreachable")

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
        fold(scope.resource, followed, follow_up, obj["metadata"]["creationTimestamp"])
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

    def _dry_create(self, scope: WriteScope, obj: Obj) -> ObjectResult:
        resource, name = scope.resource, obj["metadata"]["name"]
        if self._cache.collection(resource.storage_resource).get(scope.namespace, name) is not None:
            raise self.exists(resource, scope.namespace, name, generated=False)
        return ObjectResult(obj=obj, status=201, resource=resource)

    def exists(self, resource: Resource, namespace: str, name: str, *, generated: bool) -> AlreadyExists:
        if generated:
            error = AlreadyExists.of(resource.group_resource, name)
            why = ", the server was not able to generate a unique name for the object"
            return AlreadyExists(error.message + why, details=error.details, retry_after=1)
        entry = self._cache.collection(resource.storage_resource).get(namespace, name)
        terminating = entry is not None and "deletionTimestamp" in entry.object()["metadata"]
        return AlreadyExists.of(resource.group_resource, name, terminating=terminating)

    def validate_create(self, scope: WriteScope, obj: Obj) -> None:
        resource, strategy, meta = scope.resource, scope.resource.strategy, obj["metadata"]
        errors = metadata_errors(
            obj, namespaced=resource.namespaced, name_errors=strategy.name_errors, builtin=not resource.custom
        )
        errors += strategy.validate(obj)
        if resource.namespaced and meta.get("namespace") != scope.namespace:
            errors.append(invalid("metadata.namespace", meta.get("namespace") or "", "does not match the request"))
        _refuse(resource, meta.get("name") or "", errors)
        _warn(scope.request, strategy, obj, None)

    async def update(self, scope: WriteScope, name: str, change: Change) -> ObjectResult:
        """Make `change` on the live object; NotFound when there is none."""
        resource = scope.resource
        for _ in range(CONFLICT_TRIES):
            entry = self._cache.collection(resource.storage_resource).get(scope.namespace, name)
            if entry is None:
                raise NotFound.of(resource.group_resource, name)
            scope.request.live_bytes = entry.weight
            old: Obj = entry.object()
            if self._versions.same(resource):
                private = await aside(scope.request, _private, resource, old, scope.subresource)
            else:
                [old] = await self._versions.present(resource, [entry])
                private = await self._versions.fresh(resource, entry)
            new = await change(private)
            conditional = self._check_version(scope, name, new, old)
            try:
                return await self._update_once(scope, entry, old, new)
            except RevisionConflict as conflict:
                if conditional:
                    raise Conflict.stale(resource.group_resource, name) from None
                if not await self._cache.reach_conflict(conflict.revision, CATCH_UP_SECONDS):
                    raise ServiceUnavailable("the watch cache does not keep up with the store", retry_after=1) from None
        raise Conflict.stale(resource.group_resource, name)

    def _check_version(self, scope: WriteScope, name: str, new: Obj, old: Obj) -> bool:
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

    async def _update_once(self, scope: WriteScope, entry: Doc, old: Obj, new: Obj) -> ObjectResult:
        request, resource, subresource, options = scope.request, scope.resource, scope.subresource, scope.options
        strategy = resource.strategy
        meta = carry_over(new, old)
        dedupe_owners(request, meta)
        if not subresource and resource.has_status:
            restore(new, old, "status")
        await aside(request, self._complete, scope, _default_of(strategy, subresource), old, new)
        attributes = Attributes(
            UPDATE, resource, subresource, scope.namespace, entry.name, new, old, request.user,
            dry_run=options.dry_run, options=options.body, warnings=request.warnings,
            annotations=request.annotations,
        )  # fmt: skip
        entries = entries_of(new)
        if await self._admission.admit(attributes):
            meta = restore_rest(resource, subresource, new, old)
            repair(request, new, entries)
            await aside(request, strategy.default, new)
        if not subresource:
            await aside(request, strategy.prepare_update, new, old)
        generation = strategy.generation if subresource != "status" else None
        if generation is not None and not same_value(generation(old), generation(new)):
            meta["generation"] = int(old["metadata"].get("generation") or 0) + 1
        reserve = strategy.reserve if not subresource else None
        reservation = await reserve(new, old) if reserve is not None else None
        stored: bool | None = False
        try:
            await aside(request, self._validate_update, scope, new, old)
            strategy.canonicalize(new)
            await self._admission.validate(attributes)
            if _completes_deletion(resource, new, old):
                return await self._finish_deletion(scope, entry, new)
            if same_but_times(old, new) and not self._cache.store.is_stale(entry.key):
                await self._verify_unchanged(resource, scope.namespace, entry)
                return await self._answer(resource, entry, 200)
            if options.dry_run:
                return ObjectResult(obj=new, resource=resource)
            meta.pop("resourceVersion", None)
            stored = None
            fresh = await self._put(resource, scope.namespace, new, expected=entry.revision)
            stored = True
        except RevisionConflict:
            stored = False
            raise
        finally:
            self._finish(attributes, reservation, stored)
        return await self._answer(resource, fresh, 200)

    async def _finish_deletion(self, scope: WriteScope, entry: Doc, new: Obj) -> ObjectResult:
        """Remove an object whose last finalizer is gone, in one event with its last state."""
        if not scope.options.dry_run:
            await self.remove(scope.resource, scope.namespace, entry)
        return ObjectResult(obj=new, resource=scope.resource)

    def _validate_update(self, scope: WriteScope, new: Obj, old: Obj) -> None:
        resource, strategy = scope.resource, scope.resource.strategy
        errors = _metadata_errors(resource, new, old)
        part = resource.subresources.get(scope.subresource)
        if part is not None and part.validate is not None:
            errors += part.validate(new, old)
        elif scope.subresource == "status":
            errors += strategy.validate_status(new, old)
        else:
            errors += _errors_of_update(strategy, new, old)
        _refuse(resource, old["metadata"]["name"], errors)
        _warn(scope.request, strategy, new, old)

    def _complete(self, scope: WriteScope, default: Callable[[Obj], None], old: Obj | None, new: Obj) -> None:
        """Fill in defaults and, unless an apply has done it, record who owns which field."""
        default(new)
        if scope.owned:
            return
        resource = scope.resource
        managers = update_managers(
            old,
            new,
            resource.schema(),
            manager=scope.options.manager or manager_of(scope.request),
            api_version=resource.gvk.api_version,
            now=rfc3339(self._clock.now()),
            subresource=scope.subresource,
            custom=resource.custom,
            reset=resource.reset_of(scope.subresource),
        )
        if managers:
            new["metadata"]["managedFields"] = managers
        else:
            new["metadata"].pop("managedFields", None)

    async def _verify_unchanged(self, resource: Resource, namespace: str, entry: Doc) -> None:
        """Before a no-op update succeeds, verify in the store that no other server has changed the object."""
        if await self._cache.catch_up():
            now = self._cache.collection(resource.storage_resource).get(namespace, entry.name)
            if now is None or now.revision != entry.revision:
                raise RevisionConflict(entry.key, now.revision if now is not None else 0)

    def _finish(self, attributes: Attributes, reservation: Reservation | None, stored: bool | None) -> None:
        if reservation is not None:
            reservation.finish(stored)
        self._admission.finish(attributes, stored)

    async def _put(self, resource: Resource, namespace: str, obj: Obj, *, expected: int) -> Doc:
        stored = obj if self._versions.stores_as_it_is(resource) else await self._versions.store(resource, obj)
        name = obj["metadata"]["name"]
        value = encoded(stored)
        revision = await self._write(resource, namespace, name, value, expected, stored)
        entry = self._cache.collection(resource.storage_resource).get(namespace, name)
        if entry is not None and entry.revision == revision:
            return entry
        key = storage_key(resource.storage_resource, namespace, name)
        return doc_of(key, value, revision)  # written again since

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

    async def replace(self, resource: Resource, namespace: str, entry: Doc, obj: Obj) -> Doc:
        """Store `obj` (in the request's version) in place of `entry`, as it is; RevisionConflict when that changed."""
        obj["metadata"].pop("resourceVersion", None)
        return await self._put(resource, namespace, obj, expected=entry.revision)

    async def _answer(self, resource: Resource, entry: Doc, status: int) -> ObjectResult:
        if self._versions.same(resource):
            return ObjectResult(entry=entry, status=status, resource=resource)
        [obj] = await self._versions.present(resource, [entry])
        return ObjectResult(obj=obj, status=status, resource=resource)


def _metadata_errors(resource: Resource, new: Obj, old: Obj) -> list[FieldError]:
    if shares_metadata(new, old):
        return []
    errors = metadata_errors(new, namespaced=resource.namespaced, existing=True, builtin=not resource.custom, old=old)
    return errors + metadata_update_errors(new, old)


def _errors_of_update(strategy: Strategy, new: Obj, old: Obj) -> list[FieldError]:
    whole = strategy.validate_ratcheting
    return (strategy.validate(new) if whole is None else whole(new, old)) + strategy.validate_update(new, old)


def _follow_up_errors(resource: Resource, new: Obj, old: Obj) -> list[FieldError]:
    """Return what the controller's own writes of the object and of its status would be refused for."""
    errors = _metadata_errors(resource, new, old)
    if any(new[key] is not old.get(key) for key in new if key not in ("metadata", "status")):
        errors += _errors_of_update(resource.strategy, new, old)
    if new.get("status") is not old.get("status"):
        errors += resource.strategy.validate_status(new, old)
    return errors


def _default_of(strategy: Strategy, subresource: str) -> Callable[[Obj], None]:
    return (strategy.default_status if subresource == "status" else None) or strategy.default


def encoded(obj: Obj) -> bytes:
    """Return the bytes that are stored for an object, which is in the version that is stored."""
    try:
        return encode_value(obj)
    except ValueError as error:
        raise BadRequest(str(error)) from None


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


def _warn(request: Request, strategy: Strategy, obj: Obj, old: Obj | None) -> None:
    """Warnings are headers, so they are computed only for requests over HTTP."""
    if not request.in_process:
        for text in strategy.warnings(obj, old):
            request.warn(text)


def _refuse(resource: Resource, name: str, errors: list[FieldError]) -> None:
    if errors:
        raise Invalid.of(GroupKind(resource.gvk.group, resource.gvk.kind), name, errors)
