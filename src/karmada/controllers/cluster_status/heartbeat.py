"""The heartbeat of a cluster in mode Pull: a Lease in the control plane that its agent renews.

It begins with the first pass that finds the cluster ready and goes on while the agent runs, also when the cluster is
not ready any more: that is reported in the status. The Lease belongs to the Cluster, so that it is deleted with it, and
is not written while the Cluster is not known. A renewal that fails is tried again at the next, and logged once.
"""

from __future__ import annotations

import asyncio
import random
from typing import Final

from karmada.api.cluster import Cluster
from karmada.api.well_known import NAMESPACE_CLUSTER
from karmada.controllers.context import Context
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects import meta
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvrs import LEASES
from karmada.kube.objects.times import micro_time
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.converge import converge
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.waiting import cancel_and_wait, with_timeout
from karmada.kube.runtime.writes import get_if_exists

_JITTER: Final = 0.04
log = get_logger("heartbeat")


class Heartbeat:
    def __init__(self, context: Context, *, lease_duration: float = 40.0, renew_fraction: float = 0.25) -> None:
        """Seconds, and the part of them after which the Lease is renewed."""
        self._client = context.client
        self._clock = context.clock
        self._clusters = context.informers.of(Cluster.gvr)
        self._duration = lease_duration
        self._period = lease_duration * renew_fraction
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._leases: dict[str, Obj | None] = {}
        """As they were last written, by the name of the cluster."""
        self._failing: set[str] = set()

    def begin(self, cluster: str) -> None:
        """Renew the Lease from now on, unless it is renewed already."""
        if cluster not in self._tasks:
            self._tasks[cluster] = asyncio.get_running_loop().create_task(self._run(cluster), name="heartbeat")

    def end(self, cluster: str) -> None:
        task = self._tasks.pop(cluster, None)
        if task is not None:
            task.cancel()
        self._leases.pop(cluster, None)
        self._failing.discard(cluster)

    async def stop(self) -> None:
        tasks, self._tasks = list(self._tasks.values()), {}
        await cancel_and_wait(*tasks)

    async def _run(self, cluster: str) -> None:
        while True:
            await self._beat(cluster)
            await self._clock.sleep(self._period * (1 + random.random() * _JITTER))

    async def _beat(self, cluster: str) -> None:
        try:
            await with_timeout(self._clock, self._renew(cluster), self._duration)
        except (ApiError, ConnectionFailed, TimeoutError) as error:
            self._leases.pop(cluster, None)
            if cluster not in self._failing:
                log.error("The lease of the cluster cannot be renewed", error, cluster=cluster)
            self._failing.add(cluster)
            return
        if cluster in self._failing:
            self._failing.discard(cluster)
            log.info("The lease of the cluster is renewed again", cluster=cluster)

    async def _renew(self, cluster: str) -> None:
        owner = self._clusters.get(Key("", cluster))
        if owner is None:
            return
        known = self._leases.get(cluster) or await self._live(cluster)

        async def make(current: Obj | None) -> Obj:
            return self._renewed(current, owner)

        written = await converge(make, known, self._put, lambda: self._live(cluster))
        self._leases[cluster] = written.object if written is not None else None

    def _renewed(self, lease: Obj | None, owner: Obj) -> Obj:
        name = meta.name(owner)
        current: Obj = lease or {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name, "namespace": NAMESPACE_CLUSTER},
        }
        metadata = current["metadata"]
        if not metadata.get("ownerReferences"):
            reference = {
                "apiVersion": Cluster.gvk.api_version,
                "kind": Cluster.gvk.kind,
                "name": name,
                "uid": meta.uid(owner),
            }
            metadata = {**metadata, "ownerReferences": [reference]}
        spec = {
            **(current.get("spec") or {}),
            "holderIdentity": name,
            "leaseDurationSeconds": int(self._duration),
            "renewTime": micro_time(self._clock.now()),
        }
        return {**current, "metadata": metadata, "spec": spec}

    async def _live(self, cluster: str) -> Obj | None:
        return await get_if_exists(self._client, LEASES, cluster, NAMESPACE_CLUSTER)

    async def _put(self, current: Obj | None, wanted: Obj) -> Obj:
        if current is None:
            return await self._client.create(LEASES, wanted)
        return await self._client.update(LEASES, wanted)
