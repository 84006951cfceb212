"""From a Service to an address that can be dialled.

The embedded server has no cluster network that would make virtual addresses work, so it goes where the Service would
lead: to the name of an ExternalName Service, or to the first ready endpoint (of its EndpointSlices, else of its
Endpoints). A Service without any such object is dialled at its cluster IP, in case there is a network after all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from karmada.kube.kinds.resource import Reader
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.types import Obj

SERVICES = GroupResource("", "services")
ENDPOINTS = GroupResource("", "endpoints")
ENDPOINT_SLICES = GroupResource("discovery.k8s.io", "endpointslices")
SERVICE_NAME = "kubernetes.io/service-name"


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Unroutable(Exception):
    """The Service leads nowhere; the text is what clients see."""


class ServiceRouter:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def resolve(self, namespace: str, name: str, port: int) -> Address:
        service = self._reader.get(SERVICES, namespace, name)
        if service is None:
            raise Unroutable(f'service "{name}" not found')
        spec = service.get("spec") or {}
        if spec.get("type") == "ExternalName":
            return Address(str(spec.get("externalName") or ""), port)
        wanted = service_port(service, port)
        if wanted is None:
            raise Unroutable(f'no service port {port} found for service "{name}"')
        subsets = await self.subsets(namespace, name)
        if subsets:
            for address in ready_addresses(subsets, wanted.get("name") or ""):
                return address
            raise Unroutable(f'no endpoints available for service "{name}"')
        cluster_ip = spec.get("clusterIP") or ""
        if cluster_ip in ("", "None"):
            raise Unroutable(f'no endpoints available for service "{name}"')
        return Address(cluster_ip, port)

    async def subsets(self, namespace: str, name: str) -> list[Subset]:
        """Return the endpoints of a Service: ready addresses with their ports, of its slices, else of its Endpoints."""
        slices = [
            found
            async for found in self._reader.scan(ENDPOINT_SLICES, namespace)
            if (found["metadata"].get("labels") or {}).get(SERVICE_NAME) == name
        ]
        if slices:
            return list(map(_of_slice, slices))
        endpoints = self._reader.get(ENDPOINTS, namespace, name)
        return [
            Subset(tuple(address["ip"] for address in subset.get("addresses") or ()), tuple(subset.get("ports") or ()))
            for subset in (endpoints or {}).get("subsets") or ()
        ]


class Subset(NamedTuple):
    hosts: tuple[str, ...]
    ports: tuple[Obj, ...]


def service_port(service: Obj, port: int) -> Obj | None:
    ports: list[Obj] = (service.get("spec") or {}).get("ports") or []
    return next((p for p in ports if p.get("port") == port), None)


def ready_addresses(subsets: Iterable[Subset], port_name: str) -> Iterator[Address]:
    for subset in subsets:
        for port in subset.ports:
            if (port.get("name") or "") == port_name and port.get("port"):
                yield from (Address(host, port["port"]) for host in subset.hosts)


def _of_slice(found: Obj) -> Subset:
    hosts: list[str] = []
    for endpoint in found.get("endpoints") or ():
        if (endpoint.get("conditions") or {}).get("ready") is not False:
            hosts += endpoint.get("addresses") or ()
    return Subset(tuple(hosts), tuple(found.get("ports") or ()))
