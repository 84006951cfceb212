"""From an authenticated request to its result: authorisation, routing, negotiation, handlers.

The order is Kubernetes': a caller without rights gets 403 even for paths that do not exist. What is not a resource is
looked up in `paths`; group-versions that another server serves are passed to `delegate`. Below a group of built-in
kinds an unknown path is a Status, elsewhere a plain page.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import orjson

from karmada.kube.client.fencing import HEADER
from karmada.kube.client.transport import GROUP_HEADER
from karmada.kube.kinds.resource import Resource
from karmada.kube.objects.errors import (
    ApiError,
    BadRequest,
    Conflict,
    Fenced,
    Forbidden,
    Invalid,
    MethodNotAllowed,
    NotFound,
)
from karmada.kube.objects.gvk import GroupVersion
from karmada.kube.objects.types import Obj
from karmada.kube.server.auth.interface import Decides
from karmada.kube.server.auth.messages import denied
from karmada.kube.server.auth.rbac import AuthzAttributes
from karmada.kube.server.handlers.dispatch import Handlers
from karmada.kube.server.handlers.fencing import Fencing
from karmada.kube.server.http.negotiation import negotiated
from karmada.kube.server.http.request import CONNECT_SUBRESOURCES, Request, RequestInfo
from karmada.kube.server.http.results import PAGE_NOT_FOUND, RawResult, Result, page_not_found
from karmada.kube.server.registry import Registry

PathHandler = Callable[[Request], Awaitable[Result]]
_WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_PERHAPS_LATE = (NotFound, Conflict, Forbidden, Invalid)
"""Refusals that another server's write may have made wrong, while the cache lags."""


class Delegate(Protocol):
    def owns(self, version: GroupVersion) -> bool:
        """Return whether another server serves this group-version."""

    async def handle(self, request: Request, version: GroupVersion) -> Result: ...


def attributes_of(info: RequestInfo) -> AuthzAttributes:
    if not info.is_resource:
        return AuthzAttributes(info.verb, path=info.path, is_resource=False)
    return AuthzAttributes(
        info.verb, info.group, info.version, info.resource, info.subresource, info.namespace, info.name
    )


