"""The kinds that selectors name, as they are served: by the control plane or, failing that, by a member."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from karmada.api.matching import api_enablement
from karmada.kube.client.client import Client
from karmada.kube.client.discovery import Mapping as Kind
from karmada.kube.client.discovery import NoMatch
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects import meta
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.logging import get_logger
from karmada.members.access import NoAccess
from karmada.members.members import Members

log = get_logger("search")


class ServedKinds:
    """The kinds that were found once: the resource and the scope of a kind do not change."""

    def __init__(self, control_plane: Client, members: Members) -> None:
        self._control_plane = control_plane
        self._members = members
        self._known: dict[GVK, Kind] = {}

    async def of(self, wanted: Iterable[GVK], clusters: Sequence[Obj]) -> dict[GVK, Kind]:
        """Without those that nobody serves, or that can only be read (metrics, reviews)."""
        found = {}
        for gvk in wanted:
            kind = self._known.get(gvk) or await self._find(gvk, clusters)
            if kind is not None and kind.allows("list", "watch"):
                found[gvk] = self._known[gvk] = kind
        return found

    async def _find(self, gvk: GVK, clusters: Sequence[Obj]) -> Kind | None:
        try:
            return await self._control_plane.mapper.mapping(gvk)
        except NoMatch:
            pass  # a kind that only members have
        for cluster in clusters:
            if api_enablement(cluster, gvk) == "APIEnabled":
                try:
                    return await self._members.get(meta.name(cluster)).client.mapper.mapping(gvk)
                except (ApiError, ConnectionFailed, NoAccess, NoMatch) as error:
                    log.v(1).info("A cluster does not show a kind", cluster=meta.name(cluster), err=str(error))
        return None
