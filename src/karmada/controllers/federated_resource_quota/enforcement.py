"""Totals of FederatedResourceQuotas from the bindings, where the gate FederatedQuotaEnforcement has admission use them.

Admission adds to a total what a binding uses more; this controller subtracts what deleted bindings used, and corrects
what admission charged for a binding that was not stored after all, so that in the end every total is that of the stored
bindings. Besides Karmada's triggers, each change of a total or a binding is checked a few seconds later.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from karmada.api.policy import FederatedResourceQuota
from karmada.api.work import ResourceBinding
from karmada.controllers.context import Context
from karmada.controllers.federated_resource_quota.charges import (
    SETTLE_SECONDS,
    RecentCharges,
    Recount,
    corrected,
    same_charge,
)
from karmada.kube.objects import meta
from karmada.kube.objects.errors import ApiError, Conflict, NotFound
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch, requeue
from karmada.kube.runtime.events import NORMAL, WARNING
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.writes import patch_if_changed

QUOTA_ENFORCEMENT: Final = "federated-resource-quota-enforcement-controller"


def _charged_otherwise(old: Obj | None, new: Obj | None) -> bool:
    return not same_charge(old, new)


class QuotaEnforcement(Reconciler):
    name = QUOTA_ENFORCEMENT

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._recorder = context.recorder(self.name)
        self._period = context.settings.federated_resource_quota_sync_period
        self._quotas = context.informers.of(FederatedResourceQuota.gvr)
        self._recent = RecentCharges(context.clock)
        self._quotas.add_handler(self._recent.quota_changed)
        self._clock = context.clock
        self._bindings = context.informers.of(ResourceBinding.gvr)
        self._recount = Recount()
        self._bindings.add_handler(self._recount.binding_changed)
        self._renewed: dict[str, float] = {}
        """When the bindings of a namespace were last listed."""
        self.watches = (
            Watch(FederatedResourceQuota.gvr, changed=("spec.overall",)),
            Watch(FederatedResourceQuota.gvr, changed=("status.overallUsed",), after=SETTLE_SECONDS),
            Watch(ResourceBinding.gvr, on=("DELETED",), map_to=self._of_namespace),
            Watch(ResourceBinding.gvr, when=_charged_otherwise, map_to=self._of_namespace, after=SETTLE_SECONDS),
        )

    def _of_namespace(self, binding: Obj) -> Iterable[Key]:
        return self._quotas.keys(meta.namespace(binding))

    async def reconcile(self, key: Key) -> Result:
        quota = self._quotas.get(key)
        if quota is None or meta.is_deleting(quota):
            self._renewed.pop(key.namespace, None)
            return Done
        self._resync(key.namespace)
        recent = self._recent.of(key)
        try:
            written = await self._write(quota, corrected(quota, self._recount.of(key.namespace), recent))
        except NotFound:
            return Done
        except Conflict:
            raise
        except ApiError as error:
            self._recorder.event(quota, WARNING, "CollectOverallStatusFailed", str(error))
            raise
        if written:
            message = f"Collect status of FederatedResourceQuota({key}) succeed."
            self._recorder.event(quota, NORMAL, "CollectOverallStatusSucceed", message)
        return requeue(min(self._period, SETTLE_SECONDS) if recent else self._period)

    def _resync(self, namespace: str) -> None:
        now = self._clock.monotonic()
        if now - self._renewed.setdefault(namespace, now) >= self._period:
            self._recount.renew(namespace, self._bindings.list(namespace))
            self._renewed[namespace] = now

    async def _write(self, quota: Obj, used: Obj) -> bool:
        """Return whether it was needed.

        Only onto the version that the total was computed from: admission writes it, too.
        """
        overall = (quota.get("spec") or {}).get("overall") or {}
        status = {**(quota.get("status") or {}), "overall": overall, "overallUsed": used}
        wanted = {**quota, "status": status}
        gvr = FederatedResourceQuota.gvr
        written = await patch_if_changed(self._client, gvr, quota, wanted, subresource="status", locked=True)
        return written.outcome != "unchanged"