class Pipeline:
    def __init__(
        self,
        registry: Registry,
        handlers: Handlers,
        rights: Decides,
        catch_up: Callable[[], Awaitable[bool]],
    ) -> None:
        """`catch_up` brings current state up to date and returns whether that changed anything."""
        self._registry = registry
        self._catch_up = catch_up
        self._handlers = handlers
        self._rights = rights
        self.paths: dict[str, PathHandler] = {}
        self.prefixes: dict[str, PathHandler] = {}
        self.delegate: Delegate | None = None
        self.fencing: Fencing | None = None
        """Guard of a server that has Leases: refuses writes that were sent under one that is over."""
        self.takes_groups = True
        """True if many creates may be one request; not where each is audited."""
        self.restrict: Callable[[Request], None] | None = None
        """Called with each request that was authorised: may refuse it (ApiError) or narrow its selectors, in place."""

    async def authorize(self, request: Request) -> None:
        attributes = attributes_of(request.info)
        decision = await self._rights.decide(request.user, attributes)
        request.authorized = decision.allowed
        if not decision.allowed:
            raise denied(request.user, attributes, decision.reason)
        if self.restrict is not None:
            self.restrict(request)

    async def run(self, request: Request) -> Result:
        await self.authorize(request)
        return await self.handle(request)

    async def create_all(self, request: Request, objects: Sequence[Obj]) -> list[ApiError | None] | None:
        """Create objects that have their names as a group; None, without a change, if they must be created one by one.

        `request` is a create without a body. The objects are the server's from now on.
        """
        await self.authorize(request)
        info = request.info
        elsewhere = self.delegate is not None and self.delegate.owns(GroupVersion(info.group, info.version))
        if elsewhere or HEADER in request.headers:  # each write under a Lease is checked for itself
            return None
        resource = self._registry.get(info.gvr)
        outcomes = None if resource is None else await self._handlers.create_all(request, resource, objects)
        if resource is None or outcomes is None:
            return None
        refused = [index for index, outcome in enumerate(outcomes) if isinstance(outcome, _PERHAPS_LATE)]
        if refused and await self._catch_up():
            again = await self._handlers.create_all(request, resource, [objects[index] for index in refused])
            for index, outcome in zip(refused, again or (), strict=True):
                outcomes[index] = outcome
        return outcomes

    async def _create_group(self, request: Request) -> Result:
        """Many creates as one request (see GROUP_HEADER): each item is refused for itself."""
        outcomes = await self.create_all(request, _items(request)) if self.takes_groups else None
        if outcomes is None:
            raise BadRequest(f"{GROUP_HEADER}: these objects must be created one by one")
        statuses = [None if outcome is None else outcome.status() for outcome in outcomes]
        return RawResult(orjson.dumps(statuses), status=201)

    def handle(self, request: Request) -> Awaitable[Result]:
        """Route a request that `authorize` has allowed."""
        verb, headers = request.info.verb, request.headers
        if verb == "create" and headers.get(GROUP_HEADER) is not None:
            return self._create_group(request)
        if self.fencing is not None and verb in _WRITES:
            lease = headers.get(HEADER)
            if lease is not None:
                return self._fenced(request, self.fencing, lease)
        return self._route(request)

    async def _fenced(self, request: Request, fencing: Fencing, lease: str) -> Result:
        with fencing.under(lease):
            await self._check_fence(fencing)
            return await self._route(request)

    def _route(self, request: Request) -> Awaitable[Result]:
        """Return what answers the request, awaited once: each coroutine on the way would cost every request."""
        info = request.info
        if not info.is_resource:
            return self._path(request)
        version = GroupVersion(info.group, info.version)
        if self.delegate is not None and self.delegate.owns(version):
            return self.delegate.handle(request, version)
        resource = self._registry.find(version, info.resource)
        if resource is None:
            if self._registry.has_builtin(info.group) or self._registry.serves(version):
                raise NotFound.resource()
            return page_not_found()
        if not request.in_process:
            request.form = negotiated(request, resource)  # before anything is written
        if info.verb in _WRITES and info.subresource not in CONNECT_SUBRESOURCES:
            return self._write(request, resource)
        return self._handlers.handle(request, resource)

    async def _check_fence(self, fencing: Fencing) -> None:
        """Refuse a write under a Lease that is over, which may be newer than the cache."""
        try:
            fencing.check()
        except Fenced:
            if not await self._catch_up():
                raise
            fencing.check()

    async def _write(self, request: Request, resource: Resource) -> Result:
        """Retry a refused write once after catching up: where other servers write too, the cache may lag."""
        try:
            return await self._handlers.handle(request, resource)
        except _PERHAPS_LATE:
            if not await self._catch_up():
                raise
        return await self._handlers.handle(request, resource)

    async def _path(self, request: Request) -> Result:
        path = request.info.path
        handler = self.paths.get(path) or self.paths.get(path.rstrip("/"))
        if handler is None:
            for prefix, candidate in self.prefixes.items():
                if path.startswith(prefix):
                    handler = candidate
                    break
        if handler is None:
            return PAGE_NOT_FOUND
        if request.method not in ("GET", "HEAD"):
            raise MethodNotAllowed()
        return await handler(request)


def _items(request: Request) -> list[Obj]:
    """Return the items of the List in the body."""
    try:
        items: list[Obj] = orjson.loads(request.body)["items"]
        are_named = all(isinstance(item["metadata"]["name"], str) for item in items)
    except (ValueError, TypeError, KeyError):
        are_named = False
    if not are_named:
        raise BadRequest(f"{GROUP_HEADER}: the body must be a List of objects with names")
    return items
