"""Cluster monitor: marks Pull clusters Unknown that stop reporting.

The agent of a Pull cluster posts the cluster's condition Ready and renews a Lease. Either is a heartbeat, counted from
the moment it is observed here: clocks of clusters are not trusted, and after a restart every cluster has the full grace
period again. A cluster without a heartbeat for the grace period becomes Unknown; one that never had any gets the longer
startup grace period, from its creation on. Push clusters are probed by the control plane and not handled here.

There is no loop over all clusters: each has one deadline, and is reconciled when it passes or at a heartbeat.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from karmada.api.cluster import Cluster
from karmada.api.well_known import NAMESPACE_CLUSTER
from karmada.controllers.cluster_state import is_pull, ready_condition
from karmada.controllers.context import Context
from karmada.kube.objects import meta
from karmada.kube.objects.gvrs import LEASES
from karmada.kube.objects.times import parse_time
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch, requeue
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.writes import set_status

NEVER_UPDATED: Final = {
    "type": "Ready",
    "status": "Unknown",
    "reason": "ClusterStatusNeverUpdated",
    "message": "Cluster status controller never posted cluster status.",
}
UNKNOWN: Final = {
    "type": "Ready",
    "status": "Unknown",
    "reason": "ClusterStatusUnknown",
    "message": "Cluster status controller stopped posting cluster status.",
}


@dataclass(slots=True)
class Health:
    """The last heartbeat: when it was observed, and what it was."""

    observed: float
    ready: Obj | None = None
    renewed: str = ""
    """When the Lease was last renewed, as it says itself; "" when none was seen since Ready last changed."""


def observe(health: Health | None, ready: Obj | None, lease: Obj | None, now: float, created: float) -> Health:
    """Return the last heartbeat of a cluster, from its condition Ready and its Lease.

    `now` and `created`, the moment it was created, are of a clock that never jumps. The agent's may be set back: a
    Lease that was renewed is a sign of life whatever time it names.
    """
    if ready is None:
        health = Health(created) if health is None else Health(health.observed, None, health.renewed)
    elif health is None or health.ready != ready:
        health = Health(now, ready)
    renewed = ((lease or {}).get("spec") or {}).get("renewTime") or ""
    if renewed and renewed != health.renewed:
        health = Health(now, ready, renewed)
    return health


class ClusterMonitor(Reconciler):
    name = "cluster-monitor"

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._clock = context.clock
        self._settings = context.settings
        self._clusters = context.informers.of(Cluster.gvr)
        self._leases = context.informers.of(LEASES, NAMESPACE_CLUSTER)
        self._health: dict[str, Health] = {}
        self.watches = (
            Watch(Cluster.gvr, when=_reported),
            Watch(LEASES, changed=("spec.renewTime",), map_to=self._cluster_of, namespace=NAMESPACE_CLUSTER),
        )

    def _cluster_of(self, lease: Obj) -> Iterable[Key]:
        key = Key("", lease["metadata"]["name"])
        cluster = self._clusters.get(key)
        return (key,) if cluster is not None and is_pull(cluster) else ()

    @property
    def known(self) -> set[str]:
        """Return the clusters that it keeps a heartbeat of."""
        return set(self._health)

    async def reconcile(self, key: Key) -> Result:
        cluster = self._clusters.get(key)
        if cluster is None or not is_pull(cluster):
            self._health.pop(key.name, None)
            return Done
        now = self._clock.monotonic()
        created = now - max(0.0, self._clock.now() - parse_time(meta.creation_time(cluster)))
        lease = self._leases.get(Key(NAMESPACE_CLUSTER, key.name))
        health = observe(self._health.get(key.name), ready_condition(cluster), lease, now, created)
        self._health[key.name] = health
        if health.ready is not None and health.ready.get("status") == "Unknown":
            return Done
        never = health.ready is None
        settings = self._settings
        grace = settings.cluster_startup_grace_period if never else settings.cluster_monitor_grace_period
        remaining = health.observed + grace - now
        if remaining > 0:
            return requeue(remaining)
        await self._mark_unknown(cluster, NEVER_UPDATED if never else UNKNOWN)
        return Done

    async def _mark_unknown(self, cluster: Obj, condition: Obj) -> None:
        status = cluster.get("status") or {}
        conditions = meta.set_condition(status.get("conditions"), condition, self._clock.now())
        await set_status(self._client, Cluster.gvr, cluster, {**status, "conditions": conditions})


def _reported(old: Obj | None, new: Obj | None) -> bool:
    """Return whether a cluster in mode Pull came, went, is ready otherwise than before, or has another mode."""
    if not any(cluster is not None and is_pull(cluster) for cluster in (old, new)):
        return False
    return old is None or new is None or _state(old) != _state(new)


def _state(cluster: Obj) -> object:
    return ready_condition(cluster), (cluster.get("spec") or {}).get("syncMode")
