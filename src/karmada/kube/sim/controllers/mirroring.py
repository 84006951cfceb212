"""EndpointSlice mirroring: Endpoints that a user made for a Service without selector are mirrored into EndpointSlices.

Consumers read slices only; this keeps hand-made Endpoints working. Endpoints that opt out of mirroring, those used
as a lock for leader election, and those of Services with a selector (whose slices are made from pods) are left out.
"""

from __future__ import annotations

from collections.abc import Iterator

from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvrs import ENDPOINTS, SERVICES
from karmada.kube.objects.meta import annotations as annotations_of
from karmada.kube.objects.meta import is_deleting
from karmada.kube.objects.meta import labels as labels_of
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch, requeue
from karmada.kube.runtime.keys import Key
from karmada.kube.sim.context import Context
from karmada.kube.sim.controllers.pacing import Pacing
from karmada.kube.sim.controllers.podcontrol import is_namespace_ending
from karmada.kube.sim.controllers.service_pods import TRIGGER_TIME, family, matters_to_endpoints, selector_of
from karmada.kube.sim.controllers.slice_store import SliceStore
from karmada.kube.sim.controllers.slices import MANAGED_BY, SERVICE_NAME, group_up

MANAGER = "endpointslicemirroring-controller.k8s.io"
SKIP = "endpointslice.kubernetes.io/skip-mirror"
LEADER = "control-plane.alpha.kubernetes.io/leader"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
MOST = 1000
"""At most so many addresses of a subset are mirrored."""
_NOT_COPIED = frozenset({LAST_APPLIED, TRIGGER_TIME})
_RESERVED = frozenset({SERVICE_NAME, MANAGED_BY})


def is_mirrored(endpoints: Obj | None, service: Obj | None) -> bool:
    if endpoints is None or service is None or is_deleting(endpoints) or is_deleting(service):
        return False
    if labels_of(endpoints).get(SKIP) == "true" or LEADER in annotations_of(endpoints):
        return False
    return not selector_of(service) and (service.get("spec") or {}).get("type") != "ExternalName"


def entries_of(endpoints: Obj) -> Iterator[tuple[str, list[Obj], Obj]]:
    for subset in endpoints.get("subsets") or ():
        ports = [{"name": port.get("name") or "", **port} for port in subset.get("ports") or ()]
        both = [(True, a) for a in subset.get("addresses") or ()]
        both += [(False, a) for a in subset.get("notReadyAddresses") or ()]
        for ready, address in both[:MOST]:
            endpoint: Obj = {"addresses": [address["ip"]], "conditions": {"ready": ready}}
            endpoint |= {key: address[key] for key in ("hostname", "nodeName", "targetRef") if address.get(key)}
            yield family(address["ip"]), ports, endpoint


class EndpointMirroring(Reconciler):
    name = "endpointslicemirroring"
    workers = 2

    def __init__(self, context: Context) -> None:
        self._endpoints = context.informers.of(ENDPOINTS)
        self._services = context.informers.of(SERVICES)
        self._store = SliceStore(context, MANAGER)
        self._pacing = Pacing(context.clock)
        self.watches = (Watch(ENDPOINTS), Watch(SERVICES, when=matters_to_endpoints), self._store.watch)

    async def reconcile(self, key: Key) -> Result:
        endpoints, service = self._endpoints.get(key), self._services.get(key)
        if endpoints is not None and is_mirrored(endpoints, service):
            wait = self._pacing.left(key)
            if wait > 0:
                return requeue(wait)
            await self._converge(key, endpoints)
        else:
            await self._store.remove(key)
        self._pacing.done(key)
        return Done

    async def _converge(self, key: Key, endpoints: Obj) -> None:
        try:
            await self._store.converge(
                key,
                endpoints,
                group_up(entries_of(endpoints)),
                labels={k: v for k, v in labels_of(endpoints).items() if k not in _RESERVED},
                annotations={k: v for k, v in annotations_of(endpoints).items() if k not in _NOT_COPIED},
                trigger=annotations_of(endpoints).get(TRIGGER_TIME, ""),
            )
        except ApiError as error:
            if not is_namespace_ending(error):
                raise
