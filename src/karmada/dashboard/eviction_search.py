"""Bindings with eviction tasks, among any number of bindings.

The server cannot select them, so all bindings are read, some at a time, round after round; those that were found are
read again each time. So what a look costs does not grow with the fleet, and nothing stays unseen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from karmada.api.work import ClusterResourceBinding, ResourceBinding
from karmada.dashboard import reads
from karmada.kube.client.client import Client
from karmada.kube.objects import meta
from karmada.kube.objects.errors import Expired, Gone
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj

MOST: Final = 5000
"""Bindings that are read at a time."""
SHOWN: Final = 200
"""How many of those that were found are shown."""
_PAGE: Final = 500
_KINDS: Final = (ResourceBinding.gvr, ClusterResourceBinding.gvr)
_Key = tuple[GVR, str, str]


@dataclass(frozen=True, slots=True)
class Found:
    bindings: Sequence[Obj]
    """Bindings by namespace and name."""
    more: int
    """That were found as well."""
    left: int
    """Bindings that no round has come to yet; 0 once all were read."""


class EvictionSearch:
    """The search of one viewer, which goes on where it stopped the last time."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._known: dict[_Key, Obj] = {}
        self._round: set[_Key] = set()
        """Bindings of `_known` that this round has come to."""
        self._kind, self._token = 0, ""
        self._complete = False

    async def look(self, client: Client) -> Found:
        """Return one at a time; Forbidden if the viewer may not read bindings."""
        budget, left = self._most, 0
        fresh: set[_Key] = set()
        while budget > 0:
            page = await self._next(client)
            budget -= max(1, len(page.items))
            fresh |= self._note(page)
            left = page.more or 0
            if self._advance(page):
                break
        await self._read_again(client, fresh)
        keys = sorted(self._known, key=lambda key: key[1:])
        shown = [self._known[key] for key in keys[:SHOWN]]
        return Found(shown, len(keys) - len(shown), 0 if self._complete else max(1, left))

    async def _next(self, client: Client) -> reads.Page:
        try:
            return await reads.page(client, _KINDS[self._kind], limit=_PAGE, token=self._token)
        except (Expired, Gone):  # the round took too long: begin again
            self._begin()
            return await reads.page(client, _KINDS[0], limit=_PAGE)

    def _begin(self) -> None:
        self._kind, self._token = 0, ""
        self._round.clear()

    def _note(self, page: reads.Page) -> set[_Key]:
        kind = _KINDS[self._kind]
        found = {(kind, *meta.key(one)): one for one in page.items if one["spec"].get("gracefulEvictionTasks")}
        self._known |= found
        self._round |= found.keys()
        return set(found)

    def _advance(self, page: reads.Page) -> bool:
        """Return whether that was the end of a round: what it has not come to is no more."""
        self._token = page.token
        if page.token:
            return False
        self._kind += 1
        if self._kind < len(_KINDS):
            return False
        self._known = {key: self._known[key] for key in self._known.keys() & self._round}
        self._complete = True
        self._begin()
        return True

    async def _read_again(self, client: Client, fresh: set[_Key]) -> None:
        """Read again what was found earlier and this request has not come to."""
        old = [key for key in sorted(self._known, key=lambda key: key[1:])[:SHOWN] if key not in fresh]
        gets = (reads.existing(client.get(kind, name, namespace)) for kind, namespace, name in old)
        for key, binding in zip(old, await asyncio.gather(*gets), strict=True):
            if binding is not None and binding["spec"].get("gracefulEvictionTasks"):
                self._known[key] = binding
            else:
                del self._known[key]
