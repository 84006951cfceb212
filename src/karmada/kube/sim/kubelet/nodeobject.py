"""What a simulated node looks like: what a kubelet reports about its machine when it registers, generated from a pool.

Whatever would differ between two machines (ids, addresses) follows from the node's name and its slot, a small number
that also fixes its range of pod addresses; so a node that is made again is the same.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from functools import lru_cache
from uuid import UUID, uuid5

from karmada.kube.objects.meta import get_condition
from karmada.kube.objects.quantity import Quantity, canonical
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.sim.kubelet.managed import POOL
from karmada.kube.sim.profile import NodePool, Profile

_MACHINES = UUID("0b6f4a52-3f0d-4c8e-9d0a-5a1d2c7e4b90")
_SLOT_BITS = 8
"""A slot is 256 addresses; a node with more pods than fit into one takes several."""
_FIRST_HOST = 2
_MEMORY_RESERVE = 100 * 1024 * 1024
NOT_READY_YET = (
    "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady "
    "message:Network plugin returns error: cni plugin not initialized"
)
_PRESSURES: dict[str, tuple[str, str, str, str]] = {
    "MemoryPressure": (
        "KubeletHasSufficientMemory",
        "kubelet has sufficient memory available",
        "KubeletHasInsufficientMemory",
        "kubelet has insufficient memory available",
    ),
    "DiskPressure": (
        "KubeletHasNoDiskPressure",
        "kubelet has no disk pressure",
        "KubeletHasDiskPressure",
        "kubelet has disk pressure",
    ),
    "PIDPressure": (
        "KubeletHasSufficientPID",
        "kubelet has sufficient PID available",
        "KubeletHasInsufficientPID",
        "kubelet has insufficient PID available",
    ),
}
KUBELET_CONDITIONS = (*_PRESSURES, "Ready")


# --- addresses


def slots_of(pool: NodePool) -> int:
    """Return how many slots a node of this pool takes: a power of two."""
    slots = 1
    while slots << _SLOT_BITS < pool.pods + 4:
        slots *= 2
    return slots


def slots_in(pod_cidr: str) -> int:
    network = ipaddress.ip_network(pod_cidr)
    return int(network.num_addresses >> _SLOT_BITS)


def pod_range(pod_cidr: str, slot: int, slots: int) -> str:
    network = ipaddress.ip_network(pod_cidr)
    prefix = network.max_prefixlen - _SLOT_BITS - (slots.bit_length() - 1)
    return f"{network.network_address + (slot << _SLOT_BITS)}/{prefix}"


@lru_cache(maxsize=16384)
def slots_taken(pod_cidr: str, node_range: str) -> range:
    """Return which slots of the cluster's range a node's own range covers; none when it lies outside."""
    network, own = ipaddress.ip_network(pod_cidr), ipaddress.ip_network(node_range)
    first = (int(own.network_address) - int(network.network_address)) >> _SLOT_BITS
    if own.version != network.version or first < 0 or first >= slots_in(pod_cidr):
        return range(0)
    return range(first, first + max(1, int(own.num_addresses) >> _SLOT_BITS))


def host_address(node_cidr: str, slot: int) -> str:
    network = ipaddress.ip_network(node_cidr)
    return str(network.network_address + (_FIRST_HOST + slot) % int(network.num_addresses))


# --- the parts of a node


def labels_of(profile: Profile, pool: NodePool, ordinal: int, name: str) -> dict[str, str]:
    """`ordinal` counts the nodes of a pool from 1; zones are given to them in turn."""
    zone = pool.zones[(ordinal - 1) % len(pool.zones)] if pool.zones else profile.zone
    region = pool.region or profile.region
    machine = f"sim.{pool.cpu}x{pool.memory}".lower()
    labels = {
        "beta.kubernetes.io/arch": pool.architecture,
        "beta.kubernetes.io/instance-type": machine,
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": pool.architecture,
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": machine,
    }
    for key, value in (("region", region), ("zone", zone)):
        if value:
            labels[f"failure-domain.beta.kubernetes.io/{key}"] = value
            labels[f"topology.kubernetes.io/{key}"] = value
    return labels | pool.labels


def taints_of(pool: NodePool) -> list[Obj]:
    return [
        {"key": taint.key, "effect": taint.effect, **({"value": taint.value} if taint.value else {})}
        for taint in pool.taints
    ]


def capacity_of(pool: NodePool) -> dict[str, str]:
    """Return what the machine has: what its pool offers to pods, and the memory that the kubelet reserves."""
    memory = Quantity.parse(pool.memory)
    return {
        "cpu": canonical(pool.cpu),
        "ephemeral-storage": canonical(pool.ephemeral_storage),
        "hugepages-1Gi": "0",
        "hugepages-2Mi": "0",
        "memory": str(Quantity.of(memory.value() + _MEMORY_RESERVE, memory.format)),
        "pods": str(pool.pods),
        **{name: canonical(amount) for name, amount in pool.extended.items()},
    }


def allocatable_of(capacity: dict[str, str]) -> dict[str, str]:
    """Return what is left for pods: a kubelet reserves 100Mi of memory and a tenth of the disk."""
    left = dict(capacity)
    memory, disk = Quantity.parse(capacity["memory"]), Quantity.parse(capacity["ephemeral-storage"])
    left["memory"] = str(Quantity.of(max(0, memory.value() - _MEMORY_RESERVE), memory.format))
    left["ephemeral-storage"] = str(disk.value() * 9 // 10)
    return left


def addresses_of(name: str, address: str) -> list[Obj]:
    return [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}]


def node_info(name: str, profile: Profile, architecture: str) -> Obj:
    def made_up(what: str) -> UUID:
        return uuid5(_MACHINES, f"{profile.name}/{profile.seed}/{name}/{what}")

    return {
        "machineID": made_up("machine").hex,
        "systemUUID": str(made_up("system")),
        "bootID": str(made_up("boot")),
        "kernelVersion": "6.12.48+deb13-cloud-amd64" if architecture == "amd64" else "6.12.48+deb13-cloud-arm64",
        "osImage": "Debian GNU/Linux 13 (trixie)",
        "containerRuntimeVersion": "containerd://2.1.4",
        "kubeletVersion": f"v{profile.version}.0",
        "kubeProxyVersion": "",
        "operatingSystem": "linux",
        "architecture": architecture,
    }


def node_object(profile: Profile, pool: NodePool, ordinal: int, name: str, slot: int, now: float) -> Obj:
    """Return a node as its kubelet registers it: not ready yet."""
    provider = pool.provider or profile.provider or "sim"
    network = pod_range(profile.pod_cidr, slot, slots_of(pool))
    metadata = {
        "name": name,
        "labels": labels_of(profile, pool, ordinal, name),
        "annotations": {
            "node.alpha.kubernetes.io/ttl": "0",
            "volumes.kubernetes.io/controller-managed-attach-detach": "true",
            POOL: pool.name,
        },
    }
    spec: Obj = {
        "podCIDR": network,
        "podCIDRs": [network],
        "providerID": f"{provider}://{profile.name}/{name}",
    }
    if pool.taints:
        spec["taints"] = taints_of(pool)
    capacity = capacity_of(pool)
    status = {
        "addresses": addresses_of(name, host_address(profile.node_cidr, slot)),
        "allocatable": allocatable_of(capacity),
        "capacity": capacity,
        "conditions": conditions_of(None, now, ready=False),
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "images": [],
        "nodeInfo": node_info(name, profile, pool.architecture),
    }
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": status}


# --- conditions


def conditions_of(
    stored: list[Obj] | None, now: float, *, ready: bool = True, pressures: Collection[str] = ()
) -> list[Obj]:
    """Return what the kubelet says of its node, in the order in which it says it."""
    wanted = []
    for kind, (fine, fine_message, bad, bad_message) in _PRESSURES.items():
        pressed = kind in pressures
        wanted.append((kind, pressed, bad if pressed else fine, bad_message if pressed else fine_message))
    if ready:
        wanted.append(("Ready", True, "KubeletReady", "kubelet is posting ready status"))
    else:
        wanted.append(("Ready", False, "KubeletNotReady", NOT_READY_YET))
    moment = rfc3339(now)
    made = []
    for kind, holds, reason, message in wanted:
        status, old = "True" if holds else "False", get_condition(stored, kind)
        same = old is not None and old.get("status") == status and old.get("lastTransitionTime")
        made.append(
            {
                "type": kind,
                "status": status,
                "lastHeartbeatTime": moment,
                "lastTransitionTime": old["lastTransitionTime"] if old is not None and same else moment,
                "reason": reason,
                "message": message,
            }
        )
    return made


def healthy(node: Obj, now: float, pressures: Collection[str] = ()) -> list[Obj]:
    """Return the conditions of a node that works."""
    return conditions_of((node.get("status") or {}).get("conditions"), now, pressures=pressures)
