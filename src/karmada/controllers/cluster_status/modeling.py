"""Grades of nodes: a cluster's resource models say where each grade begins.

Every node belongs to the highest grade of which it has enough of everything left.
A node that can take no more pods, or is overdrawn of a resource that the models name, belongs to none. Each node is
graded by itself, so a change of one node or pod moves at most one node from one grade to another.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence

from karmada.estimator.requests import ONE, PODS
from karmada.kube.objects.quantity import Quantity
from karmada.kube.objects.types import Obj

NO_GRADE = -1


class Grades:
    """`steps`: for each resource, where the grades begin, in thousandths."""

    __slots__ = ("_last", "numbers", "steps")

    def __init__(self, numbers: Sequence[int], steps: Mapping[str, Sequence[int]]) -> None:
        self.numbers = tuple(numbers)
        self.steps = {name: tuple(begins) for name, begins in steps.items()}
        self._last = len(self.numbers) - 1

    @classmethod
    def of(cls, models: Sequence[Obj]) -> Grades | None:
        """Return None without models, and when they do not all name the same resources."""
        if not models:
            return None
        begins = [{span["name"]: Quantity.parse(span["min"]).milli() for span in m["ranges"]} for m in models]
        names = begins[0].keys()
        if any(model.keys() != names for model in begins):
            return None
        return cls([model["grade"] for model in models], {name: [b[name] for b in begins] for name in names})

    def place(self, allocatable: Mapping[str, int], used: Mapping[str, int], pods: int) -> int:
        """Return the index of a node's grade, or NO_GRADE; a resource the node does not have counts as none of it."""
        if pods and allocatable.get(PODS, 0) <= pods * ONE:
            return NO_GRADE
        lowest = self._last
        for name, begins in self.steps.items():
            have = allocatable.get(name)
            index = bisect_right(begins, 0 if have is None else have - used.get(name, 0)) - 1
            if index < lowest:
                lowest = index
        return lowest
