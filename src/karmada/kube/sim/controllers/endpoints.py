"""Endpoints controller: the predecessor of EndpointSlices, one object with the Service's name.

A subset is a set of addresses that share their ports. Terminating pods are left out, unless the Service publishes
unready addresses. An object holds at most a thousand addresses and says so when it had to leave some out.
"""

from __future__ import annotations

from collections.abc import Sequence

from karmada.kube.objects.errors import AlreadyExists, ApiError, Conflict
from karmada.kube.objects.gvrs import ENDPOINTS, PODS, SERVICES
from karmada.kube.objects.meta import is_deleting
from karmada.kube.objects.podstate import is_ready, node_name
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch, requeue
from karmada.kube.runtime.events import WARNING
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.writes import delete_if_exists
from karmada.kube.sim.context import Context
from karmada.kube.sim.controllers.pacing import Pacing
from karmada.kube.sim.controllers.podcontrol import is_namespace_ending
from karmada.kube.sim.controllers.service_pods import (
    HEADLESS,
    TRIGGER_TIME,
    ServicePods,
    address_in,
    families,
    hostname_in,
    is_headless,
    matters_to_endpoints,
    matters_to_services,
    ports_in,
    publishes_unready,
    reference_to,
    selector_of,
    trigger_time,
)

MANAGED_BY, MANAGER = "endpoints.kubernetes.io/managed-by", "endpoint-controller"
OVER_CAPACITY = "endpoints.kubernetes.io/over-capacity"
MOST = 1000
_READY, _UNREADY = "addresses", "notReadyAddresses"


def is_ours(endpoints: Obj) -> bool:
    return (endpoints["metadata"].get("labels") or {}).get(MANAGED_BY) == MANAGER


def _shape(endpoints: Obj) -> tuple[object, ...]:
    metadata = endpoints["metadata"]
    over = (metadata.get("annotations") or {}).get(OVER_CAPACITY)
    return endpoints.get("subsets") or [], metadata.get("labels"), over


def subsets_of(service: Obj, pods: Sequence[Obj]) -> list[Obj]:
    """Addresses by the ports they have; one with several ports appears once where all its ports do."""
    found: dict[tuple[object, ...], Obj] = {}
    wanted = families(service)[0]
    for pod in pods:
        address = address_in(pod, wanted)
        ports = ports_in(pod, service)
        portless = not (service.get("spec") or {}).get("ports")
        if address is None or (not ports and not portless):
            continue
        key = tuple(tuple(port.items()) for port in ports)
        subset = found.setdefault(key, {_READY: [], _UNREADY: [], "ports": ports})
        ready = publishes_unready(service) or is_ready(pod)
        subset[_READY if ready else _UNREADY].append(_address(service, pod, address))
    return [_tidy(subset) for subset in found.values()]


def _address(service: Obj, pod: Obj, address: str) -> Obj:
    found: Obj = {"ip": address, "targetRef": reference_to(pod)}
    if node_name(pod):
        found["nodeName"] = node_name(pod)
    hostname = hostname_in(pod, service)
    if hostname:
        found["hostname"] = hostname
    return found


def _tidy(subset: Obj) -> Obj:
    """Without what is empty; a port's name is only given where there is one."""
    kept = {key: value for key, value in subset.items() if value}
    if "ports" in kept:
        kept["ports"] = [{key: value for key, value in port.items() if value != ""} for port in kept["ports"]]
    return kept


def truncate(subsets: Sequence[Obj], most: int = MOST) -> tuple[list[Obj], bool]:
    """At most so many addresses, ready ones first; and whether any had to be left out."""
    total = sum(len(subset.get(kind, ())) for subset in subsets for kind in (_READY, _UNREADY))
    if total <= most:
        return list(subsets), False
    kept: list[Obj] = [dict(subset) for subset in subsets]
    left = most
    for kind in (_READY, _UNREADY):
        for subset in kept:
            addresses = subset.pop(kind, [])[:left]
            left -= len(addresses)
            if addresses:
                subset[kind] = addresses
    return [subset for subset in kept if subset.get(_READY) or subset.get(_UNREADY)], True


class LegacyEndpoints(Reconciler):
    name = "endpoints"
    workers = 4

    def __init__(self, context: Context) -> None:
        self._context = context
        self._client = context.client()
        self._pods_of = ServicePods(context.informers)
        self._endpoints = context.informers.of(ENDPOINTS)
        self._recorder = context.recorder("endpoint-controller")
        self._pacing = Pacing(context.clock)
        self.watches = (
            Watch(SERVICES, when=matters_to_endpoints),
            Watch(PODS, when=matters_to_services, map_to=self._pods_of.services_of),
            Watch(ENDPOINTS, when=self._changed),
        )

    def _changed(self, old: Obj | None, new: Obj | None) -> bool:
        if not any(obj is not None and is_ours(obj) for obj in (old, new)):
            return False
        return old is None or new is None or _shape(old) != _shape(new)

    async def reconcile(self, key: Key) -> Result:
        wait = self._pacing.left(key)
        if wait > 0:
            return requeue(wait)
        service = self._pods_of.services.get(key)
        current = self._endpoints.get(key)
        if service is None:
            if current is not None:
                await delete_if_exists(self._client, ENDPOINTS, *reversed(key), uid=current["metadata"]["uid"])
        elif selector_of(service):
            await self._converge(service, current)
        self._pacing.done(key)
        return Done

    async def _converge(self, service: Obj, current: Obj | None) -> None:
        wanted = self._wanted(service, current)
        if current is not None and _shape(wanted) == _shape(current):
            return
        try:
            if current is None:
                written = await self._client.create(ENDPOINTS, wanted)
            else:
                written = await self._client.update(ENDPOINTS, wanted)
        except (Conflict, AlreadyExists):
            raise
        except ApiError as error:
            if is_namespace_ending(error):
                return
            metadata = service["metadata"]
            where = f"{metadata['namespace']}/{metadata['name']}"
            reason = "FailedToCreateEndpoint" if current is None else "FailedToUpdateEndpoint"
            verb = "create" if current is None else "update"
            message = f"Failed to {verb} endpoint for service {where}: {error.message}"
            self._recorder.event(service, WARNING, reason, message)
            raise
        self._endpoints.wrote(written)
        await self._context.until_seen(self._endpoints, [written])

    def _wanted(self, service: Obj, current: Obj | None) -> Obj:
        unready = publishes_unready(service)
        pods = [pod for pod in self._pods_of.pods_of(service) if unready or not is_deleting(pod)]
        subsets, truncated = truncate(subsets_of(service, pods))
        own = service["metadata"]
        metadata = dict(current["metadata"]) if current is not None else {"name": own["name"]}
        metadata["namespace"] = own["namespace"]
        labels = {label: value for label, value in (own.get("labels") or {}).items() if label != HEADLESS}
        metadata["labels"] = {**labels, **({HEADLESS: ""} if is_headless(service) else {}), MANAGED_BY: MANAGER}
        annotations = {k: v for k, v in (metadata.get("annotations") or {}).items() if k != OVER_CAPACITY}
        annotations[TRIGGER_TIME] = trigger_time(service, pods)
        metadata["annotations"] = annotations | ({OVER_CAPACITY: "truncated"} if truncated else {})
        made: Obj = {"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata}
        return {**made, "subsets": subsets} if subsets else made
