"""What of the index a caller may see: the rights it has in the members, by resource and namespace.

Whole resources are decided first; only where that is refused, the namespaces in which objects match.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from karmada.kube.objects.gvk import GVR
from karmada.kube.server.auth.rbac import AuthzAttributes
from karmada.kube.server.auth.user import User
from karmada.search.index.query import Query
from karmada.search.index.searching import Scope
from karmada.search.index.service import SearchIndex
from karmada.search.interfaces import Reading
from karmada.search.pending import Source

_AT_ONCE: Final = 16


class Seen(NamedTuple):
    scope: Scope
    refused: dict[GVR, list[str]]
    """Clusters of which nothing of a resource may be seen."""


Sources = Mapping[int, Source]


class SearchRights:
    def __init__(self, index: SearchIndex, reading: Reading) -> None:
        self._index = index
        self._reading = reading

    async def seen(self, user: User, query: Query, sources: Sources, verb: str = "list") -> Seen:
        allowed = await self._allowed(user, verb, [(number, query.namespace) for number in sources], sources)
        scope: dict[int, frozenset[str] | None] = {number: None for number, _ in allowed}
        rest = [number for number in sources if number not in scope]
        if rest and not query.namespace:
            within = [pair for pair in await self._index.namespaces(query, rest) if pair[1]]
            found: dict[int, set[str]] = defaultdict(set)
            for number, namespace in await self._allowed(user, verb, within, sources):
                found[number].add(namespace)
            scope |= {number: frozenset(names) for number, names in found.items()}
        refused: dict[GVR, list[str]] = defaultdict(list)
        for number, source in sources.items():
            if number not in scope:
                refused[source.gvr].append(source.cluster)
        return Seen(scope, dict(refused))

    async def _allowed(
        self, user: User, verb: str, wanted: Sequence[tuple[int, str]], sources: Sources
    ) -> set[tuple[int, str]]:
        """Return one question for all clusters that have a resource, in a namespace."""
        grouped: dict[tuple[GVR, str], dict[str, int]] = defaultdict(dict)
        for number, namespace in wanted:
            cluster, gvr = sources[number]
            grouped[gvr, namespace][cluster] = number
        turns = asyncio.Semaphore(_AT_ONCE)

        async def decide(gvr: GVR, namespace: str, clusters: Mapping[str, int]) -> list[tuple[int, str]]:
            attributes = AuthzAttributes(verb, gvr.group, gvr.version, gvr.resource, namespace=namespace)
            async with turns:
                rights = await self._reading.rights(user, attributes, sorted(clusters))
            return [(clusters[cluster], namespace) for cluster in rights.allowed]

        decided = await asyncio.gather(*(decide(*key, clusters) for key, clusters in grouped.items()))
        return {pair for pairs in decided for pair in pairs}
