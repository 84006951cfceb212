"""MultiClusterServices of type LoadBalancer: their status has the addresses of the Service in all members.

The Service's own status has them already, put together from its clusters. A load balancer before those of the clusters
is somebody else's to run: addresses that another manager of the field has set (managedFields) are left as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from karmada.api.networking import MultiClusterService
from karmada.controllers.context import Context
from karmada.kube.objects import meta
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvrs import SERVICES
from karmada.kube.objects.shapes import METADATA
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.writes import set_status

LOAD_BALANCER_STATUS: Final = "multiclusterservice-load-balancer"


def is_balanced(service: Obj) -> bool:
    return "LoadBalancer" in ((service.get("spec") or {}).get("types") or ())


def address_managers(service: Obj) -> frozenset[str]:
    """Who has set addresses in the status."""
    entries = meta.metadata(service).get("managedFields") or ()
    return frozenset(entry.get("manager", "") for entry in entries if _has_addresses(entry.get("fieldsV1") or {}))


def _has_addresses(fields: Obj) -> bool:
    return "f:ingress" in ((fields.get("f:status") or {}).get("f:loadBalancer") or {})


class LoadBalancerStatus(Reconciler):
    name = LOAD_BALANCER_STATUS

    def __init__(self, context: Context) -> None:
        self._client = context.connect(LOAD_BALANCER_STATUS)
        self._managers = frozenset({LOAD_BALANCER_STATUS, context.client.field_manager})
        """Whose addresses are ours: the second is that of stores which earlier versions wrote."""
        self._services = context.informers.of(MultiClusterService.gvr)
        self.watches = (
            Watch(MultiClusterService.gvr, changed=("spec",)),
            Watch(SERVICES, shape=METADATA, map_to=self._of_service),
        )

    def _of_service(self, service: Obj) -> Iterable[Key]:
        found = self._services.get(key_of(service))
        return (key_of(service),) if found is not None and is_balanced(found) else ()

    async def reconcile(self, key: Key) -> Result:
        service = self._services.get(key)
        if service is None or meta.is_deleting(service) or not is_balanced(service):
            return Done
        wanted, status = await self._addresses(key), service.get("status") or {}
        balancer = {"ingress": wanted} if wanted else {}
        if status.get("loadBalancer") != balancer and await self._may_write(key):
            await set_status(self._client, MultiClusterService.gvr, service, {**status, "loadBalancer": balancer})
        return Done

    async def _may_write(self, key: Key) -> bool:
        """Return whether the addresses are not set, or by us; informers keep no managedFields, so it is read."""
        try:
            service = await self._client.get(MultiClusterService.gvr, key.name, key.namespace)
        except NotFound:
            return False
        return address_managers(service) <= self._managers

    async def _addresses(self, key: Key) -> list[Obj]:
        """Return the addresses of the Service's load balancers in all members."""
        try:
            service = await self._client.get(SERVICES, key.name, key.namespace)
        except NotFound:
            return []
        return ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
