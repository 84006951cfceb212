"""Load balancers and ingresses: the cloud controller for Services of type LoadBalancer and for Ingresses.

A Service gets the first free address of the cluster's pool (or a host name) after a delay, and a finalizer until the
address is released. Addresses in use are read from the Services themselves, through an index. Ingresses share one
address, the pool's first, as they share one ingress controller. With "never" neither gets an address.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator

from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import INGRESSES, SERVICES
from karmada.kube.objects.meta import annotations as annotations_of
from karmada.kube.objects.meta import is_deleting
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch, requeue
from karmada.kube.runtime.events import NORMAL, WARNING
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.writes import add_finalizer, remove_finalizer, set_status
from karmada.kube.sim.context import Context
from karmada.kube.sim.controllers.timers import Timers
from karmada.kube.sim.profile import Profile

INGRESS_CLASSES = GVR("networking.k8s.io", "v1", "ingressclasses")
FINALIZER = "service.kubernetes.io/load-balancer-cleanup"
CLASS_ANNOTATION = "kubernetes.io/ingress.class"
IS_DEFAULT_CLASS = "ingressclass.kubernetes.io/is-default-class"
RETRY_SECONDS = 5.0
_BY_ADDRESS, _CLASSLESS = "load balancer address", "ingresses without class"
_IP_MODE_SINCE = 30


def ingress_of(obj: Obj) -> list[Obj]:
    found: list[Obj] = ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
    return found


def index_by_address(service: Obj) -> Iterable[str]:
    return [entry["ip"] for entry in ingress_of(service) if entry.get("ip")]


def host_name(profile: Profile, obj: Obj) -> str:
    metadata = obj["metadata"]
    return f"{metadata['name']}.{metadata['namespace']}.lb.{profile.name}.sim.io"


def wants_load_balancer(service: Obj) -> bool:
    spec = service.get("spec") or {}
    return spec.get("type") == "LoadBalancer" and not spec.get("loadBalancerClass") and not is_deleting(service)


class NoAddress(Exception):
    """No address can be allocated; the text has the cause."""


class AddressPool:
    """The addresses of one cluster. The first belongs to its ingress controller, the rest to Services."""

    def __init__(self, cidr: str, services: Informer) -> None:
        self._cidr = cidr
        self._network = ipaddress.ip_network(cidr)
        self._services = services

    @property
    def for_ingresses(self) -> str:
        return str(next(self._network.hosts()))

    def take(self, service: Obj) -> str:
        """spec.loadBalancerIP, else the first free address."""
        requested = (service.get("spec") or {}).get("loadBalancerIP")
        if requested:
            if not self._is_free(requested, service):
                raise NoAddress(f"address {requested} is in use by another service")
            return str(requested)
        for address in self._all():
            if self._is_free(address, service):
                return address
        raise NoAddress(f"no free address in {self._cidr}")

    def _all(self) -> Iterator[str]:
        hosts = iter(self._network.hosts())
        next(hosts)
        return map(str, hosts)

    def _is_free(self, address: str, service: Obj) -> bool:
        uid = service["metadata"]["uid"]
        return all(other["metadata"]["uid"] == uid for other in self._services.by_index(_BY_ADDRESS, address))


class LoadBalancers(Reconciler):
    """One worker: addresses are allocated one after the other."""

    name = "service-lb"

    def __init__(self, context: Context) -> None:
        self._context = context
        self._profile = context.profile
        self._client = context.client()
        self._services = context.informers.of(SERVICES, indexes={_BY_ADDRESS: index_by_address})
        self._pool = AddressPool(context.profile.load_balancer_cidr, self._services)
        self._recorder = context.recorder("service-controller")
        self._timers = Timers(context, context.profile.latencies.load_balancer)
        self.watches = () if self._profile.load_balancers == "never" else (Watch(SERVICES),)

    async def reconcile(self, key: Key) -> Result:
        service = self._services.get(key)
        if service is None:
            self._timers.forget(key)
            return Done
        if wants_load_balancer(service):
            return await self._ensure(key, service)
        self._timers.forget(key)
        if FINALIZER in (service["metadata"].get("finalizers") or ()):
            await self._release(service)
        return Done

    async def _ensure(self, key: Key, service: Obj) -> Result:
        if ingress_of(service) and FINALIZER in (service["metadata"].get("finalizers") or ()):
            self._timers.forget(key)
            return Done
        if not self._timers.running(key):
            self._recorder.event(service, NORMAL, "EnsuringLoadBalancer", "Ensuring load balancer")
        wait = self._timers.left(key)
        service = (await add_finalizer(self._client, SERVICES, service, FINALIZER)).object
        if wait > 0:
            return requeue(wait)
        if not ingress_of(service):
            try:
                entry = self._entry(service)
            except NoAddress as error:
                message = f"Error syncing load balancer: failed to ensure load balancer: {error}"
                self._recorder.event(service, WARNING, "SyncLoadBalancerFailed", message)
                return requeue(RETRY_SECONDS)
            status = {**(service.get("status") or {}), "loadBalancer": {"ingress": [entry]}}
            service = (await set_status(self._client, SERVICES, service, status)).object
        self._recorder.event(service, NORMAL, "EnsuredLoadBalancer", "Ensured load balancer")
        await self._context.until_seen(self._services, [service])
        return Done

    def _entry(self, service: Obj) -> Obj:
        if self._profile.load_balancers == "hostname":
            return {"hostname": host_name(self._profile, service)}
        entry: Obj = {"ip": self._pool.take(service)}
        return {**entry, "ipMode": "VIP"} if self._profile.minor >= _IP_MODE_SINCE else entry

    async def _release(self, service: Obj) -> None:
        self._recorder.event(service, NORMAL, "DeletingLoadBalancer", "Deleting load balancer")
        if not is_deleting(service):
            status = {**(service.get("status") or {}), "loadBalancer": {}}
            service = (await set_status(self._client, SERVICES, service, status)).object
        await remove_finalizer(self._client, SERVICES, service, FINALIZER)
        self._recorder.event(service, NORMAL, "DeletedLoadBalancer", "Deleted load balancer")


def has_class(ingress: Obj) -> bool:
    return bool((ingress.get("spec") or {}).get("ingressClassName") or annotations_of(ingress).get(CLASS_ANNOTATION))


def is_default_class(ingress_class: Obj) -> bool:
    return annotations_of(ingress_class).get(IS_DEFAULT_CLASS) == "true"


def index_classless(ingress: Obj) -> Iterable[str]:
    return () if has_class(ingress) else ("",)


class IngressAddresses(Reconciler):
    name = "ingress-addresses"

    def __init__(self, context: Context) -> None:
        self._profile = context.profile
        self._client = context.client()
        self._ingresses = context.informers.of(INGRESSES, indexes={_CLASSLESS: index_classless})
        self._classes = context.informers.of(INGRESS_CLASSES)
        services = context.informers.of(SERVICES, indexes={_BY_ADDRESS: index_by_address})
        self._address = AddressPool(context.profile.load_balancer_cidr, services).for_ingresses
        self._timers = Timers(context, context.profile.latencies.load_balancer)
        watched = (Watch(INGRESSES), Watch(INGRESS_CLASSES, map_to=self._without_class))
        self.watches = () if self._profile.load_balancers == "never" else watched

    def _without_class(self, _ingress_class: Obj) -> Iterator[Key]:
        return map(key_of, self._ingresses.by_index(_CLASSLESS, ""))

    async def reconcile(self, key: Key) -> Result:
        ingress = self._ingresses.get(key)
        if ingress is None or is_deleting(ingress):
            self._timers.forget(key)
            return Done
        served = has_class(ingress) or any(map(is_default_class, self._classes.list()))
        if not served:
            self._timers.forget(key)
            await self._set(ingress, [])
            return Done
        if ingress_of(ingress):
            self._timers.forget(key)
            return Done
        wait = self._timers.left(key)
        if wait > 0:
            return requeue(wait)
        by_name = self._profile.load_balancers == "hostname"
        await self._set(
            ingress, [{"hostname": host_name(self._profile, ingress)} if by_name else {"ip": self._address}]
        )
        self._timers.forget(key)
        return Done

    async def _set(self, ingress: Obj, entries: list[Obj]) -> None:
        if ingress_of(ingress) != entries:
            status = {**(ingress.get("status") or {}), "loadBalancer": {"ingress": entries} if entries else {}}
            await set_status(self._client, INGRESSES, ingress, status)
