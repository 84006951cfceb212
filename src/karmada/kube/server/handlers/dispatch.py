"""One handler chain for every resource: from an authorised request to a result, by verb.

Handlers know verbs, not kinds. What is special about a kind is in its Strategy; what is special about an endpoint
(reviews, tokens, evictions, exec) is registered in `endpoints` under its resource and subresource.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from karmada.kube.kinds.resource import Resource
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.errors import ApiError, BadRequest, Conflict, Invalid, MethodNotAllowed, NotFound, invalid
from karmada.kube.objects.gvk import GVK, GroupResource
from karmada.kube.objects.types import Obj
from karmada.kube.patch.managedfields import SYSTEM, Reset
from karmada.kube.schema.node import Node
from karmada.kube.server.handlers.aside import aside
from karmada.kube.server.handlers.deletes import Deletes
from karmada.kube.server.handlers.group_creates import GroupCreates
from karmada.kube.server.handlers.patching import APPLY, Patcher, patch_or_create, patch_type, update_or_create
from karmada.kube.server.handlers.reads import Reads
from karmada.kube.server.handlers.scale import Scaling
from karmada.kube.server.handlers.system_fields import projection
from karmada.kube.server.handlers.writes import Change, Writes, WriteScope, check_uid
from karmada.kube.server.http.bodies import Bodies
from karmada.kube.server.http.options import (
    DeleteOptions,
    WriteOptions,
    delete_options,
    list_options,
    write_options,
)
from karmada.kube.server.http.request import CONNECT_SUBRESOURCES, Request, RequestInfo
from karmada.kube.server.http.results import ListResult, ObjectResult, Result, page_not_found
from karmada.kube.server.registry import Registry

_NAMED = {"create": False, "update": True, "patch": True, "delete": True}
"""True if the URL of a write names the object."""

Endpoint = Callable[[Request, Resource], Awaitable[Result]]
ANY = "*"
"""The place of an endpoint that has whatever is below its resource; for resources without verbs, of which no objects
are stored."""


class Place(NamedTuple):
    """Where a special endpoint is: the resource and the subresource ("" is the resource itself)."""

    resource: GroupResource
    subresource: str


class Handlers:
    def __init__(
        self,
        registry: Registry,
        bodies: Bodies,
        reads: Reads,
        writes: Writes,
        deletes: Deletes,
        groups: GroupCreates,
        clock: Clock,
        may_create: Callable[[Request], Awaitable[None]],
    ) -> None:
        self.registry = registry
        self.bodies = bodies
        self.reads = reads
        self.writes = writes
        self.deletes = deletes
        self.groups = groups
        self._clock = clock
        self._may_create = may_create
        self.scaling = Scaling(reads, writes, bodies, clock)
        self.endpoints: dict[Place, Endpoint] = {}
        self._verbs: dict[str, Callable[[Request, Resource], Awaitable[Result]]] = {
            "get": self._get,
            "list": self._list,
            "watch": self._watch,
            "create": self._create,
            "update": self._update,
            "patch": self._patch,
            "delete": self._delete,
            "deletecollection": self._delete_collection,
        }

    def handle(self, request: Request, resource: Resource) -> Awaitable[Result]:
        info = request.info
        request.namespace = info.namespace if resource.namespaced else ""
        if _is_out_of_scope(resource, info):
            if resource.custom and not resource.native:
                return page_not_found()
            raise MethodNotAllowed() if _lists_here(info, resource) else NotFound.resource()
        if request.method == "HEAD" and not resource.custom and info.subresource not in CONNECT_SUBRESOURCES:
            raise MethodNotAllowed()
        if resource.deprecation:
            request.warn(resource.deprecation)
        endpoint = self.endpoints.get(Place(resource.storage_resource, info.subresource))
        if endpoint is None and not resource.verbs:
            endpoint = self.endpoints.get(Place(resource.storage_resource, ANY))
        if endpoint is not None:
            return endpoint(request, resource)
        if info.subresource:
            return self._subresource(request, resource)
        if info.verb not in resource.verbs:
            raise MethodNotAllowed()
        if info.verb in _NAMED and bool(info.name) is not _NAMED[info.verb]:
            raise MethodNotAllowed()
        return self._verbs[info.verb](request, resource)

    def _get(self, request: Request, resource: Resource) -> Awaitable[Result]:
        options = list_options(request.query, watch=False)
        return self.reads.get(resource, request.namespace, request.info.name, options)

    async def _list(self, request: Request, resource: Resource) -> Result:
        options = list_options(request.query, watch=False)
        return await self.reads.list(resource, request.namespace, options, new_first=request.new_first)

    async def _watch(self, request: Request, resource: Resource) -> Result:
        options = list_options(request.query, watch=True)
        namespace, name = request.namespace, request.info.name
        return await self.reads.watch(resource, namespace, options, name, may_be_ahead=not request.in_process)

    def body(self, request: Request, resource: Resource, options: WriteOptions) -> Obj:
        return self.bodies.object(request, resource.gvk, resource.schema(), options.validation, custom=resource.custom)

    async def _reader(
        self, request: Request, resource: Resource, options: WriteOptions
    ) -> Callable[[], Awaitable[Obj]]:
        """Return the body of a PUT, parsed now, and again for every retry, since each attempt mutates it."""
        namespace, name = request.namespace, request.info.name

        def parse() -> Obj:
            obj = self.body(request, resource, options)
            if not (obj.get("metadata") or {}).get("name"):
                why = "name must be provided"
                raise BadRequest(f"the name of the object ({name} based on URL) was undeterminable: {why}")
            place(obj, resource, namespace, name)
            return obj

        unused = [await aside(request, parse)]

        async def read() -> Obj:
            return unused.pop() if unused else await aside(request, parse)

        return read

    async def _create(self, request: Request, resource: Resource) -> Result:
        options = write_options(request.query, "CreateOptions")
        obj = await aside(request, self.body, request, resource, options)
        namespace = request.namespace
        place(obj, resource, namespace)
        return await self.writes.create(WriteScope(request, resource, namespace, options), obj)

    async def create_all(
        self, request: Request, resource: Resource, objects: Sequence[Obj]
    ) -> list[ApiError | None] | None:
        """Create objects that have their names as a group, see `GroupCreates`; None if they must be created one by one.

        They are the server's from now on.
        """
        namespace = request.info.namespace if resource.namespaced else ""
        ordinary = "create" in resource.verbs and Place(resource.storage_resource, "") not in self.endpoints
        if not ordinary or _is_out_of_scope(resource, request.info) or resource.deprecation:
            return None
        options, node = write_options(request.query, "CreateOptions"), resource.schema()

        def check(obj: Obj) -> None:
            self.bodies.check(obj, request, resource.gvk, node, options.validation, custom=resource.custom)
            place(obj, resource, namespace)

        return await self.groups.create(WriteScope(request, resource, namespace, options), objects, check)

    async def _update(self, request: Request, resource: Resource) -> Result:
        options = write_options(request.query, "UpdateOptions")
        namespace, name = request.namespace, request.info.name
        read = await self._reader(request, resource, options)

        async def replace(_live: Obj) -> Obj:
            return await read()

        scope = WriteScope(request, resource, namespace, options)

        async def update() -> Result:
            return await self.writes.update(scope, name, replace)

        async def create() -> Result:
            await self._may_create(request)
            obj = await read()
            check_uid(resource, namespace, name, obj["metadata"].get("uid") or "", "")
            obj["metadata"].pop("resourceVersion", None)
            return await self.writes.create(scope, obj)

        if not resource.strategy.create_on_update:
            return await update()
        result: Result = await update_or_create(update, create)
        return result

    async def _patch(self, request: Request, resource: Resource) -> Result:
        namespace, name = request.namespace, request.info.name
        patcher, options = await aside(request, self._resource_patcher, request, resource)

        def update(change: Change, owned: bool) -> Awaitable[Result]:
            async def placed(live: Obj) -> Obj:
                version, uid = live["metadata"].get("resourceVersion"), live["metadata"]["uid"]
                changed = await change(live)
                place(changed, resource, namespace, name)
                _refuse_other_uid(resource, changed, uid)
                _drop_unset_version(changed, version)
                return changed

            scope = WriteScope(request, resource, namespace, options, owned=owned, patch=True)
            return self.writes.update(scope, name, placed)

        async def create(obj: Obj) -> Result:
            await self._may_create(request)
            place(obj, resource, namespace, name)
            if uid := obj["metadata"].get("uid"):
                why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                raise Conflict.of(resource.group_resource, name, why)
            return await self.writes.create(WriteScope(request, resource, namespace, options, owned=True), obj)

        result: Result = await patch_or_create(patcher, update, create, "")
        return result

    def _patcher(
        self,
        request: Request,
        gvk: GVK,
        node: Node,
        *,
        custom: bool,
        reset: Reset = SYSTEM,
        strategic: bool | None = None,
    ) -> tuple[Patcher, WriteOptions]:
        media = patch_type(request, strategic=not custom if strategic is None else strategic, custom=custom)
        options = write_options(request.query, "PatchOptions", applying=media == APPLY)
        patcher = Patcher(request, self.bodies, gvk, node, options, self._clock, media, custom=custom, reset=reset)
        return patcher, options

    def _resource_patcher(self, request: Request, resource: Resource) -> tuple[Patcher, WriteOptions]:
        reset = resource.reset_of(request.info.subresource)
        return self._patcher(
            request,
            resource.gvk,
            resource.schema(),
            custom=resource.custom,
            reset=reset,
            strategic=resource.builtin,
        )

    async def _delete(self, request: Request, resource: Resource) -> Result:
        options = await aside(request, self._delete_options, request, resource)
        return await self.deletes.delete(request, resource, request.namespace, request.info.name, options)

    async def _delete_collection(self, request: Request, resource: Resource) -> Result:
        selected = list_options(request.query, watch=False)
        options = await aside(request, self._delete_options, request, resource)
        listed = await self.reads.list(resource, request.namespace, selected)
        deleted = await self.deletes.delete_all(request, resource, listed.one_by_one(), options)
        return ListResult(resource, listed.metadata, objects=deleted)

    def _delete_options(self, request: Request, resource: Resource) -> DeleteOptions:
        options = delete_options(request.query, self._delete_body(request, resource))
        if resource.strategy.delete_warning and not options.propagation and options.orphan is None:
            request.warn(resource.strategy.delete_warning)
        return options

    def _delete_body(self, request: Request, resource: Resource) -> Obj | None:
        if not request.body and request.obj is None:
            return None
        return self.bodies.delete_options(request, resource.api_version)

    def _subresource(self, request: Request, resource: Resource) -> Awaitable[Result]:
        sub = resource.subresources.get(request.info.subresource)
        if sub is None:
            custom = resource.custom and not resource.native
            raise NotFound.of(resource.group_resource, request.info.name) if custom else NotFound.resource()
        verb = request.info.verb
        if verb not in sub.verbs:
            raise MethodNotAllowed()
        if sub.name == "scale":
            return self.scaling.handle(request, resource, self._patcher)
        if verb == "get":
            return self._get(request, resource)
        project = projection(resource, sub)
        assert project is not None, f"{resource.gvk} serves {sub.name} without saying what it writes"
        return self._write_part(request, resource, project)

    async def _write_part(self, request: Request, resource: Resource, project: Callable[[Obj, Obj], Obj]) -> Result:
        """PUT or PATCH of one part of an object."""
        info = request.info
        namespace = request.namespace
        if info.verb == "update":
            options = write_options(request.query, "UpdateOptions")
            read = await self._reader(request, resource, options)

            async def replace(live: Obj) -> Obj:
                return project(live, await read())

            scope = WriteScope(request, resource, namespace, options, info.subresource)
            return await self.writes.update(scope, info.name, replace)
        patcher, options = await aside(request, self._resource_patcher, request, resource)

        def update(change: Change, owned: bool) -> Awaitable[Result]:
            async def projected(live: Obj) -> Obj:
                version = live["metadata"].get("resourceVersion")
                pristine: Obj = {**live, "metadata": {**live["metadata"]}}
                changed = await change(live)
                _drop_unset_version(changed, version)
                return project(pristine, changed)

            scope = WriteScope(request, resource, namespace, options, info.subresource, owned=owned, patch=True)
            return self.writes.update(scope, info.name, projected)

        result: Result = await patch_or_create(patcher, update, None, info.subresource)
        return result


def _lists_here(info: RequestInfo, resource: Resource) -> bool:
    """Return whether the path of a built-in, namespaced resource without a namespace exists: as a list."""
    names_object = bool(info.name) and info.verb != "deletecollection"
    return resource.namespaced and not resource.custom and not names_object and "list" in resource.verbs


def _is_out_of_scope(resource: Resource, info: RequestInfo) -> bool:
    """Return whether a namespaced kind is outside of a namespace (but for lists), or a cluster-scoped one inside."""
    if resource.namespaced:
        return not info.namespace and info.verb not in ("list", "watch")
    return bool(info.namespace) and not _is_namespace_itself(info)


def _is_namespace_itself(info: RequestInfo) -> bool:
    """namespaces/<name>, whose path reads like that of something inside the namespace."""
    return info.resource == "namespaces" and info.name == info.namespace


def _refuse_other_uid(resource: Resource, changed: Obj, uid: str) -> None:
    """Refuse a patch that changes the uid; only in a PUT it is a precondition."""
    given = changed["metadata"].get("uid") or uid
    if given != uid:
        error = invalid("metadata.uid", given, "field is immutable")
        raise Invalid.of(resource.gvk.group_kind, changed["metadata"]["name"], [error])


def _drop_unset_version(changed: Obj, live_version: str | None) -> None:
    """Remove the resourceVersion unless the patch itself has set it: only then it is a precondition."""
    meta = changed.get("metadata") or {}
    if meta.get("resourceVersion") == live_version:
        meta.pop("resourceVersion", None)


def place(obj: Obj, resource: Resource, namespace: str, name: str = "") -> None:
    """Fill in namespace and name from the URL; refuse a body that contradicts it."""
    meta = obj.setdefault("metadata", {})
    if resource.namespaced:
        given = meta.get("namespace") or ""
        if given and given != namespace:
            raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
        meta["namespace"] = namespace
    else:
        meta.pop("namespace", None)
    if not name:
        return
    given = meta.get("name") or ""
    if given and given != name:
        raise BadRequest(f"the name of the object ({given}) does not match the name on the URL ({name})")
    meta["name"] = name


def created(obj: Obj, resource: Resource | None = None) -> ObjectResult:
    return ObjectResult(obj=obj, status=201, resource=resource)
