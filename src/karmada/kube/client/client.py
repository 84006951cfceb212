"""The client: the verbs of the Kubernetes API over any Transport.

A resource is named by its GVR, which is the URL, or by its GVK, which the REST mapper turns into one (and requests
discovery again when it does not know a kind yet). Objects are plain dicts; what comes back may be shared with the
server and its caches and must not be changed. Failures are the typed errors of objects.errors.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, NamedTuple, TypedDict, Unpack

from karmada.kube.client.discovery import RESTMapper
from karmada.kube.client.limits import LIST_BYTES
from karmada.kube.client.transport import Call, ConnectionFailed, Transport, WatchEvent
from karmada.kube.objects.errors import ApiError, Expired, Gone
from karmada.kube.objects.gvk import GVK, GVR
from karmada.kube.objects.shapes import WHOLE, Shape
from karmada.kube.objects.types import Obj

PATCH_TYPES: Mapping[str, str] = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
METADATA_FORM = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
METADATA_LIST_FORM = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
JSON = "application/json"
PAGE_SIZE = 500
CONCURRENCY = 16
"""How many creates of many are on their way at the same time."""


class ListOptions(TypedDict, total=False):
    """Which objects of a kind are listed, and how much of each is wanted."""

    label_selector: str
    field_selector: str
    shape: Shape


class Listing(NamedTuple):
    """All objects of a list, page by page put together, and the resourceVersion to watch from."""

    items: list[Obj]
    resource_version: str


class ListPage(NamedTuple):
    """Some objects of a list. `first`: with this page the list begins, perhaps anew."""

    items: Sequence[Obj]
    """Parsed when it is iterated over, where the server is in this process."""
    resource_version: str
    first: bool


def resource_path(gvr: GVR, namespace: str = "", name: str = "", subresource: str = "") -> str:
    """Return the URL path of a resource, unescaped (a transport escapes what it must)."""
    group, version, plural = gvr
    path = f"/apis/{group}/{version}" if group else f"/api/{version}"
    path = f"{path}/namespaces/{namespace}/{plural}" if namespace else f"{path}/{plural}"
    if name:
        path = f"{path}/{name}"
    return f"{path}/{subresource}" if subresource else path


def delete_options(
    *,
    propagation: str = "",
    grace_period: int | None = None,
    uid: str = "",
    resource_version: str = "",
    dry_run: bool = False,
) -> Obj | None:
    """Return a DeleteOptions body; None when no option is set."""
    options: Obj = {}
    if propagation:
        options["propagationPolicy"] = propagation
    if grace_period is not None:
        options["gracePeriodSeconds"] = grace_period
    preconditions = {k: v for k, v in (("uid", uid), ("resourceVersion", resource_version)) if v}
    if preconditions:
        options["preconditions"] = preconditions
    if dry_run:
        options["dryRun"] = ["All"]
    return {"kind": "DeleteOptions", "apiVersion": "v1", **options} if options else None


def _selectors(label_selector: str, field_selector: str) -> dict[str, str]:
    query = {}
    if label_selector:
        query["labelSelector"] = label_selector
    if field_selector:
        query["fieldSelector"] = field_selector
    return query


def _checked(call: Call, answer: Any) -> Obj:
    """Refuse the response of a server that is none (the page of some login, with code 200)."""
    if not isinstance(answer, dict):
        raise ConnectionFailed(f"{call.method} {call.path}: the server responded with what is no object")
    return answer


class Client:
    """`field_manager` names this client in managedFields; `mapper` is made on demand when none is given."""

    def __init__(self, transport: Transport, *, field_manager: str = "", mapper: RESTMapper | None = None) -> None:
        self.transport = transport
        self.field_manager = field_manager
        self.mapper = mapper or RESTMapper(transport)

    async def close(self) -> None:
        await self.transport.close()

    async def resource(self, kind: GVR | GVK) -> GVR:
        """Return the GVR of a kind; a GVR is taken as it is."""
        if isinstance(kind, GVR):
            return kind
        return (await self.mapper.mapping(kind)).gvr

    async def resource_of(self, obj: Obj) -> GVR:
        """Return the GVR of an object, by its apiVersion and kind."""
        return (await self.mapper.mapping(GVK.parse(obj["apiVersion"], obj["kind"]))).gvr

    async def raw(self, method: str, path: str, *, query: Mapping[str, str] | None = None, body: Any = None) -> Any:
        """Any other request, e.g. GET /version or the /readyz of a cluster."""
        return await self.transport.call(Call(method, path, query or {}, body))

    async def _object(self, call: Call) -> Obj:
        return _checked(call, await self.transport.call(call))

    # reads

    async def get(
        self,
        kind: GVR | GVK,
        name: str,
        namespace: str = "",
        *,
        subresource: str = "",
        resource_version: str = "",
        shape: Shape = WHOLE,
    ) -> Obj:
        gvr = kind if isinstance(kind, GVR) else await self.resource(kind)
        query = {"resourceVersion": resource_version} if resource_version else {}
        accept, path = METADATA_FORM if shape.only_metadata else JSON, resource_path(gvr, namespace, name, subresource)
        call = Call("GET", path, query, accept=accept)
        return _checked(call, await self.transport.call(call))

    async def list(
        self,
        kind: GVR | GVK,
        namespace: str = "",
        *,
        limit: int = 0,
        continue_: str = "",
        resource_version: str = "",
        resource_version_match: str = "",
        new_first: bool = False,
        **options: Unpack[ListOptions],
    ) -> Obj:
        """Return one page of a list as the server answers it; its items are a sequence."""
        gvr = await self.resource(kind)
        query = _selectors(options.get("label_selector", ""), options.get("field_selector", ""))
        if limit:
            query["limit"] = str(limit)
        if continue_:
            query["continue"] = continue_
        if resource_version:
            query["resourceVersion"] = resource_version
        if resource_version_match:
            query["resourceVersionMatch"] = resource_version_match
        shape = options.get("shape", WHOLE)
        accept = METADATA_LIST_FORM if shape.only_metadata else JSON
        path = resource_path(gvr, namespace)
        call = Call("GET", path, query, accept=accept, most=LIST_BYTES, new_first=new_first, shape=shape)
        return await self._object(call)

    async def list_all(
        self,
        kind: GVR | GVK,
        namespace: str = "",
        *,
        resource_version: str = "",
        page_size: int = PAGE_SIZE,
        **options: Unpack[ListOptions],
    ) -> Listing:
        """Return the whole list.

        `resource_version` "0" takes any cached state, N one not older than N, "" the latest.
        """
        items: list[Obj] = []
        version = ""
        pages = self.pages(kind, namespace, resource_version=resource_version, page_size=page_size, **options)
        async for page in pages:
            if page.first:
                items = []
            items += page.items
            version = page.resource_version
        return Listing(items, version)

    async def pages(
        self,
        kind: GVR | GVK,
        namespace: str = "",
        *,
        resource_version: str = "",
        page_size: int = PAGE_SIZE,
        new_first: bool = False,
        **options: Unpack[ListOptions],
    ) -> AsyncIterator[ListPage]:
        """Yield a list page by page (see `list_all`), so that never more than one of them is in memory.

        Pages are requested only where they mean the same snapshot: a limit together with N would mean exactly N.
        When the snapshot expires between two pages, the list begins again, in one piece.
        """
        gvr = await self.resource(kind)
        limit = page_size if resource_version in ("", "0") else 0
        token = ""
        while True:
            first, version = not token, "" if token else resource_version
            try:
                answer = await self.list(
                    gvr,
                    namespace,
                    limit=limit,
                    continue_=token,
                    resource_version=version,
                    new_first=new_first,
                    **options,
                )
            except (Expired, Gone):
                if first:
                    raise
                limit, token = 0, ""
                continue
            metadata = answer.get("metadata")
            if not isinstance(metadata, dict):
                raise ConnectionFailed(
                    f"GET {resource_path(gvr, namespace)}: the server responded with what is no list"
                )
            yield ListPage(answer.get("items") or [], metadata.get("resourceVersion", ""), first)
            token = metadata.get("continue", "")
            if not token:
                return

    async def watch(
        self,
        kind: GVR | GVK,
        namespace: str = "",
        *,
        resource_version: str = "",
        label_selector: str = "",
        field_selector: str = "",
        bookmarks: bool = True,
        timeout: int = 0,
        shape: Shape = WHOLE,
    ) -> AsyncIterator[WatchEvent]:
        """Return events until the server ends the stream (after `timeout` seconds); an ERROR event is raised."""
        gvr = await self.resource(kind)
        query = {"watch": "true", **_selectors(label_selector, field_selector)}
        if resource_version:
            query["resourceVersion"] = resource_version
        if bookmarks:
            query["allowWatchBookmarks"] = "true"
        if timeout:
            query["timeoutSeconds"] = str(timeout)
        accept = METADATA_FORM if shape.only_metadata else JSON
        path = resource_path(gvr, namespace)
        return self.transport.watch(Call("GET", path, query, accept=accept))

    # writes

    def _write_query(self, dry_run: bool, field_manager: str = "", field_validation: str = "") -> dict[str, str]:
        query = {}
        manager = field_manager or self.field_manager
        if manager:
            query["fieldManager"] = manager
        if dry_run:
            query["dryRun"] = "All"
        if field_validation:
            query["fieldValidation"] = field_validation
        return query

    async def create(
        self,
        kind: GVR | GVK,
        obj: Obj,
        namespace: str | None = None,
        *,
        dry_run: bool = False,
        field_manager: str = "",
        field_validation: str = "",
    ) -> Obj:
        """Create the object; `namespace` defaults to its own."""
        gvr = kind if isinstance(kind, GVR) else await self.resource(kind)
        where = obj["metadata"].get("namespace", "") if namespace is None else namespace
        query = self._write_query(dry_run, field_manager, field_validation)
        call = Call("POST", resource_path(gvr, where), query, obj)
        return _checked(call, await self.transport.call(call))

    async def create_all(
        self, kind: GVR | GVK, objects: Sequence[Obj], namespace: str, *, concurrency: int = CONCURRENCY
    ) -> Sequence[ApiError | ConnectionFailed | None]:
        """Create objects of one namespace that have their names: as one group where the server can, else concurrently.

        The error of each that failed. The objects must not be used afterwards.
        """
        gvr = await self.resource(kind)
        call = Call("POST", resource_path(gvr, namespace), self._write_query(False))
        outcomes = await self.transport.create_all(call, objects)
        if outcomes is not None:
            return outcomes
        free = asyncio.Semaphore(concurrency)

        async def create(obj: Obj) -> ApiError | ConnectionFailed | None:
            async with free:
                try:
                    await self.create(gvr, obj, namespace)
                except (ApiError, ConnectionFailed) as error:
                    return error
                return None

        return await asyncio.gather(*map(create, objects))

    async def update(
        self,
        kind: GVR | GVK,
        obj: Obj,
        *,
        subresource: str = "",
        dry_run: bool = False,
        field_manager: str = "",
        field_validation: str = "",
    ) -> Obj:
        gvr = await self.resource(kind)
        path = resource_path(gvr, _namespace(obj), obj["metadata"]["name"], subresource)
        query = self._write_query(dry_run, field_manager, field_validation)
        return await self._object(Call("PUT", path, query, obj))

    async def update_status(self, kind: GVR | GVK, obj: Obj, *, field_manager: str = "") -> Obj:
        return await self.update(kind, obj, subresource="status", field_manager=field_manager)

    async def patch(
        self,
        kind: GVR | GVK,
        name: str,
        namespace: str,
        patch: Any,
        *,
        type: str = "merge",  # noqa: A002 - the word the API uses
        subresource: str = "",
        force: bool = False,
        dry_run: bool = False,
        field_manager: str = "",
        field_validation: str = "",
    ) -> Obj:
        """`type` is json, merge, strategic or apply."""
        gvr = kind if isinstance(kind, GVR) else await self.resource(kind)
        query = self._write_query(dry_run, field_manager, field_validation)
        if type == "apply":
            query["force"] = "true" if force else "false"
        path = resource_path(gvr, namespace, name, subresource)
        call = Call("PATCH", path, query, patch, content_type=PATCH_TYPES[type])
        return _checked(call, await self.transport.call(call))

    async def apply(
        self,
        kind: GVR | GVK,
        obj: Obj,
        *,
        field_manager: str = "",
        force: bool = False,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Obj:
        """Server-side apply of `obj`."""
        return await self.patch(
            kind,
            obj["metadata"]["name"],
            _namespace(obj),
            obj,
            type="apply",
            force=force,
            subresource=subresource,
            dry_run=dry_run,
            field_manager=field_manager,
        )

    async def delete(
        self,
        kind: GVR | GVK,
        name: str,
        namespace: str = "",
        *,
        propagation: str = "",
        grace_period: int | None = None,
        uid: str = "",
        resource_version: str = "",
        dry_run: bool = False,
    ) -> Obj:
        """`uid` and `resource_version` are preconditions; `propagation` is Foreground, Background or Orphan."""
        gvr = await self.resource(kind)
        body = delete_options(
            propagation=propagation,
            grace_period=grace_period,
            uid=uid,
            resource_version=resource_version,
            dry_run=dry_run,
        )
        answer: Obj = await self.transport.call(Call("DELETE", resource_path(gvr, namespace, name), {}, body))
        return answer

    async def delete_collection(
        self,
        kind: GVR | GVK,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        propagation: str = "",
        grace_period: int | None = None,
    ) -> Obj:
        gvr = await self.resource(kind)
        body = delete_options(propagation=propagation, grace_period=grace_period)
        query = _selectors(label_selector, field_selector)
        call = Call("DELETE", resource_path(gvr, namespace), query, body, most=LIST_BYTES)
        answer: Obj = await self.transport.call(call)
        return answer

    async def create_subresource(
        self, kind: GVR | GVK, name: str, namespace: str, subresource: str, obj: Obj, *, dry_run: bool = False
    ) -> Obj:
        """POST to a subresource: pods/eviction, pods/binding, serviceaccounts/token."""
        gvr = await self.resource(kind)
        path = resource_path(gvr, namespace, name, subresource)
        return await self._object(Call("POST", path, self._write_query(dry_run), obj))


def _namespace(obj: Obj) -> str:
    namespace: str = obj["metadata"].get("namespace", "")
    return namespace
