"""The proxy as an endpoint of a server: `proxying/{any}/proxy/…` of search.karmada.io."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from karmada.apiserver.members import Members
from karmada.kube.kinds.resource import Resource, Subresource
from karmada.kube.objects.gvk import GVK, GroupResource
from karmada.kube.schema.node import Node
from karmada.kube.server.core import ServerCore
from karmada.kube.server.handlers.dispatch import Place
from karmada.search.interfaces import Caches, Reading
from karmada.search.proxy.chain import Part, Proxy
from karmada.search.proxy.kinds import Kinds, Served
from karmada.search.proxy.live import Live, Reads
from karmada.search.proxy.member_requests import MemberRequests
from karmada.search.proxy.parsing import GROUP
from karmada.search.proxy.reads import CachedReads

PROXYING: Final = GroupResource(GROUP, "proxying")
_VERBS: Final = ("create", "delete", "get", "patch", "update")


def mount_proxy(
    server: ServerCore,
    caches: Caches,
    reading: Reading,
    members: Members,
    control_plane: Part,
    *,
    live: Reads | None = None,
    served: Served = lambda _gvr: None,
    more: Iterable[Part] = (),
) -> None:
    """Before the server starts. `members` are reached as their callers, `control_plane` answers the rest.

    `served` are the kinds of the control plane, where this process has them; `more` are parts of the chain besides.
    """
    live = live or Live(caches)
    kinds = Kinds(server.definitions, served)
    reads = CachedReads(caches, live, reading, kinds, members.has)
    requests = MemberRequests(caches, live, reading, members, server.http.read_body, server.definitions)
    server.registry.add([connectable(PROXYING, "Proxying", proxy=_VERBS)])
    server.handlers.endpoints[Place(PROXYING, "proxy")] = Proxy([reads, requests, control_plane, *more]).connect


def connectable(resource: GroupResource, kind: str, **subresources: Sequence[str]) -> Resource:
    """Return a path to connect to, or subresources with these verbs: there are no objects of it."""
    gvk = GVK(resource.group, "v1alpha1", kind)
    return Resource(
        gvk=gvk,
        plural=resource.resource,
        namespaced=False,
        verbs=(),
        subresources={name: Subresource(name, verbs=tuple(verbs), kind=gvk) for name, verbs in subresources.items()},
        schema=lambda: Node(type="object", preserve=True),
        storage=gvk,
        storage_resource=resource,
        custom=True,
        native=True,
    )
