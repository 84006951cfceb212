"""Writes, and everything below an object: to the member that has it, as the caller, as `clusters/NAME/proxy` does it.

The member decides what the caller may do. Where an object is comes from the caches, but only clusters in which the
caller may do what is requested are looked at: to others it must not show whether there is such an object.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any

from aiohttp import web

from karmada.apiserver.forwarding import call, forward
from karmada.apiserver.members import Members
from karmada.kube.objects.errors import ApiError, MethodNotAllowed
from karmada.kube.objects.gvk import GVK, GVR
from karmada.kube.objects.types import Obj
from karmada.kube.schema import protobuf
from karmada.kube.schema.builtin import Definitions
from karmada.kube.server.auth.rbac import AuthzAttributes
from karmada.kube.server.http.protobuf_form import ProtobufForm
from karmada.kube.server.http.relaying import own_body
from karmada.kube.server.http.request import Request
from karmada.kube.server.http.results import Result, TakeOver
from karmada.search.interfaces import Caches, Reading
from karmada.search.proxy.chain import CLUSTER
from karmada.search.proxy.live import Reads
from karmada.search.proxy.locating import Locating, the_one
from karmada.search.proxy.parsing import Proxied
from karmada.search.proxy.reads import decided_in, namespace_of
from karmada.search.proxy.updating import Codec, for_member
from karmada.search.reading import readable

_WITH_OBJECT = frozenset({"update", "patch"})
ReadBody = Callable[[web.BaseRequest, Request], Awaitable[bytes]]


class MemberRequests:
    order = CLUSTER

    def __init__(
        self,
        caches: Caches,
        live: Reads,
        reading: Reading,
        members: Members,
        read_body: ReadBody,
        definitions: Definitions,
    ) -> None:
        self._caches = caches
        self._reading = reading
        self._members = members
        self._read_body = read_body
        self._definitions = definitions
        self._protobuf = ProtobufForm(definitions)
        self._locating = Locating(caches, live)

    def takes(self, inner: Proxied) -> bool:
        return inner.gvr in self._caches.kinds

    async def answer(self, inner: Proxied) -> Result:
        info, request = inner.info, inner.request
        if info.verb == "create" and not info.name:
            raise _not_supported(info.verb, info.gvr)
        cluster = await self._cluster(inner)
        member = await self._members.get(cluster)
        if info.verb in _WITH_OBJECT:
            request = await self._rewritten(request, info.gvr, cluster)
        if request.in_process:
            return await call(self._members, member, request, inner.path, inner.query)
        send = partial(forward, self._members, member, request)
        return TakeOver(lambda raw: send(raw, inner.path, inner.query))

    async def _cluster(self, inner: Proxied) -> str:
        info, gvr = inner.info, inner.info.gvr
        kind, everywhere = self._caches.kinds[gvr], self._caches.clusters(gvr)
        namespace = namespace_of(info, kind)
        holders = await self._locating.holders(gvr, namespace, info.name, everywhere)
        wanted = AuthzAttributes(info.verb, *gvr, info.subresource, decided_in(info, kind), info.name)
        rights = await self._reading.rights(inner.request.user, wanted, holders)
        if not rights.allowed:  # as if none of them had it: Forbidden if there is no right in any cluster
            await readable(self._reading, inner.request, wanted, everywhere)
        return the_one(gvr, info.name, rights.allowed)

    # bodies

    async def _rewritten(self, request: Request, gvr: GVR, cluster: str) -> Request:
        if request.in_process:
            body = own_body(request) or b""
            media = request.headers.get("Content-Type", "")
            return replace(request, body=for_member(body, media, cluster), obj=None)
        raw: web.BaseRequest = request.raw
        if not raw.can_read_body:
            return request
        body = await self._read_body(raw, request)
        media = raw.headers.get("Content-Type", "")
        return replace(request, body=for_member(body, media, cluster, self._codec(self._caches.kinds[gvr].gvk)))

    def _codec(self, gvk: GVK) -> Codec:
        def read(body: bytes) -> Any:
            try:
                version, kind, obj = protobuf.decode(body, self._definitions, gvk)
            except (protobuf.UnknownMessage, ApiError) as error:
                raise ValueError(str(error)) from error
            return {**obj, "apiVersion": version or gvk.api_version, "kind": kind or gvk.kind}

        def write(obj: Obj) -> bytes:
            return self._protobuf.object(obj)

        return read, write


def _not_supported(verb: str, gvr: GVR) -> MethodNotAllowed:
    details: Obj = {"group": gvr.group} if gvr.group else {}
    message = f'{verb} is not supported on resources of kind "{gvr.group_resource}"'
    return MethodNotAllowed(message, details={**details, "kind": gvr.resource})
