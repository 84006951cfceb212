"""The nodes of a member and what their pods leave of them, kept up to date change by change.

Handlers of the member's node and pod informers feed it; `kept` says what they keep of an object. A node has a row as
long as it, or a pod on it, is there: pods may come before their node, and nodes may leave before their pods. A pod
event costs the same in a cluster of any size. Of every row it is known at which version it last changed, and at which
version its labels or taints did, so what is computed over all nodes is brought up to date row by row (see `answers`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from karmada.estimator.amounts import CPU, MOST, PODS, Bools, Ints
from karmada.estimator.kept import Counted, Unschedulable
from karmada.estimator.requests import ONE, Amounts
from karmada.estimator.resources import counts_on_node
from karmada.estimator.room import Room
from karmada.kube.objects.types import Obj

_FIRST_ROWS = 64
_NO_LABELS: Mapping[str, str] = {}


class _Node:
    """`allocatable` is None while only its pods are known."""

    __slots__ = ("allocatable", "labels", "name", "pods", "taints", "used")

    def __init__(self, name: str) -> None:
        self.name = name
        self.allocatable: Mapping[str, int] | None = None
        self.labels = _NO_LABELS
        self.taints: Sequence[Obj] = ()
        self.pods = 0
        self.used: dict[str, int] = {}


class Snapshot:
    def __init__(self) -> None:
        self.version = 0
        self.nodes = 0
        """How many nodes there are."""
        self.room = Room(np.zeros(_FIRST_ROWS, np.int64), {})
        self.present: Bools = np.zeros(_FIRST_ROWS, np.bool_)
        """The rows of nodes that are there."""
        self.tainted: Bools = np.zeros(_FIRST_ROWS, np.bool_)
        self.changed: Ints = np.zeros(_FIRST_ROWS, np.int64)
        """For each row, the version at which anything about it last changed."""
        self.facts_changed: Ints = np.zeros(_FIRST_ROWS, np.int64)
        """Handlers of changes of a node's labels or taints, or whether it is there."""
        self._rows: dict[str, int] = {}
        self._at: list[_Node | None] = []
        self._empty: list[int] = []
        self._pods: dict[str, Counted] = {}
        self._waiting: dict[str, dict[str, Unschedulable]] = {}
        self._waiting_of: dict[str, str] = {}

    # changes

    def node_changed(self, old: Obj | None, new: Obj | None) -> None:
        obj = new if new is not None else old
        assert obj is not None
        row = self._row(obj["metadata"]["name"])
        node = self._at[row]
        assert node is not None
        allocatable, labels, taints = _facts(new)
        appears = (node.allocatable is None) != (allocatable is None)
        if appears or node.labels != labels or node.taints != taints:
            self.nodes += (allocatable is not None) - (node.allocatable is not None)
            node.labels, node.taints = labels, taints
            self.present[row], self.tainted[row] = allocatable is not None, bool(taints)
            self.version += 1
            self.changed[row] = self.facts_changed[row] = self.version
        if node.allocatable != allocatable:
            before, node.allocatable = node.allocatable or {}, allocatable
            self._refresh(row, node, before.keys() | (allocatable or {}).keys())
        self._drop_if_unused(row, node)

    def pod_changed(self, old: Obj | None, new: Obj | None) -> None:
        """Count a pod anew by what was remembered of it: the final state of a deleted one may differ."""
        obj = new if new is not None else old
        assert obj is not None
        uid = obj["metadata"]["uid"]
        before = self._pods.get(uid)
        after: Counted | None = None if new is None else new["counted"]
        if after != before:
            if before is not None:
                self._count(before, -1)
            if after is None:
                del self._pods[uid]
            else:
                self._pods[uid] = after
                self._count(after, 1)
        self._wait(uid, None if new is None else new.get("unschedulable"))

    def _count(self, pod: Counted, times: int) -> None:
        name, amounts = pod
        if not name:
            return
        row = self._row(name)
        node = self._at[row]
        assert node is not None
        node.pods += times
        _add(node.used, amounts, times)
        self._refresh(row, node, (PODS, *(resource for resource, _ in amounts)))
        self._drop_if_unused(row, node)

    def _wait(self, uid: str, pod: Unschedulable | None) -> None:
        controller = self._waiting_of.pop(uid, None)
        if controller is not None:
            pods = self._waiting[controller]
            del pods[uid]
            if not pods:
                del self._waiting[controller]
        if pod is not None:
            self._waiting_of[uid] = pod.controller
            self._waiting.setdefault(pod.controller, {})[uid] = pod

    # rows

    def _row(self, name: str) -> int:
        row = self._rows.get(name)
        if row is None:
            row = self._rows[name] = self._empty.pop() if self._empty else len(self._at)
            if row == len(self._at):
                self._at.append(None)
                self._grow(row + 1)
            self._at[row] = _Node(name)
        return row

    def _drop_if_unused(self, row: int, node: _Node) -> None:
        if node.allocatable is None and not node.pods:
            del self._rows[node.name]
            self._at[row] = None
            self._empty.append(row)

    def _grow(self, size: int) -> None:
        if size <= len(self.present):
            return
        room, more = self.room, len(self.present)
        self.present, self.tainted = (np.pad(values, (0, more)) for values in (self.present, self.tainted))
        self.changed, self.facts_changed = (np.pad(values, (0, more)) for values in (self.changed, self.facts_changed))
        room.pods = np.pad(room.pods, (0, more))
        room.left = {name: np.pad(values, (0, more)) for name, values in room.left.items()}

    def _refresh(self, row: int, node: _Node, names: Sequence[str] | set[str]) -> None:
        """Compute what is left of these resources on a node."""
        self.version += 1
        self.changed[row] = self.version
        room, allocatable = self.room, node.allocatable or {}
        for name in names:
            if name == PODS:
                room.pods[row] = max(_units(PODS, allocatable.get(PODS, 0)) - node.pods, 0)
                continue
            if not counts_on_node(name):
                continue
            left = room.left.get(name)
            if left is None:
                if name not in allocatable:
                    continue
                left = room.left[name] = np.zeros(len(self.present), np.int64)
            left[row] = max(_units(name, allocatable.get(name, 0) - node.used.get(name, 0)), 0)

    # reading

    def facts(self, row: int) -> tuple[str, Mapping[str, str], Sequence[Obj]]:
        """Name, labels and taints of a node."""
        node = self._at[row]
        assert node is not None, "an empty row"
        return node.name, node.labels, node.taints

    def rows(self) -> Ints:
        """Return the rows of all nodes."""
        return np.flatnonzero(self.present)

    def unschedulable_of(self, controller: str) -> list[Unschedulable]:
        """Return the pods of a controller, by its uid, for which no node is found."""
        return list(self._waiting.get(controller, {}).values())


def _facts(node: Obj | None) -> tuple[Mapping[str, int] | None, Mapping[str, str], Sequence[Obj]]:
    return (None, _NO_LABELS, ()) if node is None else (node["allocatable"], node["labels"], node["taints"])


def _units(name: str, thousandths: int) -> int:
    """In what the resource is counted in, rounded up as Kubernetes does."""
    return min(thousandths if name == CPU else -(-thousandths // ONE), MOST)


def _add(total: dict[str, int], amounts: Amounts, times: int) -> None:
    for name, amount in amounts:
        now = total.get(name, 0) + times * amount
        if now:
            total[name] = now
        else:
            total.pop(name, None)
