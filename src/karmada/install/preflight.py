"""What is checked, and found out, in the host cluster before anything is created there."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Final

from karmada.install.names import API_SERVER, ETCD_NODE
from karmada.install.options import InstallError, Options, Volume
from karmada.kube.objects.selectors import parse_labels
from karmada.kube.objects.types import Obj

_DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
_ROLES: Final = ("node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane")
_MOST_NODES: Final = 3
_HEALTHY: Final = {
    "Ready": "True",
    "MemoryPressure": "False",
    "DiskPressure": "False",
    "NetworkUnavailable": "False",
    "PIDPressure": "False",
}


def check_namespace(namespace: Obj | None) -> None:
    """InstallError for one that is being deleted: nothing can be created in it."""
    if namespace is not None and namespace["metadata"].get("deletionTimestamp"):
        raise InstallError(
            f"namespace {namespace['metadata']['name']} is being deleted: run init again when it is gone, or install "
            "into another --namespace"
        )


def check_port(services: Sequence[Obj], options: Options) -> None:
    """InstallError when another Service has the node port."""
    for service in services:
        metadata = service["metadata"]
        ours = (metadata["namespace"], metadata["name"]) == (options.namespace, API_SERVER)
        ports = [port.get("nodePort") for port in service["spec"].get("ports") or ()]
        if options.port in ports and not ours:
            place = f"{metadata['namespace']}/{metadata['name']}"
            raise InstallError(
                f"nodePort of karmada apiserver {options.port} already exist: Service {place} has it, choose another "
                "with --port"
            )


def addresses(nodes: Sequence[Obj], advertised: str) -> list[str]:
    """Return the addresses by which clients reach the API server; the first one is that of the kubeconfig."""
    if advertised:
        return [str(ipaddress.ip_address(advertised))]
    for role in _ROLES:
        found = [node for node in nodes if role in (node["metadata"].get("labels") or {})]
        if found:
            return [_address(node) for node in found]
    if not nodes:
        raise InstallError(
            "the host cluster has no nodes: name the address of the API server with "
            "--karmada-apiserver-advertise-address"
        )
    return [_address(node) for node in nodes[:_MOST_NODES]]


def _address(node: Obj) -> str:
    entries = (node.get("status") or {}).get("addresses") or ()
    text = str(entries[0].get("address")) if entries else ""
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return "127.0.0.1"


def url_of(address: str, port: int) -> str:
    host = f"[{address}]" if ":" in address else address
    return f"https://{host}:{port}"


def node_to_label(nodes: Sequence[Obj], volume: Volume) -> str:
    """Return the node that gets the label of a store's folder; empty when none has to.

    InstallError when there is none.
    """
    if volume.mode != "hostPath":
        return ""
    if volume.node_labels:
        _check_labels(nodes, volume.node_labels)
        return ""
    if any(ETCD_NODE in (node["metadata"].get("labels") or {}) for node in nodes):
        return ""
    for node in nodes:
        if is_healthy(node):
            return str(node["metadata"]["name"])
    raise InstallError(
        "no node for the state: a folder of a node (hostPath) needs one that is ready, without taints and without "
        "pressure; make one so, name nodes with --etcd-node-selector-labels, or use a volume (PVC)"
    )


def _check_labels(nodes: Sequence[Obj], labels: str) -> None:
    for label in filter(None, (part.strip() for part in labels.split(","))):
        selector = parse_labels(label)
        if not any(selector.matches(node["metadata"].get("labels") or {}) for node in nodes):
            raise InstallError(f"no node found by label {label}: correct --etcd-node-selector-labels")


def is_healthy(node: Obj) -> bool:
    if (node.get("spec") or {}).get("taints"):
        return False
    found = {each["type"]: each["status"] for each in (node.get("status") or {}).get("conditions") or ()}
    return found.get("Ready") == "True" and all(found.get(kind, wanted) == wanted for kind, wanted in _HEALTHY.items())


def check_storage_class(classes: Sequence[Obj], volume: Volume) -> None:
    """InstallError when a claim would stay without a volume."""
    if volume.mode != "PVC":
        return
    names = sorted(each["metadata"]["name"] for each in classes)
    known = f"known: {', '.join(names)}" if names else "the cluster has none"
    if volume.storage_class:
        if volume.storage_class not in names:
            raise InstallError(f'--storage-classes-name: there is no StorageClass "{volume.storage_class}" ({known})')
        return
    if not any((each["metadata"].get("annotations") or {}).get(_DEFAULT_CLASS) == "true" for each in classes):
        raise InstallError(
            f"the cluster has no default StorageClass: name one with --storage-classes-name ({known}), or keep the "
            "state in a folder of a node with --store-volume hostPath"
        )
