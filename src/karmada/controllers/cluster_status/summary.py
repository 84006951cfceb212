"""What a member has, what is taken of it and how its nodes are graded, kept up to date change by change.

Handlers of the member's node and pod informers feed a `Summary`; it remembers what each object counts for, takes that
away and adds the new count. So a change costs the same in a cluster of any size, and reading costs as much as there
are resources and grades. Pods may come before their node, and nodes may leave before their pods.

The informers keep next to nothing of the objects: see `estimator/kept.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from karmada.controllers.cluster_status.modeling import NO_GRADE, Grades
from karmada.estimator.kept import Counted
from karmada.estimator.requests import ONE, PODS, Amounts, texts
from karmada.kube.objects.types import Obj


class _Node:
    """`allocatable` is None while only its pods are known."""

    __slots__ = ("allocatable", "grade", "pods", "ready", "used")

    def __init__(self) -> None:
        self.allocatable: Mapping[str, int] | None = None
        self.ready = False
        self.pods = 0
        self.used: dict[str, int] = {}
        self.grade = NO_GRADE


class _Tally:
    """Pods and what they reserve together."""

    __slots__ = ("amounts", "pods")

    def __init__(self) -> None:
        self.pods = 0
        self.amounts: dict[str, int] = {}

    def add(self, amounts: Amounts, times: int) -> None:
        self.pods += times
        _add(self.amounts, amounts, times)

    def texts(self) -> dict[str, str]:
        found = {name: amount for name, amount in self.amounts.items() if amount > 0}
        if self.pods > 0:
            found[PODS] = self.pods * ONE
        return texts(found)


def _add(total: dict[str, int], amounts: Amounts, times: int) -> None:
    for name, amount in amounts:
        total[name] = total.get(name, 0) + times * amount


class Summary:
    def __init__(self) -> None:
        self._nodes: dict[str, _Node] = {}
        self._pods: dict[str, Counted] = {}
        self._total = self._ready = 0
        self._allocatable: dict[str, int] = {}
        self._having: dict[str, int] = {}
        """How many nodes name a resource: it is reported as long as one does, even if there is none of it."""
        self._waiting, self._placed = _Tally(), _Tally()
        self._models: Sequence[Obj] = ()
        self._grades: Grades | None = None
        self._counts: list[int] = []

    # changes

    def node_changed(self, old: Obj | None, new: Obj | None) -> None:
        obj = new if new is not None else old
        assert obj is not None
        name = obj["metadata"]["name"]
        node = self._nodes.get(name)
        if node is None:
            node = self._nodes[name] = _Node()
        allocatable = None if new is None else new["allocatable"]
        ready = new is not None and new["ready"]
        if allocatable != node.allocatable:
            self._total += (allocatable is not None) - (node.allocatable is not None)
            self._count_resources(node.allocatable, -1)
            self._count_resources(allocatable, 1)
            node.allocatable = allocatable
            self._grade(node)
        self._ready += ready - node.ready
        node.ready = ready
        self._drop_if_unused(name, node)

    def pod_changed(self, old: Obj | None, new: Obj | None) -> None:
        """Count a pod anew by what was remembered of it: the final state of a deleted one may differ."""
        obj = new if new is not None else old
        assert obj is not None
        uid = obj["metadata"]["uid"]
        before: Counted | None = self._pods.get(uid)
        after: Counted | None = None if new is None else new["counted"]
        if after == before:
            return
        if before is not None:
            self._count(before, -1)
        if after is None:
            del self._pods[uid]
        else:
            self._pods[uid] = after
            self._count(after, 1)

    def grade_by(self, models: Sequence[Obj]) -> None:
        """Set the cluster's resource models; nodes are graded anew only if they differ from those before."""
        if models == self._models:
            return
        self._models = models
        self._grades = Grades.of(models)
        self._counts = [0] * len(models)
        for node in self._nodes.values():
            node.grade = NO_GRADE
            self._grade(node)

    def _count_resources(self, allocatable: Mapping[str, int] | None, times: int) -> None:
        for name, amount in (allocatable or {}).items():
            self._allocatable[name] = self._allocatable.get(name, 0) + times * amount
            self._having[name] = self._having.get(name, 0) + times
            if not self._having[name]:
                del self._having[name], self._allocatable[name]

    def _count(self, pod: Counted, times: int) -> None:
        name, amounts = pod
        if not name:
            self._waiting.add(amounts, times)
            return
        self._placed.add(amounts, times)
        node = self._nodes.get(name)
        if node is None:
            node = self._nodes[name] = _Node()
        node.pods += times
        _add(node.used, amounts, times)
        self._grade(node)
        self._drop_if_unused(name, node)

    def _grade(self, node: _Node) -> None:
        if self._grades is None:
            return
        known = node.allocatable is not None
        grade = self._grades.place(node.allocatable or {}, node.used, node.pods) if known else NO_GRADE
        if grade != node.grade:
            if node.grade != NO_GRADE:
                self._counts[node.grade] -= 1
            if grade != NO_GRADE:
                self._counts[grade] += 1
            node.grade = grade

    def _drop_if_unused(self, name: str, node: _Node) -> None:
        if node.allocatable is None and not node.pods:
            del self._nodes[name]

    # results

    def nodes(self) -> Obj:
        return {"totalNum": self._total, "readyNum": self._ready}

    def resources(self) -> Obj:
        """Resources of which the amount is zero are left out."""
        found: Obj = {
            "allocatable": texts(self._allocatable),
            "allocating": self._waiting.texts(),
            "allocated": self._placed.texts(),
        }
        if self._grades is not None:
            found["allocatableModelings"] = [
                {"grade": grade, "count": count}
                for grade, count in zip(self._grades.numbers, self._counts, strict=True)
            ]
        return {name: value for name, value in found.items() if value}
