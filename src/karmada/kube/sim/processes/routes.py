"""Where a Service's connections go, as pure rules: what is listened at, and which endpoints serve a port."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from karmada.kube.objects import meta
from karmada.kube.objects.types import Obj

_LOOPBACK = ipaddress.ip_network("127.0.0.0/8")


class Frontend(NamedTuple):
    """An address that a Service is reached at, and the name of its port."""

    address: str
    port: int
    port_name: str


class Backend(NamedTuple):
    address: str
    port: int
    pod: str
    """The pod's name; empty for an endpoint that is no pod."""


def frontends(service: Obj, node_addresses: Iterable[str]) -> set[Frontend]:
    """Return the loopback addresses of a Service: cluster IP, load balancer, and the nodes' for node ports."""
    spec = service.get("spec") or {}
    ingress = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    addresses = [ip for ip in (spec.get("clusterIP"), *(entry.get("ip") for entry in ingress)) if _is_loopback(ip)]
    nodes = [address for address in node_addresses if _is_loopback(address)]
    found: set[Frontend] = set()
    for port in spec.get("ports") or ():
        if (port.get("protocol") or "TCP") != "TCP" or spec.get("type") == "ExternalName":
            continue
        name = port.get("name") or ""
        found.update(Frontend(address, int(port["port"]), name) for address in addresses)
        if port.get("nodePort"):
            found.update(Frontend(address, int(port["nodePort"]), name) for address in nodes)
    return found


def backends(slices: Iterable[Obj], port_name: str) -> list[Backend]:
    """Return the ready endpoints of a port."""
    return sorted(
        Backend(address, number, _pod(endpoint))
        for found in slices
        if found.get("addressType") == "IPv4"
        for number in _numbers(found, port_name)
        for endpoint in ready_endpoints(found)
        for address in endpoint.get("addresses") or ()
    )


def ready_endpoints(found: Obj) -> Iterator[Obj]:
    for endpoint in found.get("endpoints") or ():
        if (endpoint.get("conditions") or {}).get("ready") is not False:
            yield endpoint


def names_of(service: Obj, slices: Iterable[Obj], ports: dict[int, int]) -> dict[str, Any]:
    """Return the entries of a Service in the file of names; `ports` are those served at another number."""
    own = f"{meta.name(service)}.{meta.namespace(service)}"
    address = (service.get("spec") or {}).get("clusterIP")
    if address and address != "None":
        moved = {"ports": {str(port): number for port, number in ports.items()}} if ports else {}
        return {own: {"addresses": [address], **moved}}
    entries: dict[str, Any] = {}
    for found in slices:
        for endpoint in ready_endpoints(found):
            addresses = list(endpoint.get("addresses") or ())
            entries.setdefault(own, {"addresses": []})["addresses"] += addresses
            if endpoint.get("hostname"):
                entries[f"{endpoint['hostname']}.{own}"] = {"addresses": addresses}
    return entries


def _numbers(found: Obj, port_name: str) -> Iterator[int]:
    for port in found.get("ports") or ():
        if (port.get("name") or "") == port_name and port.get("port"):
            yield int(port["port"])


def _pod(endpoint: Obj) -> str:
    target = endpoint.get("targetRef") or {}
    return str(target.get("name") or "") if target.get("kind") == "Pod" else ""


def _is_loopback(address: str | None) -> bool:
    if not address or address == "None":
        return False
    parsed = ipaddress.ip_address(address)
    return parsed.version == 4 and parsed in _LOOPBACK
