"""The API as the viewer sees it: clients with the viewer's own credentials, and what they may do.

Nothing is read with more rights than the viewer has. Members are reached through `clusters/NAME/proxy` of the control
plane, with the same credentials. What RBAC forbids is found out by trying, or (for what is only to be offered) by a
SelfSubjectAccessReview, and left out.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from karmada.api.cluster import Cluster
from karmada.dashboard.paced import LONGEST, Paced
from karmada.kube.client.client import Client, resource_path
from karmada.kube.client.config import RestConfig
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.memo import Memo
from karmada.kube.objects.types import Obj

USER_AGENT: Final = "karmada-dashboard"
MEMBER_SECONDS: Final = 10.0
"""For how long a member may not respond."""
RIGHTS_SECONDS: Final = 10.0
"""For how long a review counts; a right that is taken away is refused by the server at once."""
_MEMBERS_KEPT: Final = 64
_READS_KEPT: Final = 256
_SEEN_KEPT: Final = 64
_PACED_SECONDS: Final = 2 * LONGEST
"""Longer than anybody waits for a reading."""
_ACCESS_REVIEWS: Final = GVR("authorization.k8s.io", "v1", "selfsubjectaccessreviews")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Identity:
    """As the control plane says who the credentials stand for."""

    name: str
    groups: Sequence[str] = ()
    until: float = math.inf
    """When a certificate ends that it comes from, in seconds since 1970: its sessions end with it."""


class Viewer:
    def __init__(self, identity: Identity, config: RestConfig, clock: Clock) -> None:
        self.identity = identity
        self.config = replace(config, user_agent=USER_AGENT)
        """With the viewer's credentials: for clients only, never to be shown or logged."""
        self.client = Client(HttpTransport(self.config, clock=clock), field_manager=USER_AGENT)
        self.clock = clock
        self._seen: Memo[str, Any] = Memo(_SEEN_KEPT)
        self._members: Memo[str, Client] = Memo(_MEMBERS_KEPT)
        """The connections of those that are dropped are shared, and stay."""
        self._kept: dict[Any, tuple[float, asyncio.Future[Any]]] = {}

    async def close(self) -> None:
        """Close the clients; whatever still waits for a response fails."""
        for client in (self.client, *self._members.values()):
            await client.close()
        for _, future in self._kept.values():
            future.cancel()
        self._kept.clear()

    def member(self, cluster: str) -> Client:
        """Return a member as the viewer sees it; requests fail as the control plane's proxy says."""
        found = self._members.get(cluster)
        if found is None:
            server = self.config.server.rstrip("/") + resource_path(Cluster.gvr, "", cluster, "proxy")
            config = replace(self.config, server=server, timeout=MEMBER_SECONDS)
            found = Client(HttpTransport(config, clock=self.clock), field_manager=USER_AGENT)
            self._members.put(cluster, found)
        return found

    async def may(
        self, verb: str, resource: GVR, namespace: str = "", *, name: str = "", subresource: str = "", cluster: str = ""
    ) -> bool:
        """Return whether to offer something, in a member if one is named. The server decides again when it is done."""
        attributes = {
            "verb": verb,
            "group": resource.group,
            "version": resource.version,
            "resource": resource.resource,
            "namespace": namespace,
            "name": name,
            "subresource": subresource,
        }

        async def review() -> bool:
            body: Obj = {
                "apiVersion": _ACCESS_REVIEWS.api_version,
                "kind": "SelfSubjectAccessReview",
                "spec": {"resourceAttributes": attributes},
            }
            client = self.member(cluster) if cluster else self.client
            answer = await client.create(_ACCESS_REVIEWS, body, "")
            return bool(answer["status"].get("allowed"))

        return await self.kept(("may", cluster, *attributes.values()), RIGHTS_SECONDS, review)

    def seen(self, uid: str, empty: Callable[[], T]) -> T:
        """Return what pages have seen of an object and show the course of; kept for the objects looked at last."""
        found: T | None = self._seen.get(uid)
        return found if found is not None else self._seen.put(uid, empty())

    async def paced(
        self, key: str, read: Callable[[], Awaitable[T]], *, wait: bool = True, suits: Callable[[T], bool] | None = None
    ) -> T:
        """Return what `read` returns next (see paced.py).

        Without `wait`: what it returned last, while that is fresh, or what it returns now. What does not suit (it was
        read for another page) is read anew.
        """
        paced = self.seen(f"paced {key}", lambda: Paced[T](self.clock))
        found = paced.latest if paced.is_fresh else None
        if wait:
            found = await self.kept(("paced", key, paced.begun), _PACED_SECONDS, lambda: paced.next(read))
        if found is None or (suits is not None and not suits(found)):
            found = await paced.now(read)
        return found

    async def kept(self, key: Any, seconds: float, read: Callable[[], Awaitable[T]]) -> T:
        """Return what `read` returned within the last seconds, or returns now: once for all who wait for the same."""
        now = self.clock.monotonic()
        for old in [old for old, (until, _) in self._kept.items() if until <= now]:
            del self._kept[old]
        while len(self._kept) >= _READS_KEPT and key not in self._kept:
            del self._kept[next(iter(self._kept))]
        if key not in self._kept:
            self._kept[key] = now + seconds, asyncio.ensure_future(read())
        future: asyncio.Future[T] = self._kept[key][1]
        try:
            return await asyncio.shield(future)
        except BaseException:
            if future.done():
                self._kept.pop(key, None)
            raise
