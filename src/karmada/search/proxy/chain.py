"""Who answers a request behind the proxy: the first part, in their order, that takes it.

`cache` reads what is registered, `cluster` hands everything else of registered resources to the member that has the
object, `karmada` is the control plane. Others can be put in between.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Protocol

from karmada.kube.kinds.resource import Resource
from karmada.kube.objects.errors import NotFound
from karmada.kube.server.http.request import Request
from karmada.kube.server.http.results import Result
from karmada.search.proxy.parsing import Proxied, proxied

CACHE, CLUSTER, KARMADA = 1000, 2000, 3000


class Part(Protocol):
    @property
    def order(self) -> int: ...

    def takes(self, inner: Proxied) -> bool: ...

    async def answer(self, inner: Proxied) -> Result: ...


class Proxy:
    """The endpoint of subresource `proxy`."""

    def __init__(self, parts: Iterable[Part]) -> None:
        self._parts = sorted(parts, key=attrgetter("order"))

    async def connect(self, request: Request, _resource: Resource) -> Result:
        inner = proxied(request)
        for part in self._parts:
            if part.takes(inner):
                return await part.answer(inner)
        raise NotFound.resource()
