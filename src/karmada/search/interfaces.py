"""What readers of the caches use: the proxy, the search endpoints, the index."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol

from karmada.kube.client.client import Client
from karmada.kube.client.discovery import Mapping as Kind
from karmada.kube.objects.doc import Doc
from karmada.kube.objects.gvk import GVR
from karmada.kube.server.auth.rbac import AuthzAttributes
from karmada.kube.server.auth.user import User
from karmada.kube.server.watchcache.subscription import Matches, Subscription
from karmada.search.registries import Namespaces
from karmada.search.sinks import Sink


class KindCache(Protocol):
    """One resource of one cluster: its current objects, and its recent changes for watches."""

    @property
    def cluster(self) -> str: ...

    @property
    def kind(self) -> Kind:
        """Return the kind's resource (`gvr`), kind (`gvk`) and scope (`namespaced`)."""

    @property
    def namespaces(self) -> Namespaces:
        """Return what of it is cached; see `registries.covers`."""

    @property
    def synced(self) -> bool:
        """Return whether the first list is complete; before that there are no objects."""

    @property
    def resource_version(self) -> str:
        """Return the version of the member that this state is current at; "" before it has synced."""

    def get(self, namespace: str, name: str) -> Doc | None: ...

    def list(self, namespace: str = "") -> builtins.list[Doc]:
        """In the order of a server's list: by namespace, then by name. "" is all namespaces."""

    def snapshot(self, revision: int, namespace: str = "") -> builtins.list[Doc] | None:
        """Return the list as it was at a recent version of the member; None if the changes since are not known."""

    async def subscribe(
        self, since: int | None = None, *, namespace: str = "", name: str = "", matches: Matches | None = None
    ) -> Subscription:
        """Watch changes after a version of the member (None: from now on).

        Expired when the changes since are not known any more, TooManyRequests while it has not synced. It ends when
        the resource is not cached any more and when the member had to be listed again.
        """


class Caches(Protocol):
    """All kind caches."""

    @property
    def kinds(self) -> Mapping[GVR, Kind]:
        """Return what registries name, whether or not a cluster has it."""

    def clusters(self, gvr: GVR) -> list[str]:
        """Return the clusters that this resource is cached of, by name."""

    def cache(self, cluster: str, gvr: GVR) -> KindCache | None: ...

    def client(self, cluster: str) -> Client:
        """Return the cluster with the credentials of its secretRef, for reads that the cache cannot serve; NoAccess."""

    def add_sink(self, sink: Sink) -> None:
        """Before the start."""

    def on_cluster_added(self, call: Callable[[], None]) -> Callable[[], None]:
        """Call this whenever a cluster comes to those that are cached, so that watches over all of them are closed.

        Returns a function that ends it.
        """


class Rights(NamedTuple):
    """The clusters where the caller may do what is wanted, and those where not and why."""

    allowed: list[str]
    refused: dict[str, str]


class Reading(Protocol):
    """Who may read in members: see `reading.py`."""

    async def rights(self, user: User, wanted: AuthzAttributes, clusters: Iterable[str]) -> Rights: ...
