"""What a cluster has from its first second: namespaces, its own Service, priority classes, flow control, APIServices.

The API server's Service has the first address of the range. Its endpoints are written here and by no controller, since
the address they hold is the server's own. RBAC's objects come from server/auth.
"""

from __future__ import annotations

import ipaddress

from karmada.kube.kinds import inventory
from karmada.kube.kinds.scheduling import SYSTEM_PRIORITIES
from karmada.kube.objects.gvk import GVK, GroupResource, GroupVersion
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.schema.builtin import Definitions
from karmada.kube.server.flowcontrol.defaults import flow_schemas, priority_levels

NAMESPACE_RESOURCE = GroupResource("", "namespaces")
SYSTEM_NAMESPACE = "kube-system"
NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_DESCRIPTIONS = {
    "system-cluster-critical": "For pods the cluster cannot do without, on whichever node they run.",
    "system-node-critical": "For pods their own node cannot do without.",
}
_LABELS = {"component": "apiserver", "provider": "kubernetes"}
_SKIP_MIRROR = "endpointslice.kubernetes.io/skip-mirror"


def default_objects(
    *, host: str, port: int, service_cidr: str = "10.96.0.0/12", definitions: Definitions | None = None
) -> list[Obj]:
    """In the order they can be created in; those of kinds the version lacks are left out."""
    objects = [
        *map(_namespace, NAMESPACES),
        *_priority_classes(),
        *priority_levels(),
        *flow_schemas(),
        _service(service_cidr, port),
        *_endpoints(host, port),
        *_service_cidr(service_cidr),
        *_api_services(definitions),
    ]
    if definitions is None:
        return objects
    known = definitions.kinds()
    return [obj for obj in objects if GVK.parse(obj["apiVersion"], obj["kind"]) in known]


def system_namespace(uid: str, now: float) -> Obj:
    """kube-system as it is stored, with a uid that was decided beforehand."""
    return {
        **_namespace(SYSTEM_NAMESPACE),
        "metadata": {
            "name": SYSTEM_NAMESPACE,
            "uid": uid,
            "creationTimestamp": rfc3339(now),
            "labels": {"kubernetes.io/metadata.name": SYSTEM_NAMESPACE},
        },
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def _namespace(name: str) -> Obj:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _priority_classes() -> list[Obj]:
    return [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "description": _DESCRIPTIONS[name],
        }
        for name, value in SYSTEM_PRIORITIES.items()
    ]


def _service(service_cidr: str, port: int) -> Obj:
    network = ipaddress.ip_network(service_cidr.split(",")[0].strip())
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "kubernetes", "namespace": "default", "labels": dict(_LABELS)},
        "spec": {
            "type": "ClusterIP",
            "clusterIP": str(network[1]),
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}],
            "sessionAffinity": "None",
        },
    }


def _endpoints(host: str, port: int) -> list[Obj]:
    """Return the address to reach the server at; none when it advertises a name or every address it has."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return []
    if address.is_unspecified or address.is_link_local:
        return []
    meta = {"name": "kubernetes", "namespace": "default"}
    ports = [{"name": "https", "port": port, "protocol": "TCP"}]
    return [
        {
            "apiVersion": "v1",
            "kind": "Endpoints",
            "metadata": {**meta, "labels": {_SKIP_MIRROR: "true"}},
            "subsets": [{"addresses": [{"ip": host}], "ports": ports}],
        },
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {**meta, "labels": {"kubernetes.io/service-name": "kubernetes"}},
            "addressType": f"IPv{address.version}",
            "endpoints": [{"addresses": [host], "conditions": {"ready": True}}],
            "ports": [dict(port) for port in ports],
        },
    ]


def _service_cidr(service_cidr: str) -> list[Obj]:
    return [
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "ServiceCIDR",
            "metadata": {
                "name": "kubernetes",
                "finalizers": ["networking.k8s.io/service-cidr-finalizer"],
            },
            "spec": {"cidrs": [text.strip() for text in service_cidr.split(",")]},
        }
    ]


def _api_services(definitions: Definitions | None) -> list[Obj]:
    """Return one for each group-version that is served here."""
    known = definitions.kinds() if definitions is not None else None
    rows = inventory.ROWS
    served = [row.version for row in rows if known is None or GVK.parse(row.version, row.kind) in known]
    return [_api_service(GroupVersion.parse(version)) for version in dict.fromkeys(served)]


def _api_service(version: GroupVersion) -> Obj:
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {
            "name": f"{version.version}.{version.group}",
            "labels": {"kube-aggregator.kubernetes.io/automanaged": "onstart"},
        },
        "spec": {
            "group": version.group,
            "version": version.version,
            "groupPriorityMinimum": inventory.group_priority(version.group),
            "versionPriority": inventory.version_priority(version),
        },
    }
