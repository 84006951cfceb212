"""Status of FederatedResourceQuotas from the members: what each reports of its ResourceQuota, and the sum.

With the gate FederatedQuotaEnforcement the sum is that of the bindings and another controller's (see enforcement). This
one then sends nothing but the list of clusters, so that neither overwrites the other.
"""

from __future__ import annotations

from typing import Final

from karmada.api import well_known
from karmada.api.policy import FederatedResourceQuota
from karmada.api.work import Work
from karmada.controllers.context import Context
from karmada.controllers.federated_resource_quota.works import cluster_of, quotas_of
from karmada.controllers.indexes import WORKS_OF, of_quota, owners_of_work, traits_of_work
from karmada.kube.kinds import checks
from karmada.kube.objects import meta
from karmada.kube.objects.errors import ApiError, NotFound
from karmada.kube.objects.quantity import ZERO, Quantity
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch
from karmada.kube.runtime.events import NORMAL, WARNING
from karmada.kube.runtime.keys import (
    Key,
    key_of,
)
from karmada.kube.runtime.writes import patch_if_changed

QUOTA_STATUS: Final = "federated-resource-quota-status-controller"
GATE: Final = "FederatedQuotaEnforcement"


def cluster_status(work: Obj) -> Obj | None:
    """Return what a cluster reports of its ResourceQuota; None while it is not applied or nothing is reported."""
    status = work.get("status") or {}
    reported = status.get("manifestStatuses") or ()
    if not meta.has_condition(status.get("conditions"), "Applied") or not reported:
        return None
    found = reported[0].get("status") or {}
    return {"clusterName": cluster_of(work), "hard": found.get("hard") or {}, "used": found.get("used") or {}}


def sum_of(clusters: list[Obj]) -> Obj:
    """Return what is used in all clusters together, whether the whole is limited or not."""
    used: dict[str, Quantity] = {}
    for cluster in clusters:
        for name, amount in cluster["used"].items():
            used[name] = used.get(name, ZERO) + (checks.quantity(amount) or ZERO)
    return {name: str(amount) for name, amount in used.items()}


class QuotaStatus(Reconciler):
    name = QUOTA_STATUS
    watches = (
        Watch(FederatedResourceQuota.gvr, on=("ADDED", "MODIFIED")),
        Watch(
            Work.gvr,
            on=("MODIFIED", "DELETED"),
            having=(traits_of_work, well_known.QUOTA_NAME),
            changed=("status",),
            map_to=quotas_of,
        ),
    )

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._recorder = context.recorder(self.name)
        self._sums = not context.gates.enabled(GATE)
        self._quotas = context.informers.of(FederatedResourceQuota.gvr)
        self._works = context.informers.of(Work.gvr, indexes={WORKS_OF: owners_of_work})

    async def reconcile(self, key: Key) -> Result:
        quota = self._quotas.get(key)
        if quota is None or meta.is_deleting(quota):
            return Done
        status = {**(quota.get("status") or {}), **self._reported(quota)}
        try:
            written = await patch_if_changed(
                self._client, FederatedResourceQuota.gvr, quota, {**quota, "status": status}, subresource="status"
            )
        except NotFound:
            return Done
        except ApiError as error:
            self._recorder.event(quota, WARNING, "AggregateStatusFailed", str(error))
            raise
        if written.outcome != "unchanged":
            message = f"Collect status of FederatedResourceQuota({key}) succeed."
            self._recorder.event(quota, NORMAL, "AggregateStatusSucceed", message)
        return Done

    def _reported(self, quota: Obj) -> Obj:
        works = self._works.by_index(WORKS_OF, of_quota(key_of(quota)))
        clusters = [found for work in works if (found := cluster_status(work)) is not None]
        clusters.sort(key=lambda found: str(found["clusterName"]))
        if not self._sums:
            return {"aggregatedStatus": clusters}
        overall = (quota.get("spec") or {}).get("overall") or {}
        return {"overall": overall, "overallUsed": sum_of(clusters), "aggregatedStatus": clusters}
