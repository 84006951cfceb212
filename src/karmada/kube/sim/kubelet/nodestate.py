"""The allocated addresses and resources of a node, and the images it has pulled.

Kept in memory, a few numbers per pod, and updated as pods are admitted and deleted. It is recounted from the pods after
a restart, and before a pod is rejected, since deletion events may be pending.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from karmada.kube.kinds.pod_amounts import pod_resources
from karmada.kube.objects.node_selection import selection_of
from karmada.kube.objects.podstate import is_terminal
from karmada.kube.objects.quantity import Quantity
from karmada.kube.objects.types import Obj
from karmada.kube.sim.controllers.nodefit import matches_node
from karmada.kube.sim.scheduler.pods import host_ports

_RESERVED = 2
"""The first addresses of a range: its own, and the bridge's."""


class Addresses:
    """Gives out addresses of a range in turn, each to one pod at a time."""

    def __init__(self, cidr: str, *, upper_half: bool = False) -> None:
        network = ipaddress.ip_network(cidr)
        self._base = int(network.network_address)
        self._size = network.num_addresses
        self._make = ipaddress.IPv4Address if network.version == 4 else ipaddress.IPv6Address
        self._used: set[int] = set()
        self._next = self._size // 2 if upper_half else _RESERVED

    def take(self) -> str:
        """Take a free address; "" when all are in use."""
        room = self._size - _RESERVED - 1
        for _ in range(min(room, len(self._used) + 1)):
            offset = self._next
            self._next = offset + 1 if offset + 1 < self._size - 1 else _RESERVED
            if offset not in self._used:
                self._used.add(offset)
                return str(self._make(self._base + offset))
        return ""

    def reserve(self, address: str) -> None:
        offset = self._offset(address)
        if 0 <= offset < self._size:
            self._used.add(offset)
            if offset + 1 < self._size - 1:
                self._next = max(self._next, offset + 1)

    def give_back(self, address: str) -> None:
        self._used.discard(self._offset(address))

    def _offset(self, address: str) -> int:
        return int(ipaddress.ip_address(address)) - self._base


def requests_of(pod: Obj) -> dict[str, int]:
    """Return cpu in thousandths, everything else in whole units; the pod itself counts as one of `pods`."""
    requested = {
        name: amount.milli() if name == "cpu" else amount.value()
        for name, amount in pod_resources(pod["spec"], "requests").items()
    }
    requested["pods"] = 1
    return requested


@dataclass(slots=True)
class NodeState:
    used: dict[str, int] = field(default_factory=dict)
    images: set[str] = field(default_factory=set)

    def add(self, requests: Mapping[str, int]) -> None:
        for name, amount in requests.items():
            self.used[name] = self.used.get(name, 0) + amount

    def subtract(self, requests: Mapping[str, int]) -> None:
        for name, amount in requests.items():
            self.used[name] = self.used.get(name, 0) - amount


def is_taken(pod: Obj) -> bool:
    """Return whether the node has admitted the pod, and it has not finished."""
    return bool((pod.get("status") or {}).get("startTime")) and not is_terminal(pod)


def refusal(
    pod: Obj, node: Obj, requests: Mapping[str, int], used: Mapping[str, int], others: Iterable[Obj] = ()
) -> tuple[str, str] | None:
    """Return the reason and message if a node rejects a pod; `others` are the pods on the node."""
    if not matches_node(pod["spec"], selection_of(pod["spec"]), node):
        return "NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    for name in sorted(requests, key=_by_rank):
        requested = requests[name]
        if not requested or (name not in allocatable and name in _BASIC):
            continue
        quantity = Quantity.parse(allocatable.get(name, "0"))
        there = quantity.milli() if name == "cpu" else quantity.value()
        if used.get(name, 0) + requested > there:
            detail = f"requested: {requested}, used: {used.get(name, 0)}, capacity: {there}"
            return f"OutOf{name}", f"Node didn't have enough resource: {name}, {detail}"
    if _ports_clash(pod, others):
        return "NodePorts", "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
    return None


def _ports_clash(pod: Obj, others: Iterable[Obj]) -> bool:
    """Return whether a host port of the pod is that of a pod which the node has accepted."""
    wanted = host_ports(pod["spec"])
    if not wanted:
        return False
    uid = pod["metadata"]["uid"]
    running = (other for other in others if is_taken(other) and other["metadata"]["uid"] != uid)
    return any(port.clashes(taken) for other in running for taken in host_ports(other["spec"]) for port in wanted)


_BASIC = ("pods", "cpu", "memory", "ephemeral-storage")


def _by_rank(name: str) -> tuple[int, str]:
    return (_BASIC.index(name) if name in _BASIC else len(_BASIC)), name
