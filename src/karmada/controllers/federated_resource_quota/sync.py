"""Static assignments of FederatedResourceQuotas: each is a ResourceQuota in its cluster, brought there by a Work.

Works are triggers as well: one that somebody changed or deleted is restored, and one whose quota went while no
controller ran is deleted at the next start. A quota needs no finalizer for that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from karmada.api import (
    well_known,
)
from karmada.api.cluster import Cluster
from karmada.api.policy import FederatedResourceQuota
from karmada.api.work import Work
from karmada.controllers.context import Context
from karmada.controllers.errors import raise_together
from karmada.controllers.federated_resource_quota.works import cluster_of, quotas_of
from karmada.controllers.indexes import WORKS_OF, of_quota, owners_of_work, traits_of_work
from karmada.controllers.works import Works
from karmada.kube.objects import meta
from karmada.kube.objects.errors import ApiError, Conflict
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch, walk_index
from karmada.kube.runtime.events import NORMAL, WARNING
from karmada.kube.runtime.keys import Key

QUOTA_SYNC: Final = "federated-resource-quota-sync-controller"
_BY_CLUSTER: Final = "assigned-cluster"


def assignments_of(quota: Obj) -> dict[str, Obj]:
    """Return the limits of each cluster; of several for one cluster the first counts."""
    found: dict[str, Obj] = {}
    for assignment in (quota.get("spec") or {}).get("staticAssignments") or ():
        found.setdefault(assignment["clusterName"], assignment.get("hard") or {})
    return found


def resource_quota(quota: Obj, hard: Obj) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"namespace": meta.namespace(quota), "name": meta.name(quota)},
        "spec": {"hard": hard},
    }


def _assigned_clusters(quota: Obj) -> Iterable[str]:
    return assignments_of(quota)


class QuotaSync(Reconciler):
    name = QUOTA_SYNC

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._recorder = context.recorder(self.name)
        self._quotas = context.informers.of(FederatedResourceQuota.gvr, indexes={_BY_CLUSTER: _assigned_clusters})
        self._clusters = context.informers.of(Cluster.gvr)
        self._works = context.informers.of(Work.gvr, indexes={WORKS_OF: owners_of_work})
        self._writer = Works(context)
        self.watches = (
            Watch(FederatedResourceQuota.gvr, changed=("spec.staticAssignments",)),
            Watch(Cluster.gvr, on=("ADDED",), walk=walk_index(self._quotas, _BY_CLUSTER, meta.name)),
            Watch(Work.gvr, having=(traits_of_work, well_known.QUOTA_NAME), changed=("spec",), map_to=quotas_of),
        )

    async def reconcile(self, key: Key) -> Result:
        quota = self._quotas.get(key)
        if quota is None:
            await self._withdraw(key, keep=())
            return Done
        assignments = assignments_of(quota)
        try:
            await self._withdraw(key, keep=assignments)
            await self._send_all(quota, assignments)
        except Conflict:
            raise
        except ApiError as error:
            self._recorder.event(quota, WARNING, "SyncWorkFailed", str(error))
            raise
        message = f"Sync works for FederatedResourceQuota({key}) succeed."
        self._recorder.event(quota, NORMAL, "SyncWorkSucceed", message)
        return Done

    async def _withdraw(self, key: Key, keep: Iterable[str]) -> None:
        """Delete the Works of clusters without an assignment."""
        found = [work for work in self._works.by_index(WORKS_OF, of_quota(key)) if cluster_of(work) not in keep]
        for work in found:
            if not meta.is_deleting(work):
                await self._writer.delete(work)

    async def _send_all(self, quota: Obj, assignments: dict[str, Obj]) -> None:
        """Send to all clusters; raise their errors as one."""
        calls = [self._send(quota, cluster, hard) for cluster, hard in assignments.items() if self._is_joined(cluster)]
        raise_together(await asyncio.gather(*calls, return_exceptions=True))

    async def _send(self, quota: Obj, cluster: str, hard: Obj) -> None:
        labels = {well_known.QUOTA_NAMESPACE: meta.namespace(quota), well_known.QUOTA_NAME: meta.name(quota)}
        await self._writer.ensure(cluster, resource_quota(quota, hard), labels=labels)

    def _is_joined(self, name: str) -> bool:
        cluster = self._clusters.get(Key("", name))
        return cluster is not None and not meta.is_deleting(cluster)
