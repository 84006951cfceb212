"""EndpointSlice controller: the pods behind each Service with a selector, as slices of at most a hundred endpoints.

All pods that have an address are listed; whether traffic should go to one is in its conditions. A terminating pod is
never ready but may still serve. Changes are gathered for a few milliseconds, so that a rollout does not write a slice
per pod. The slices are owned by their Service and go with it.
"""

from __future__ import annotations

from collections.abc import Iterator

from karmada.kube.objects.errors import ApiError, Conflict
from karmada.kube.objects.gvrs import NODES, PODS, SERVICES
from karmada.kube.objects.meta import is_deleting
from karmada.kube.objects.podstate import is_ready, node_name
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch, requeue
from karmada.kube.runtime.events import WARNING
from karmada.kube.runtime.keys import Key
from karmada.kube.sim.context import Context
from karmada.kube.sim.controllers.pacing import Pacing
from karmada.kube.sim.controllers.podcontrol import BY_NODE, index_by_node, is_namespace_ending
from karmada.kube.sim.controllers.service_pods import (
    HEADLESS,
    ZONE,
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
from karmada.kube.sim.controllers.slice_store import SliceStore
from karmada.kube.sim.controllers.slices import MANAGED_BY, SERVICE_NAME, group_up

MANAGER = "endpointslice-controller.k8s.io"
_RESERVED = frozenset({HEADLESS, SERVICE_NAME, MANAGED_BY})
_NEAR_ZONE = frozenset({"PreferClose", "PreferSameZone", "PreferSameNode"})


def zone_of(node: Obj | None) -> str:
    return str(((node or {}).get("metadata", {}).get("labels") or {}).get(ZONE) or "")


def _zone_changed(old: Obj | None, new: Obj | None) -> bool:
    return zone_of(old) != zone_of(new)


class EndpointSlices(Reconciler):
    name = "endpointslice"
    workers = 4

    def __init__(self, context: Context) -> None:
        self._pods_of = ServicePods(context.informers)
        self._pods_of.pods.add_index(BY_NODE, index_by_node)
        self._nodes = context.informers.of(NODES)
        self._store = SliceStore(context, MANAGER)
        self._recorder = context.recorder("endpoint-slice-controller")
        self._pacing = Pacing(context.clock)
        self.watches = (
            Watch(SERVICES, when=matters_to_endpoints),
            Watch(PODS, when=matters_to_services, map_to=self._pods_of.services_of),
            Watch(NODES, when=_zone_changed, map_to=self._services_on),
            self._store.watch,
        )

    def _services_on(self, node: Obj) -> Iterator[Key]:
        for pod in self._pods_of.pods.by_index(BY_NODE, node["metadata"]["name"]):
            yield from self._pods_of.services_of(pod)

    async def reconcile(self, key: Key) -> Result:
        wait = self._pacing.left(key)
        if wait > 0:
            return requeue(wait)
        service = self._pods_of.services.get(key)
        if service is not None and selector_of(service) and not is_deleting(service):
            try:
                await self._converge(key, service)
            except Conflict:
                raise
            except ApiError as error:
                if not is_namespace_ending(error):
                    self._emit(service, error)
                    raise
        self._pacing.done(key)
        return Done

    def _emit(self, service: Obj, error: ApiError) -> None:
        metadata = service["metadata"]
        where = f"{metadata['namespace']}/{metadata['name']}"
        message = f"Error updating Endpoint Slices for Service {where}: {error.message}"
        self._recorder.event(service, WARNING, "FailedToUpdateEndpointSlices", message)

    async def _converge(self, key: Key, service: Obj) -> None:
        pods = self._pods_of.pods_of(service)
        entries = (
            (family, ports_in(pod, service), self._endpoint(service, pod, address))
            for family in families(service)
            for pod in pods
            if (address := address_in(pod, family)) is not None
        )
        own = service["metadata"].get("labels") or {}
        labels = {label: value for label, value in own.items() if label not in _RESERVED}
        if is_headless(service):
            labels[HEADLESS] = ""
        await self._store.converge(
            key,
            service,
            group_up(entries),
            families=families(service),
            labels=labels,
            trigger=trigger_time(service, pods),
        )

    def _endpoint(self, service: Obj, pod: Obj, address: str) -> Obj:
        serving, terminating = is_ready(pod), is_deleting(pod)
        ready = publishes_unready(service) or (serving and not terminating)
        endpoint: Obj = {
            "addresses": [address],
            "conditions": {"ready": ready, "serving": serving, "terminating": terminating},
            "targetRef": reference_to(pod),
        }
        hostname = hostname_in(pod, service)
        if hostname:
            endpoint["hostname"] = hostname
        node = node_name(pod)
        if node:
            endpoint["nodeName"] = node
            zone = zone_of(self._nodes.get(Key("", node)))
            if zone:
                endpoint["zone"] = zone
            if ready and zone:
                endpoint |= _hints(service, node, zone)
        return endpoint


def _hints(service: Obj, node: str, zone: str) -> Obj:
    """Return the topology hints of an endpoint, when the Service prefers close ones."""
    wish = (service.get("spec") or {}).get("trafficDistribution")
    if wish not in _NEAR_ZONE:
        return {}
    hints: Obj = {"forZones": [{"name": zone}]}
    if wish == "PreferSameNode":
        hints["forNodes"] = [{"name": node}]
    return {"hints": hints}
