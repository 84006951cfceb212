"""Whether the nodes of a cluster resolve the names of Services: each says so of itself, one says so of the cluster.

On every node the name of the API server's Service is resolved again and again; the result is a condition of the Node.
The leader of these processes makes of all nodes' conditions one of the Cluster, by which a Remedy or a
ClusterTaintPolicy may act.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from karmada.api.cluster import Cluster
from karmada.kube.client import cluster_names
from karmada.kube.client.client import Client
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects import meta
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.errors import ApiError, NotFound
from karmada.kube.objects.gvrs import NODES
from karmada.kube.objects.shapes import Shape
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.events import WARNING, EventRecorder
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.periodic import Periodic
from karmada.kube.runtime.writes import retry_on_conflict, set_status
from karmada.problemdetector.rules import (
    CONDITION,
    FAILED,
    READY,
    Observation,
    Seen,
    Thresholds,
    cluster_condition,
    damped,
    node_condition,
)

DETECTOR: Final = "coredns-detector"
NAME: Final = "kubernetes.default"
_PORT: Final = 443
_REPORTED: Final = frozenset({"Ready", CONDITION})
log = get_logger(DETECTOR)

Resolve: TypeAlias = Callable[[str], Awaitable[object]]
"""Resolve a name; OSError if that fails."""


async def resolve(name: str) -> object:
    """As any program of the node does; in processes of simulated clusters by their names."""
    if cluster_names.enabled():
        found = cluster_names.lookup(name, _PORT)
        if not found:
            raise OSError(f"lookup {name}: no such host")
        return found
    return await asyncio.get_running_loop().getaddrinfo(name, None)


async def observe(resolve: Resolve) -> Observation:
    try:
        await resolve(NAME)
    except OSError as error:
        return Observation("False", FAILED, str(error))
    return Observation("True", READY, "")


class NodeDetector(Periodic):
    """Has the condition of one Node; failures to read or write it are events about `pod`."""

    name = DETECTOR

    def __init__(
        self,
        client: Client,
        node: str,
        recorder: EventRecorder,
        clock: Clock,
        *,
        period: float,
        thresholds: Thresholds,
        pod: Obj | None = None,
        resolve: Resolve = resolve,
    ) -> None:
        super().__init__(self.name, self.once, period, clock, at_once=True)
        self.clock = clock
        self._client = client
        self._node = node
        self._recorder = recorder
        self._thresholds = thresholds
        self._pod = pod
        self._resolve = resolve
        self._seen: Seen | None = None

    async def once(self) -> None:
        observed = await observe(self._resolve)
        try:
            node = await self._client.get(NODES, self._node)
        except (ApiError, ConnectionFailed) as error:
            self._warn("LoadCorednsConditionFailed", error)
            return
        current = meta.get_condition((node.get("status") or {}).get("conditions"), CONDITION)
        now = self.clock.now()
        self._seen, wanted = damped(self._seen, observed, current, now, self._thresholds)
        patch = {"status": {"conditions": [node_condition(current, wanted, now)]}}
        try:
            await self._client.patch(NODES, self._node, "", patch, type="strategic", subresource="status")
        except (ApiError, ConnectionFailed) as error:
            self._warn("StoreCorednsConditionFailed", error)

    def _warn(self, reason: str, error: Exception) -> None:
        log.warning("The condition of the node is not up to date", node=self._node, error=str(error))
        if self._pod is not None:
            self._recorder.event(self._pod, WARNING, reason, str(error))


class ClusterReporter(Periodic):
    """The leader's part: the condition of the Cluster in the control plane, from those of the nodes."""

    name = f"{DETECTOR}-leader"

    def __init__(
        self, client: Client, control_plane: Client, cluster: str, clock: Clock, *, period: float, stale: float
    ) -> None:
        super().__init__(self.name, self.once, period, clock, at_once=True)
        self.clock = clock
        self._control_plane = control_plane
        self._cluster = cluster
        self._stale = stale
        self._informers = Informers(client, clock=clock)
        self._nodes = self._informers.of(NODES, shape=Shape.summary(_slim))

    async def start(self) -> None:
        self._informers.start()
        await super().start()

    async def stop(self) -> None:
        await super().stop()
        await self._informers.stop()

    async def once(self) -> None:
        await self._nodes.wait_synced()
        condition = cluster_condition(self._nodes.list(), self.clock.now(), self._stale)
        if condition is None:
            return
        try:
            await retry_on_conflict(lambda: self._report(condition), clock=self.clock)
        except (ApiError, ConnectionFailed) as error:
            log.warning("The condition of the cluster is not up to date", cluster=self._cluster, error=str(error))

    async def _report(self, condition: Obj) -> None:
        try:
            cluster = await self._control_plane.get(Cluster.gvr, self._cluster)
        except NotFound:
            return
        if meta.is_deleting(cluster):
            return
        status = cluster.get("status") or {}
        conditions = meta.set_condition(status.get("conditions"), condition, self.clock.now())
        await set_status(self._control_plane, Cluster.gvr, cluster, {**status, "conditions": conditions})


def _slim(node: Obj) -> Obj:
    """Return what is kept of a Node: the two conditions that count."""
    conditions = (node.get("status") or {}).get("conditions") or ()
    metadata = {field: node["metadata"][field] for field in ("name", "uid", "resourceVersion")}
    return {"metadata": metadata, "status": {"conditions": [c for c in conditions if c.get("type") in _REPORTED]}}
