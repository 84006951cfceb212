"""The nodes and what is on them, arranged so that a decision looks at few of them.

A `Kind` is what nodes have in common that were made alike: labels (but for the hostname), taints, allocatable. Nodes
of one kind with the same usage form a `Group`: whatever holds for one of them holds for all, and a cluster of thousands
of nodes has a handful of groups. Assigning a pod moves its node from one group to the next. A node on which room is
kept for a preempting pod is a group of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from weakref import WeakValueDictionary

import orjson

from karmada.kube.objects.node_selection import HOSTNAME
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key
from karmada.kube.sim.controllers.nodefit import NO_EXECUTE, NO_SCHEDULE
from karmada.kube.sim.scheduler.pods import PodInfo, Port
from karmada.kube.sim.scheduler.resources import IDLE, Usage, allocatable_of, plus

HARD = (NO_SCHEDULE, NO_EXECUTE)
SOFT = "PreferNoSchedule"


class Kind:
    __slots__ = ("__weakref__", "allocatable", "hard_taints", "labels", "soft_taints", "unschedulable")

    def __init__(self, labels: dict[str, str], spec: Obj, status: Obj) -> None:
        taints = spec.get("taints") or ()
        self.labels = labels
        self.unschedulable = bool(spec.get("unschedulable"))
        self.hard_taints = tuple(taint for taint in taints if taint.get("effect") in HARD)
        self.soft_taints = tuple(taint for taint in taints if taint.get("effect") == SOFT)
        self.allocatable = allocatable_of(status)


class Node:
    """`kind` and `group` are None for a node that pods name but that does not exist (any more)."""

    __slots__ = ("group", "hostname", "kind", "name", "nominated", "pods", "ports", "position", "usage")

    def __init__(self, name: str) -> None:
        self.name = name
        self.hostname: str | None = None
        self.kind: Kind | None = None
        self.usage: Usage = IDLE
        self.pods: dict[Key, PodInfo] = {}
        self.ports: dict[Port, int] | None = None
        self.nominated: dict[Key, PodInfo] | None = None
        self.group: Group | None = None
        self.position = 0

    def label(self, key: str) -> str | None:
        if key == HOSTNAME:
            return self.hostname
        return self.kind.labels.get(key) if self.kind is not None else None

    def labels(self) -> dict[str, str]:
        """Return all of them; makes a dict, so not for every node and pod."""
        labels = self.kind.labels if self.kind is not None else {}
        return labels if self.hostname is None else {**labels, HOSTNAME: self.hostname}

    def reserved(self, info: PodInfo) -> Usage:
        """Usage as `info` has to see it: with the room kept for others that are at least as important."""
        usage = self.usage
        for other in (self.nominated or {}).values():
            if other.needs.priority >= info.needs.priority and other.key != info.key:
                usage = plus(usage, other.needs.request)
        return usage


class Group:
    """Nodes that are equal for every filter on labels, taints and resources."""

    __slots__ = ("key", "kind", "nodes", "position", "usage")

    def __init__(self, key: Any, kind: Kind, usage: Usage) -> None:
        self.key = key
        self.kind = kind
        self.usage = usage
        self.nodes: list[Node] = []
        self.position = 0

    def usage_for(self, info: PodInfo) -> Usage:
        first = self.nodes[0]
        return self.usage if first.nominated is None else first.reserved(info)


class NodeTable:
    def __init__(self) -> None:
        self.groups: list[Group] = []
        self._by_key: dict[Any, Group] = {}
        self._nodes: dict[str, Node] = {}
        self._kinds: WeakValueDictionary[bytes, Kind] = WeakValueDictionary()
        self.count = 0
        """Nodes that exist."""

    def get(self, name: str) -> Node | None:
        """Return a node that exists."""
        node = self._nodes.get(name)
        return node if node is not None and node.kind is not None else None

    def __iter__(self) -> Iterator[Node]:
        return (node for node in self._nodes.values() if node.kind is not None)

    def all(self) -> Iterator[Node]:
        """Also those that do not exist but have pods."""
        return iter(self._nodes.values())

    # the nodes themselves

    def set(self, obj: Obj) -> Node:
        name = obj["metadata"]["name"]
        node = self._of(name)
        labels = dict(obj["metadata"].get("labels") or {})
        hostname = labels.pop(HOSTNAME, None)
        kind = self._kind(labels, obj.get("spec") or {}, obj.get("status") or {})
        if node.kind is None:
            self.count += 1
        node.hostname, node.kind = hostname, kind
        self._regroup(node)
        return node

    def _kind(self, labels: dict[str, str], spec: Obj, status: Obj) -> Kind:
        what = [labels, spec.get("taints"), bool(spec.get("unschedulable")), status.get("allocatable")]
        key = orjson.dumps(what, option=orjson.OPT_SORT_KEYS)
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = Kind(labels, spec, status)
        return kind

    def remove(self, name: str) -> Node | None:
        node = self.get(name)
        if node is not None:
            node.kind, node.hostname = None, None
            self.count -= 1
            self._regroup(node)
            self._drop_if_empty(node)
        return node

    def _of(self, name: str) -> Node:
        node = self._nodes.get(name)
        if node is None:
            node = self._nodes[name] = Node(name)
        return node

    def _drop_if_empty(self, node: Node) -> None:
        if node.kind is None and not node.pods and not node.nominated:
            self._nodes.pop(node.name, None)

    # their pods

    def assign(self, info: PodInfo) -> Node:
        node = self._of(info.node)
        node.pods[info.key] = info
        node.usage = plus(node.usage, info.needs.request)
        for port in info.needs.ports:
            node.ports = node.ports or {}
            node.ports[port] = node.ports.get(port, 0) + 1
        self._regroup(node)
        return node

    def unassign(self, info: PodInfo) -> Node:
        node = self._of(info.node)
        del node.pods[info.key]
        node.usage = plus(node.usage, info.needs.request, -1)
        for port in info.needs.ports:
            self._free(node, port)
        self._regroup(node)
        self._drop_if_empty(node)
        return node

    @staticmethod
    def _free(node: Node, port: Port) -> None:
        taken = node.ports or {}
        taken[port] -= 1
        if not taken[port]:
            del taken[port]
        node.ports = taken or None

    def nominate(self, info: PodInfo, name: str) -> None:
        """Keep room for a pod on a node."""
        info.nominated = name
        node = self._of(name)
        node.nominated = {**(node.nominated or {}), info.key: info}
        self._regroup(node)

    def release(self, info: PodInfo) -> None:
        """Keep no room for it any more."""
        node = self._nodes.get(info.nominated)
        if node is not None and node.nominated and info.key in node.nominated:
            node.nominated = {k: p for k, p in node.nominated.items() if k != info.key} or None
            self._regroup(node)
            self._drop_if_empty(node)

    # groups

    def _regroup(self, node: Node) -> None:
        kind = node.kind
        key = (kind, node.usage, node.name if node.nominated else None)
        group = node.group
        if group is not None:
            if group.key == key:
                return
            self._leave(node, group)
        if kind is not None:
            self._enter(node, key, kind)

    def _enter(self, node: Node, key: Any, kind: Kind) -> None:
        group = self._by_key.get(key)
        if group is None:
            group = self._by_key[key] = Group(key, kind, node.usage)
            group.position = len(self.groups)
            self.groups.append(group)
        node.group, node.position = group, len(group.nodes)
        group.nodes.append(node)

    def _leave(self, node: Node, group: Group) -> None:
        """Remove a node; the last of the line takes the place that becomes free."""
        last = group.nodes.pop()
        if last is not node:
            group.nodes[node.position] = last
            last.position = node.position
        node.group = None
        if not group.nodes:
            del self._by_key[group.key]
            end = self.groups.pop()
            if end is not group:
                self.groups[group.position] = end
                end.position = group.position
