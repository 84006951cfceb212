"""How Services, Ingresses and endpoints look in a table."""

from __future__ import annotations

from karmada.kube.kinds.tables.columns import (
    AGE,
    NAME,
    NONE,
    UNKNOWN,
    UNSET,
    Column,
    Printer,
    dig,
    field,
    joined,
    labels_text,
    of,
    selector_text,
    with_more,
)
from karmada.kube.objects import meta
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.types import Obj


def _load_balancer(obj: Obj) -> list[str]:
    """Addresses, or host names where there are none, of the load balancers; sorted."""
    found = {each.get("ip") or each.get("hostname") for each in dig(obj, "status", "loadBalancer", "ingress") or ()}
    return sorted(address for address in found if address)


def _cluster_ip(service: Obj) -> str:
    addresses = dig(service, "spec", "clusterIPs") or ()
    return (addresses[0] if addresses else dig(service, "spec", "clusterIP")) or NONE


def _external_ip(service: Obj) -> str:
    spec: Obj = service.get("spec") or {}
    external: list[str] = spec.get("externalIPs") or []
    match spec.get("type"):
        case "ClusterIP" | "NodePort":
            return joined(external, NONE)
        case "LoadBalancer":
            return joined(_load_balancer(service) + external, "<pending>")
        case "ExternalName":
            return str(spec.get("externalName") or "")
    return UNKNOWN


def _service_port(port: Obj) -> str:
    node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port')}{node_port}/{port.get('protocol') or 'TCP'}"


def _service_ports(service: Obj) -> str:
    return joined(map(_service_port, dig(service, "spec", "ports") or ()), NONE)


SERVICE = Printer([
    NAME,
    Column("Type", field("spec.type"), "How the service is exposed"),
    Column("Cluster-IP", of(_cluster_ip), "The address inside the cluster"),
    Column("External-IP", of(_external_ip), "The addresses outside of the cluster"),
    Column("Port(s)", of(_service_ports), "Ports, with the nodes' port where there is one"),
    AGE,
    Column("Selector", of(lambda o: labels_text(dig(o, "spec", "selector"))), "The labels of its pods", wide=True),
])  # fmt: skip


def _hosts(ingress: Obj) -> str:
    rules = dig(ingress, "spec", "rules") or ()
    hosts = [rule["host"] for rule in rules if rule.get("host")]
    return with_more(hosts, 3, empty="*")


INGRESS = Printer([
    NAME,
    Column("Class", field("spec.ingressClassName", NONE), "The class that says which controller serves it"),
    Column("Hosts", of(_hosts), "The hosts that requests are matched with"),
    Column("Address", of(lambda o: joined(_load_balancer(o))), "Where the ingress is reached"),
    Column("Ports", of(lambda o: "80, 443" if dig(o, "spec", "tls") else "80"), "The ports that are open"),
    AGE,
])  # fmt: skip


def _parameters(ingress_class: Obj) -> str:
    parameters = dig(ingress_class, "spec", "parameters")
    if not parameters:
        return NONE
    group = f".{parameters['apiGroup']}" if parameters.get("apiGroup") else ""
    return f"{parameters.get('kind', '')}{group}/{parameters.get('name', '')}"


def name_with_default(annotation: str) -> Column:
    """Return the name, marked when an annotation makes the object the default of its kind."""

    def cell(obj: Obj, now: float) -> str:  # noqa: ARG001
        return meta.name(obj) + (" (default)" if meta.annotations(obj).get(annotation) == "true" else "")

    return Column("Name", cell, NAME.description, format="name")


INGRESS_CLASS = Printer([
    name_with_default("ingressclass.kubernetes.io/is-default-class"),
    Column("Controller", field("spec.controller"), "The controller that serves this class"),
    Column("Parameters", of(_parameters), "The object with further settings"),
    AGE,
])  # fmt: skip


def _host_port(address: str, port: object) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _subset(subset: Obj) -> list[str]:
    addresses = [each.get("ip") or "" for each in subset.get("addresses") or ()]
    ports = subset.get("ports")
    if not ports:
        return addresses
    return [_host_port(address, port.get("port")) for port in ports for address in addresses]


def _endpoints(endpoints: Obj) -> str:
    subsets = endpoints.get("subsets")
    if not subsets:
        return NONE
    return with_more([each for subset in subsets for each in _subset(subset)], 3)


ENDPOINTS = Printer([NAME, Column("Endpoints", of(_endpoints), "Addresses and ports that are ready"), AGE])


def _slice_port(port: Obj) -> str:
    number = port.get("port")
    return str(number if number is not None else port.get("name") or "*")


def _slice_ports(endpoint_slice: Obj) -> str:
    return with_more([_slice_port(port) for port in endpoint_slice.get("ports") or ()], 3, empty=UNSET)


def _slice_endpoints(endpoint_slice: Obj) -> str:
    found = [address for each in endpoint_slice.get("endpoints") or () for address in each.get("addresses") or ()]
    return with_more(found, 3, empty=UNSET)


ENDPOINT_SLICE = Printer([
    NAME,
    Column("AddressType", field("addressType"), "The sort of the addresses"),
    Column("Ports", of(_slice_ports), "The ports of every endpoint"),
    Column("Endpoints", of(_slice_endpoints), "The addresses of the endpoints"),
    AGE,
])  # fmt: skip

NETWORK_POLICY = Printer([
    NAME,
    Column("Pod-Selector", of(lambda o: selector_text(dig(o, "spec", "podSelector"))), "The pods it applies to"),
    AGE,
])  # fmt: skip

SERVICE_CIDR = Printer([NAME, Column("CIDRs", of(lambda o: joined(dig(o, "spec", "cidrs"))), "The ranges"), AGE])


def _parent(address: Obj) -> str:
    parent = dig(address, "spec", "parentRef")
    if not parent:
        return NONE
    resource = str(GroupResource(parent.get("group") or "", parent.get("resource") or "")).lower()
    return "/".join(part for part in (resource, parent.get("namespace"), parent.get("name")) if part)


IP_ADDRESS = Printer([NAME, Column("ParentRef", of(_parent), "The object that holds the address"), AGE])

PRINTERS = {
    ("", "Service"): SERVICE,
    ("", "Endpoints"): ENDPOINTS,
    ("networking.k8s.io", "Ingress"): INGRESS,
    ("networking.k8s.io", "IngressClass"): INGRESS_CLASS,
    ("networking.k8s.io", "NetworkPolicy"): NETWORK_POLICY,
    ("networking.k8s.io", "ServiceCIDR"): SERVICE_CIDR,
    ("networking.k8s.io", "IPAddress"): IP_ADDRESS,
    ("discovery.k8s.io", "EndpointSlice"): ENDPOINT_SLICE,
}
