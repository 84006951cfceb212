"""ResourceQuota controller: writes the limits and the usage of each quota into its status.

Only resources that some quota limits are followed, from the moment one does; a cluster without quotas keeps none of
this in memory. Changes of objects go into the ledgers as events arrive, the status is written a moment later, so that
a burst of pods is one write. Admission takes the larger of this status and what it sees itself: a status that lags
behind never admits too much, it only frees what was deleted a little later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from karmada.kube.client.discovery import NoMatch
from karmada.kube.kinds.quota_ledger import DETAILED, Ledger, hard_of, resources_of
from karmada.kube.objects.gvk import GVR, GroupResource
from karmada.kube.objects.gvrs import QUOTAS
from karmada.kube.objects.shapes import METADATA
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch, requeue
from karmada.kube.runtime.event_filter import Handler
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.waiting import with_timeout
from karmada.kube.runtime.writes import set_status
from karmada.kube.sim.context import Context
from karmada.kube.sim.controllers.pacing import Pacing

RESYNC_SECONDS = 300.0
PACE_SECONDS = 0.02
_SYNC_SECONDS = 10.0


class ResourceQuotas(Reconciler):
    name = "resourcequota"
    watches = (Watch(QUOTAS),)
    workers = 2

    def __init__(self, context: Context) -> None:
        self._context = context
        self._client = context.client()
        self._quotas = context.informers.of(QUOTAS)
        self._pacing = Pacing(context.clock, PACE_SECONDS)
        self._followed: dict[GroupResource, Informer] = {}
        self._ledgers: dict[str, dict[Key, Ledger]] = {}
        """Ledgers by namespace."""
        self._enqueue: Callable[[Key], None] = _not_attached

    def attach(self, add: Callable[[Key], None]) -> None:
        """`add` enqueues a quota; the handlers of the watched objects call it."""
        self._enqueue = add

    async def reconcile(self, key: Key) -> Result:
        quota = self._quotas.get(key)
        if quota is None:
            self._forget(key)
            return Done
        ledger = self._ledgers.get(key.namespace, {}).get(key)
        if ledger is None or not self._is_good(ledger, quota):
            ledger = await self._open(key, quota)
        elif ledger.used() != (quota.get("status") or {}).get("used"):
            wait = self._pacing.left(key)
            if wait > 0:
                return requeue(wait)
        status = {"hard": dict(hard_of(quota)), "used": ledger.used()}
        written = await set_status(self._client, QUOTAS, quota, status)
        await self._context.until_seen(self._quotas, [written.object])
        self._pacing.done(key)
        return requeue(ledger.counted_at + RESYNC_SECONDS - self._context.clock.monotonic())

    def _is_good(self, ledger: Ledger, quota: Obj) -> bool:
        if ledger.uid != quota["metadata"]["uid"] or ledger.spec != (quota.get("spec") or {}):
            return False
        return ledger.counted_at + RESYNC_SECONDS > self._context.clock.monotonic()

    def _forget(self, key: Key) -> None:
        self._pacing.done(key)
        ledgers = self._ledgers.get(key.namespace)
        if ledgers is not None:
            ledgers.pop(key, None)
            if not ledgers:
                del self._ledgers[key.namespace]

    async def _open(self, key: Key, quota: Obj) -> Ledger:
        """Count everything. Nothing is awaited from here on, so that no change is missed between count and ledger."""
        informers = {}
        for resource in sorted(resources_of(quota)):
            informer = await self._follow(resource)
            if informer is not None:
                informers[resource] = informer
        objects = {resource: informer.list(key.namespace) for resource, informer in informers.items()}
        ledger = Ledger(quota, objects, self._context.clock.monotonic())
        self._ledgers.setdefault(key.namespace, {})[key] = ledger
        return ledger

    # what is followed

    async def _follow(self, resource: GroupResource) -> Informer | None:
        """Return a synced informer of the resource; None when the server has no such resource."""
        informer = self._followed.get(resource)
        if informer is None:
            gvr = await self._served(resource)
            if gvr is None:
                return None
            informer = self._context.informers.of(gvr, shape=None if resource in DETAILED else METADATA)
            informer.start()
            if resource not in self._followed:
                self._followed[resource] = informer
                informer.add_handler(self._handler(resource))
        if not informer.synced:
            await with_timeout(self._context.clock, informer.wait_synced(), _SYNC_SECONDS)
        return informer

    async def _served(self, resource: GroupResource) -> GVR | None:
        if not resource.group:
            return GVR("", "v1", resource.resource)
        try:
            return (await self._client.mapper.kind_of(resource)).gvr
        except NoMatch:
            return None

    def _handler(self, resource: GroupResource) -> Handler:
        def changed(old: Obj | None, new: Obj | None) -> None:
            obj = new if new is not None else old
            if obj is None or not self._ledgers:
                return
            for key in self._changed_in(key_of(obj).namespace, resource, old, new):
                self._enqueue(key)

        return changed

    def _changed_in(self, namespace: str, resource: GroupResource, old: Obj | None, new: Obj | None) -> Iterable[Key]:
        ledgers = self._ledgers.get(namespace)
        return [key for key, ledger in ledgers.items() if ledger.change(resource, old, new)] if ledgers else ()


def _not_attached(key: Key) -> None:
    raise RuntimeError(f"{key} cannot be requeued: the reconciler is not attached to a controller")
