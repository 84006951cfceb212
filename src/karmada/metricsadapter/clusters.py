"""The clusters that metrics are requested from: those that are Ready.

Nothing is watched or connected before the first request, so that a control plane whose metrics nobody reads does not
pay for them. A cluster that does not answer is left out for a while: it would hold up every request by the time-out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple

from karmada.api.cluster import Cluster
from karmada.controllers.cluster_state import is_ready
from karmada.kube.client.client import Client
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects import meta
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.errors import ApiError, NotFound
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.waiting import with_timeout
from karmada.members.access import NoAccess
from karmada.members.members import Members
from karmada.members.switching import Open, over_network

USER_AGENT = "karmada-metrics-adapter"
SECONDS = 5.0
"""How long a cluster may take to answer."""
LEFT_OUT_SECONDS = 30.0
"""For how long a cluster is left out that did not."""
log = get_logger("metrics-adapter")


class Answer(NamedTuple):
    cluster: str
    body: Obj


class MeasuredClusters:
    def __init__(
        self, control_plane: Client, clock: Clock, *, allow_insecure: bool = False, open_way: Open = over_network
    ) -> None:
        self._clock = clock
        self._informers = Informers(control_plane, clock=clock)
        self._clusters = self._informers.of(Cluster.gvr)
        self._members = Members(
            self._informers, clock, user_agent=USER_AGENT, allow_insecure=allow_insecure, open_way=open_way
        )
        self._left_out: dict[str, float] = {}
        self._starting: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Also called by the first request."""
        if self._starting is None:
            self._starting = asyncio.create_task(self._start(), name="metrics adapter")
        await asyncio.shield(self._starting)

    async def _start(self) -> None:
        self._informers.start()
        await self._informers.wait_synced()
        await self._members.start()

    async def stop(self) -> None:
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.gather(self._starting, return_exceptions=True)  # nobody waits for it any more
            await self._members.stop()
            await self._informers.stop()

    def names(self) -> list[str]:
        now = self._clock.monotonic()
        ready = [meta.name(c) for c in self._clusters.list() if is_ready(c) and not meta.is_deleting(c)]
        return sorted(name for name in ready if self._left_out.get(name, now) <= now)

    async def get_all(self, paths: Mapping[str, str], query: Mapping[str, str]) -> list[Answer]:
        """Return the answers of the named clusters to a GET of the path of each, in the order of their names.

        Those that fail are left out.
        """
        found = await asyncio.gather(*(self.get(name, path, query) for name, path in sorted(paths.items())))
        return [answer for answer in found if answer is not None]

    async def get(self, name: str, path: str, query: Mapping[str, str]) -> Answer | None:
        """Return None for a cluster that fails. Names come from requests: none of them may lead to another path."""
        if not {".", ".."}.isdisjoint(path.split("/")):
            raise NotFound.resource()
        try:
            client = self._members.get(name).client
            body: Any = await with_timeout(self._clock, client.raw("GET", path, query=query), SECONDS)
        except (ConnectionFailed, TimeoutError) as error:
            self._left_out[name] = self._clock.monotonic() + LEFT_OUT_SECONDS
            log.info("A cluster does not respond and is left out", cluster=name, err=str(error))
            return None
        except (ApiError, NoAccess) as error:
            log.v(1).info("A cluster has no metrics", cluster=name, path=path, err=str(error))
            return None
        return Answer(name, body) if isinstance(body, dict) else None
