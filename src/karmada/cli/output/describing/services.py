"""Services and what is behind them: Endpoints and EndpointSlices."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from karmada.cli.output.describing.sheet import NONE, UNSET, Sheet, shown
from karmada.cli.output.describing.words import at, head, meta, pairs_text

if TYPE_CHECKING:
    from karmada.cli.output.describing.around import Around
    from karmada.kube.objects.types import Obj

_SHOWN_ENDPOINTS = 3
_SERVICE = "kubernetes.io/service-name"


async def service(sheet: Sheet, obj: Obj, around: Around) -> None:
    spec = obj["spec"]
    slices = await slices_of(meta(obj, "name"), meta(obj, "namespace"), around)
    head(sheet, obj)
    sheet.field("Selector", pairs_text(spec.get("selector")))
    sheet.field("Type", spec.get("type") or "")
    _addresses(sheet, spec, at(obj, "status.loadBalancer.ingress", []))
    for port in spec.get("ports") or ():
        _port(sheet, port, slices)
    sheet.field("Session Affinity", spec.get("sessionAffinity") or "")
    sheet.optional("External Traffic Policy", spec.get("externalTrafficPolicy"))
    sheet.optional("Internal Traffic Policy", spec.get("internalTrafficPolicy"))
    if spec.get("healthCheckNodePort"):
        sheet.field("HealthCheck NodePort", spec["healthCheckNodePort"])
    if spec.get("loadBalancerSourceRanges"):
        sheet.field("LoadBalancer Source Ranges", ",".join(spec["loadBalancerSourceRanges"]))
    sheet.optional("Traffic Distribution", spec.get("trafficDistribution"))


def _addresses(sheet: Sheet, spec: Obj, ingress: list[Obj]) -> None:
    sheet.optional("IP Family Policy", spec.get("ipFamilyPolicy"))
    sheet.field("IP Families", ",".join(spec.get("ipFamilies") or ()) or NONE)
    sheet.field("IP", spec.get("clusterIP") or "")
    sheet.field("IPs", ",".join(spec.get("clusterIPs") or ()) or NONE)
    if spec.get("externalIPs"):
        sheet.field("External IPs", ",".join(spec["externalIPs"]))
    sheet.optional("Desired LoadBalancer IP", spec.get("loadBalancerIP"))
    sheet.optional("External Name", spec.get("externalName"))
    if ingress:
        sheet.field("LoadBalancer Ingress", ", ".join(map(_ingress_text, ingress)))


def _ingress_text(point: Obj) -> str:
    mode = f" ({point['ipMode']})" if point.get("ipMode") else ""
    return f"{point.get('ip') or point.get('hostname') or ''}{mode}"


def _port(sheet: Sheet, port: Obj, slices: list[Obj]) -> None:
    name, protocol = port.get("name") or UNSET, port.get("protocol") or "TCP"
    sheet.row(0, "Port:", name, f"{port['port']}/{protocol}")
    sheet.field("TargetPort", f"{port.get('targetPort', port['port'])}/{protocol}")
    sheet.optional("AppProtocol", port.get("appProtocol"))
    if port.get("nodePort"):
        sheet.row(0, "NodePort:", name, f"{port['nodePort']}/{protocol}")
    sheet.field("Endpoints", endpoints_text(slices, port.get("name") or ""))


async def slices_of(service_name: str, namespace: str, around: Around) -> list[Obj]:
    found = await around.if_allowed(
        "endpointslices.v1.discovery.k8s.io", namespace, labels=f"{_SERVICE}={service_name}"
    )
    return found or []


def endpoints_text(slices: Iterable[Obj], port_name: str) -> str:
    """Return the first ready addresses behind one port of a service, and how many more are ready.

    "+ N more..." follows as soon as there are further endpoints, even if none of them is ready.
    """
    slices = list(slices)
    if not slices:
        return NONE
    ready: list[str] = []
    more = False
    for found in slices:
        ports = [port for port in found.get("ports") or () if (port.get("name") or "") == port_name]
        for port in ports if found.get("ports") else [None]:
            for point in found.get("endpoints") or ():
                more = more or len(ready) == _SHOWN_ENDPOINTS
                if at(point, "conditions.ready", True):
                    ready.append(_join(point["addresses"][0], port))
    text = ",".join(ready[:_SHOWN_ENDPOINTS])
    return f"{text} + {len(ready) - _SHOWN_ENDPOINTS} more..." if more else text


def _join(address: str, port: Obj | None) -> str:
    if port is None:
        return address
    return f"[{address}]:{port.get('port')}" if ":" in address else f"{address}:{port.get('port')}"


async def endpoints(sheet: Sheet, obj: Obj, _around: Around) -> None:
    head(sheet, obj)
    sheet.row(0, "Subsets:")
    for subset in obj.get("subsets") or ():
        for title, key in (("Addresses", "addresses"), ("NotReadyAddresses", "notReadyAddresses")):
            sheet.field(title, ",".join(address["ip"] for address in subset.get(key) or ()) or NONE, 1)
        if subset.get("ports"):
            sheet.row(1, "Ports:")
            sheet.heads(2, "Name", "Port", "Protocol")
            for port in subset["ports"]:
                sheet.row(2, port.get("name") or UNSET, port["port"], port.get("protocol") or "TCP")
        sheet.blank()


async def endpoint_slice(sheet: Sheet, obj: Obj, _around: Around) -> None:
    head(sheet, obj)
    sheet.field("AddressType", obj.get("addressType") or "")
    ports = obj.get("ports") or []
    if ports:
        sheet.row(0, "Ports:")
        sheet.heads(1, "Name", "Port", "Protocol")
        for port in ports:
            number = port["port"] if port.get("port") is not None else UNSET
            sheet.row(1, port.get("name") or UNSET, number, port.get("protocol") or "TCP")
    else:
        sheet.row(0, f"Ports: {UNSET}")
    if obj.get("endpoints"):
        sheet.row(0, "Endpoints:")
        for endpoint in obj["endpoints"]:
            _endpoint(sheet, endpoint)
    else:
        sheet.row(0, f"Endpoints: {NONE}")


def _endpoint(sheet: Sheet, endpoint: Obj) -> None:
    sheet.field("- Addresses", ", ".join(endpoint.get("addresses") or ()), 1)
    sheet.row(2, "Conditions:")
    ready = at(endpoint, "conditions.ready", None)
    sheet.field("Ready", UNSET if ready is None else shown(ready), 3)
    sheet.field("Hostname", endpoint.get("hostname") or UNSET, 2)
    target = endpoint.get("targetRef")
    if target:
        sheet.field("TargetRef", f"{target.get('kind', '')}/{target.get('name', '')}", 2)
    sheet.field("NodeName", endpoint.get("nodeName") or UNSET, 2)
    sheet.field("Zone", endpoint.get("zone") or UNSET, 2)
